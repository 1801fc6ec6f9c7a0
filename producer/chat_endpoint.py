"""An OpenAI-compatible endpoint: chat completions, with retries and a deadline.

Knows neither what is asked nor how an answer is read; judges and served policies do.
"""

import json
import re
from collections.abc import Callable
from time import monotonic, sleep
from typing import Final, NamedTuple, TypeVar

import httpx2
from pydantic import JsonValue

MAX_ANSWER_BYTES: Final = 1 << 20
MAX_TRIES: Final = 4
BACKOFF_S: Final = 0.5
"""Before the second try; doubled before each later one."""
START_TIMEOUT_S: Final = 15.0
RETRIED: Final = frozenset({408, 409, 425, 429})
"""HTTP statuses below 500 that another try may not give."""
OPTIONAL: Final = ("temperature", "seed", "max_tokens")
"""Fields that some endpoints refuse; `max_tokens` is then sent under its newer name."""
OK, BAD_REQUEST, SERVER_ERROR = 200, 400, 500
TOO_LATE: Final = "it did not answer in time"

Answer = TypeVar("Answer")


class ChatAnswer(NamedTuple):
    """The text of a completion."""

    text: str
    model: str
    """As the endpoint names it, else as it was asked for."""


class ChatFailedError(Exception):
    """No answer that can be used. The key is not in its message."""

    is_retried = False


class ChatRetryError(ChatFailedError):
    """Another try may help."""

    is_retried = True

    def __init__(self, message: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s
        """As the endpoint asked for; None: it did not."""


class ChatEndpoint:
    """One endpoint's client, or that of several with the same key.

    Guarantees: thread-safe; a call takes at most its time limit, retries included; the key is in no
    answer that `safe` has seen and in no error.
    """

    def __init__(self, key: str | None, *, backoff_s: float = BACKOFF_S) -> None:
        """`key`: sent as the bearer token; None: none is."""
        self._key = key
        self._client = httpx2.Client(
            headers={} if key is None else {"Authorization": f"Bearer {key}"},
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=32),
        )
        self._refused: dict[str, frozenset[str]] = {}
        """URL -> optional fields that it refuses."""
        self._backoff_s = backoff_s

    def models(self, url: str) -> tuple[int, list[str]]:
        """(HTTP status, names that it lists). ChatFailedError if nobody answers."""
        try:
            response = self._client.get(f"{url}/models", timeout=START_TIMEOUT_S)
        except httpx2.HTTPError as error:
            raise ChatFailedError(self.safe(error)) from None
        return response.status_code, _listed(response)

    def ask(
        self,
        url: str,
        body: dict[str, JsonValue],
        read: Callable[[ChatAnswer], Answer],
        timeout_s: float,
    ) -> Answer:
        """What `read` makes of the answer to a request; it may raise ChatRetryError.

        ChatFailedError if none could be got in time.
        """
        until_s, tried = monotonic() + timeout_s, 0
        while True:
            try:
                return read(self._ask_once(url, body, until_s))
            except ChatRetryError as error:
                wait_s = self._backoff_s * 2**tried if error.wait_s is None else error.wait_s
                tried += 1
                if tried == MAX_TRIES or monotonic() + wait_s >= until_s:
                    raise ChatFailedError(self.safe(error)) from None
                sleep(wait_s)

    def safe(self, text: object) -> str:
        """The text without the key, which an endpoint may repeat."""
        shown = str(text)
        return shown if not self._key else shown.replace(self._key, "[key]")

    def _ask_once(self, url: str, body: dict[str, JsonValue], until_s: float) -> ChatAnswer:
        refused = self._refused.get(url, frozenset())
        sent = {_name(name, refused): value for name, value in body.items()}
        sent.pop("", None)
        status, wait_s, text = self._post(f"{url}/chat/completions", sent, until_s)
        if status == BAD_REQUEST:
            named = {name for name in OPTIONAL if name in sent and name in text}
            if named:
                # Networks that think take their default alone.
                self._refused[url] = refused | named
                return self._ask_once(url, body, until_s)
        if status in RETRIED or status >= SERVER_ERROR:
            message = f"HTTP {status}: {text[:200]}"
            raise ChatRetryError(message, wait_s)
        if status != OK:
            message = f"it answered HTTP {status}: {text[:200]}"
            raise ChatFailedError(self.safe(message))
        try:
            content = json.loads(text)
            said = content["choices"][0]["message"]["content"]
            answered = content.get("model")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            said, answered = None, None
        if not isinstance(said, str):
            message = f"its response is no chat completion with text: {text[:200]!r}"
            raise ChatRetryError(message)
        return ChatAnswer(said, answered if isinstance(answered, str) else str(body["model"]))

    def _post(
        self, url: str, body: dict[str, JsonValue], until_s: float
    ) -> tuple[int, float | None, str]:
        """(status, seconds to wait or None, text). The deadline holds for a dripping answer too."""
        data = bytearray()
        remaining_s = until_s - monotonic()
        if remaining_s <= 0:
            raise ChatRetryError(TOO_LATE)
        try:
            with self._client.stream("POST", url, json=body, timeout=remaining_s) as response:
                for chunk in response.iter_bytes():
                    data += chunk
                    if len(data) > MAX_ANSWER_BYTES or monotonic() > until_s:
                        message = "its answer is too long or too slow"
                        raise ChatRetryError(message)
                wait = response.headers.get("retry-after", "")
                status = response.status_code
        except httpx2.HTTPError as error:
            message = f"it cannot be reached ({type(error).__name__}: {error})"
            raise ChatRetryError(message) from None
        wait_s = float(wait) if re.fullmatch(r"\d{1,6}(\.\d+)?", wait) else None
        return status, wait_s, data.decode("utf-8", "replace")


def _name(name: str, refused: frozenset[str]) -> str:
    """The name that a field is sent under; empty: it is not sent."""
    if name not in refused:
        return name
    return "max_completion_tokens" if name == "max_tokens" else ""


def _listed(response: httpx2.Response) -> list[str]:
    """Names that the endpoint lists; none where it lists in another way."""
    try:
        rows = response.json()["data"] if response.status_code == OK else []
        return [str(row["id"]) for row in rows if isinstance(row["id"], str)]
    except (ValueError, LookupError, TypeError, RecursionError):
        return []
