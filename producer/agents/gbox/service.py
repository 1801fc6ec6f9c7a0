"""GBox through its SDK: creates, finds and closes boxes. No message contains the key."""

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Literal

import httpx
from gbox_sdk import APIConnectionError, APIStatusError, GboxClientError, GboxSDK
from gbox_sdk.wrapper.box.android.android import AndroidBoxOperator
from gbox_sdk.wrapper.box.linux import LinuxBoxOperator

from producer.agents.agent import RentedDevice
from producer.environments.environment import EnvironmentFailedError
from producer.http_environment import check_http_environment

DEFAULT_URL: Final = "https://gbox.ai"
"""URL that decides which proxy and certificates the SDK uses, if no other URL is given."""
LIMIT_S = 60.0
"""Time limit of one answer."""
CREATE_LIMIT = "2m"
"""Time limit for a box to start; GBox deletes a box that takes longer."""
CREATE_S = 150.0
"""Time limit of the answer to a creation request."""
NUM_RETRIES = 3
"""Retries of calls that may be repeated: a screenshot, listing, closing."""
PAGE = 100
"""Number of boxes per page."""
DETAIL_CHARACTERS = 300
OWNER: Final = ("created-by", "cua-train")
"""The label of all our boxes."""
TRAINING: Final = "training"
"""The label that names the training."""
FAILURES: Final = (GboxClientError, httpx.HTTPError, OSError, ValueError, TypeError, AttributeError)
"""Exceptions that the SDK raises; the last three occur for answers that are not as documented."""
BoxType = Literal["android", "linux"]
Box = AndroidBoxOperator | LinuxBoxOperator


class GboxFailedError(EnvironmentFailedError):
    """GBox, or one of its boxes, failed or refused a request."""

    def __init__(self, message: str, status: int | None) -> None:
        super().__init__(message)
        self.status = status
        """HTTP status; None if there was no answer."""


class GboxService:
    """The GBox account of an API key. Thread-safe."""

    def __init__(self, key: str, *, base_url: str | None = None, limit_s: float = LIMIT_S) -> None:
        """Without `base_url`, GBox's own is used.

        Raises UsageError if the proxy settings allow no request.
        """
        check_http_environment(base_url or DEFAULT_URL, is_httpx=True)
        self._key = key
        self._repeating = GboxSDK(
            api_key=key, base_url=base_url, timeout=limit_s, max_retries=NUM_RETRIES
        )
        # Repeating these after a timeout could click twice, or leave a box that nobody closes.
        self._sdk = GboxSDK(api_key=key, base_url=base_url, timeout=limit_s, max_retries=0)
        self._creating = GboxSDK(
            api_key=key, base_url=base_url, timeout=max(limit_s, CREATE_S), max_retries=0
        )

    def create(self, box_type: BoxType, training: str, lifetime_s: float) -> Box:
        """Create a running box, which GBox deletes after `lifetime_s`. Raises GboxFailedError."""
        labels = dict((OWNER, (TRAINING, training)))
        expires_in = f"{round(lifetime_s)}s"
        with self.failing_to(f"create a box of type {box_type}"):
            boxes = self._creating.client.v1.boxes
            if box_type == "android":
                phone = boxes.create_android(
                    config={"labels": labels, "expires_in": expires_in, "device_type": "virtual"},
                    wait=True,
                    api_timeout=CREATE_LIMIT,
                )
                return AndroidBoxOperator(self._sdk.client, phone)
            desktop = boxes.create_linux(
                config={"labels": labels, "expires_in": expires_in},
                wait=True,
                api_timeout=CREATE_LIMIT,
            )
            return LinuxBoxOperator(self._sdk.client, desktop)

    def disconnect(self) -> None:
        """Close the connections. Idempotent."""
        for sdk in (self._sdk, self._repeating, self._creating):
            sdk.client.close()

    def close(self, box_id: str) -> None:
        """Delete a box. A box that no longer exists is no error. Raises GboxFailedError."""
        try:
            with self.failing_to(f"close box {box_id}"):
                self._repeating.terminate(box_id, wait=False)
        except GboxFailedError as error:
            if error.status != httpx.codes.NOT_FOUND:
                raise

    def screenshot(self, box_id: str) -> bytes:
        """A picture of the box's screen.

        Raises whatever the SDK raises, and ValueError if the answer is no picture.
        """
        actions = self._repeating.client.v1.boxes.actions
        uri = actions.screenshot(box_id, output_format="base64").uri
        return base64.b64decode(uri.partition(",")[2] or uri, validate=True)

    def boxes(self) -> list[RentedDevice]:
        """All existing boxes of ours. Raises GboxFailedError."""
        found: list[RentedDevice] = []
        page = 1
        while True:
            with self.failing_to("list boxes"):
                answer = self._repeating.list_info(
                    page=page, page_size=PAGE, status=["pending", "running", "error"]
                )
                found += [
                    RentedDevice(
                        box.id,
                        box.type,
                        box.status,
                        (box.config.labels or {}).get(TRAINING),
                        box.created_at,
                        box.expires_at,
                    )
                    for box in answer.data
                    if OWNER in (box.config.labels or {}).items()
                ]
                if len(answer.data) < PAGE:
                    return found
            page += 1

    @contextmanager
    def failing_to(self, what: str) -> Iterator[None]:
        """Convert what the SDK raises in the block to GboxFailedError."""
        try:
            yield
        except FAILURES as error:
            status = error.status_code if isinstance(error, APIStatusError) else None
            message = f"GBox could not {what}: {self._detail(error)}"
            raise GboxFailedError(message, status) from None

    def _detail(self, error: Exception) -> str:
        shown: BaseException = error
        if isinstance(error, APIConnectionError) and error.__cause__ is not None:
            shown = error.__cause__
        text = " ".join(str(shown).split()) or type(shown).__name__
        if isinstance(error, APIStatusError):
            body = error.body
            said = body.get("message") if isinstance(body, Mapping) else None
            text = f"HTTP {error.status_code}: {said or text}"
        return text.replace(self._key, "…")[:DETAIL_CHARACTERS].rstrip(".")
