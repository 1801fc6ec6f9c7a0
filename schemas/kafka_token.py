"""Tokens for Kafka's OAUTHBEARER, by OAuth 2.0's client credentials grant (RFC 6749, 4.4).

kafka-python asks for a token whenever it connects; both sides hand it this provider.
"""

import base64
import json
import os
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable

from schemas.http_environment import by_proxy, is_loopback
from schemas.installation import without_secrets

TIMEOUT_S = 10.0
FRESH_PART = 0.8
"""Of a token's life; in the rest a new one is asked for before it expires under a connection."""
LIFE_S = 300.0
"""Of a token that does not say how long it lives."""
LONGEST_ANSWER = 1 << 20


class TokenError(OSError):
    """The token endpoint did not give a token. Its text has no secret."""


class ClientCredentials:
    """Asks a token endpoint, and again before the token expires. Thread-safe; blocks up to 10 s."""

    def __init__(
        self,
        endpoint_url: str,
        client_id: str,
        client_secret: str,
        *,
        scope: str | None = None,
        extensions: dict[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`scope`: space-separated; None: the endpoint's default. `clock`: seconds.

        `extensions`: sent to the broker with the token (SASL extensions). ValueError for a URL that
        is not http or https.
        """
        if urllib.parse.urlsplit(endpoint_url).scheme not in {"http", "https"}:
            message = f"{endpoint_url!r} is not an http or https URL"
            raise ValueError(message)
        self._endpoint_url = endpoint_url
        self._client_id = client_id
        self._client_secret = client_secret
        self._scope = scope
        self._extensions = dict(extensions or {})
        self._clock = clock
        self._lock = threading.Lock()
        self._token = ""
        self._fresh_until = float("-inf")

    def __repr__(self) -> str:
        """Without the secret: settings are logged by libraries."""
        return f"ClientCredentials({self._endpoint_url!r}, {self._client_id!r})"

    def token(self) -> str:
        """A token that has not expired. TokenError."""
        with self._lock:
            if self._clock() >= self._fresh_until:
                self._token, life_s = self._ask()
                self._fresh_until = self._clock() + life_s * FRESH_PART
            return self._token

    def extensions(self) -> dict[str, str]:
        """SASL extensions."""
        return dict(self._extensions)

    def _ask(self) -> tuple[str, float]:
        """(token, seconds that it lives)."""
        form = {"grant_type": "client_credentials"}
        if self._scope is not None:
            form["scope"] = self._scope
        quoted = (
            urllib.parse.quote(part, safe="") for part in (self._client_id, self._client_secret)
        )
        credentials = base64.b64encode(":".join(quoted).encode()).decode()
        request = urllib.request.Request(  # noqa: S310  # http and https only, checked above
            self._endpoint_url,
            data=urllib.parse.urlencode(form).encode(),
            headers={"Authorization": f"Basic {credentials}", "Accept": "application/json"},
        )
        # urlopen would keep the proxies of its first call.
        direct = (urllib.request.ProxyHandler({}),) if is_loopback(self._endpoint_url) else ()
        opener = urllib.request.build_opener(*direct)
        try:
            with opener.open(request, timeout=TIMEOUT_S) as answer:
                found = json.loads(answer.read(LONGEST_ANSWER))
            token, life_s = str(found["access_token"]), float(found.get("expires_in", LIFE_S))
        except urllib.error.HTTPError as error:
            with error:
                why = f"{error.code} {error.reason}"
            raise self._failed(why) from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._failed(str(getattr(error, "reason", error))) from None
        if not token or not token.isascii() or not token.isprintable():
            why = "its answer has no token"
            raise self._failed(why)
        return token, life_s

    def _failed(self, why: str) -> TokenError:
        way = by_proxy(self._endpoint_url, os.environ)
        return TokenError(
            f"no token for Kafka from {without_secrets(self._endpoint_url)}{way}: {why}; check"
            " KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL, _CLIENT_ID and _CLIENT_SECRET"
        )
