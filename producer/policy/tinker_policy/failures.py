"""Maps errors of Tinker's SDK to ours, telling apart the server, the key and the request."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import PAYMENT_REQUIRED
from typing import Final

import httpx
import tinker
from tinker.types import RequestErrorCategory

from producer.errors import CuaTrainError, NotFoundError, UnreachableError, UsageError

KEY_VARIABLE: Final = "TINKER_API_KEY"
URL_VARIABLE: Final = "TINKER_BASE_URL"
DETAIL_CHARACTERS: Final = 300
UNREACHABLE: Final = (
    tinker.APIConnectionError,
    httpx.HTTPError,
    asyncio.TimeoutError,
    TimeoutError,
    OSError,
)
FAILURES: Final = (
    tinker.TinkerError,
    *UNREACHABLE,
    CancelledError,
    # Its futures raise these for unreadable answers and after an earlier failure.
    ValueError,
    RuntimeError,
    AssertionError,
)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of failure and the error that it maps to."""

    raised: tuple[type[BaseException], ...]
    error: type[CuaTrainError]
    text: str
    """Message template with {what} and {detail}."""


_KINDS: Final = (
    _Kind(
        (tinker.AuthenticationError, tinker.PermissionDeniedError),
        UsageError,
        f"{KEY_VARIABLE}: Tinker refuses the key ({{detail}}); set another one",
    ),
    _Kind(
        (tinker.NotFoundError,),
        NotFoundError,
        "Tinker cannot {what}: it does not exist there ({detail})",
    ),
    _Kind(
        (tinker.BadRequestError, tinker.UnprocessableEntityError),
        UsageError,
        "Tinker refuses to {what}: {detail}",
    ),
    _Kind(
        (tinker.InternalServerError,),
        UnreachableError,
        "Tinker could not {what}: {detail}; try again later",
    ),
    _Kind(
        (tinker.APIStatusError,),
        CuaTrainError,
        "Tinker could not {what}: {detail}",
    ),
    _Kind(
        (AssertionError,),
        CuaTrainError,
        f"Tinker could not {{what}}: its answer is not of the SDK's release, {tinker.__version__}"
        " ({detail}); install the release of tinker that the server asks for",
    ),
    _Kind(
        UNREACHABLE,
        UnreachableError,
        f"Tinker could not {{what}}: {{detail}}; check the network and {URL_VARIABLE}",
    ),
)
"""The first match applies."""


def error_of(failure: BaseException, what: str, key: str) -> CuaTrainError:
    """Our error for what the SDK raised while doing `what`. No message contains the key."""
    detail = _detail(failure, key)
    if getattr(failure, "category", None) is RequestErrorCategory.User:
        return UsageError(f"Tinker refuses to {what}: {detail}")
    if isinstance(failure, tinker.APIStatusError) and failure.status_code == PAYMENT_REQUIRED:
        return CuaTrainError(f"Tinker cannot {what}: {detail}; settle the account's billing")
    for kind in _KINDS:
        if isinstance(failure, kind.raised):
            return kind.error(kind.text.format(what=what, detail=detail))
    return CuaTrainError(f"Tinker could not {what}: {detail}")


@contextmanager
def failing_to(what: str, key: str) -> Iterator[None]:
    """Convert what the SDK raises in the block with `error_of`."""
    try:
        yield
    except FAILURES as failure:
        raise error_of(failure, what, key) from None


def _detail(failure: BaseException, key: str) -> str:
    text = " ".join(str(failure).split()) or type(failure).__name__
    if isinstance(failure, tinker.APIStatusError):
        text = f"HTTP {failure.status_code}: {_answer(failure.body) or text}"
    if key:
        text = text.replace(key, "…")
    return text[:DETAIL_CHARACTERS].rstrip(".")


def _answer(body: object) -> str:
    """The server's message, if it sent one."""
    if isinstance(body, dict):
        reason = next((body[name] for name in ("detail", "message", "error") if name in body), None)
        return " ".join(str(reason).split()) if reason else ""
    return ""
