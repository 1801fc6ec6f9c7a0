"""Checks values passed by a loop and converts them to plain ones before anything is emitted.

Numbers may come from numpy or torch: anything with `item` or `tolist`. Each function raises
ValueError or TypeError with a sentence that names the argument.
"""

import math
import operator
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from pathlib import PurePath
from typing import Any, TypeVar, get_args

from pydantic import JsonValue

from producer.bounded_text import MAX_DEPTH, TOO_DEEP, storable
from producer.errors import CuaTrainError

MAX_INT = 2**31 - 1
"""Maximum of the tables' integer columns and of the log's token arrays."""
MAX_SEED = 2**63 - 1
MAX_REWARD = 1e100
"""Larger rewards would overflow means and deviations."""
MAX_LOGPROB = 0.25
"""A log-prob is at most 0, but for rounding, which in bfloat16 is as coarse as this."""
Choice = TypeVar("Choice", bound=str)


class OrderError(CuaTrainError):
    """The loop's calls are out of order. The failed call recorded nothing. Exit code 1."""


def number(name: str, value: object) -> float:
    """A number; NaN and infinities are allowed."""
    plain = _plain(value)
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        message = f"{name} must be a number, not {_shown(value)}"
        raise TypeError(message)
    try:
        return float(plain)
    except OverflowError:
        message = f"{name} is too large for a float: {_shown(value)}"
        raise ValueError(message) from None


def number_or_none(value: object) -> float | None:
    """A number as `number` reads it; None for anything else."""
    try:
        return number("value", value)
    except (TypeError, ValueError):
        return None


def rate_or_none(value: object) -> float | None:
    """A finite number of at least 0; None for anything else."""
    found = number_or_none(value)
    return None if found is None or not 0 <= found < math.inf else found


def finite(name: str, value: object) -> float:
    """A number that is neither NaN nor infinite."""
    found = number(name, value)
    if not math.isfinite(found):
        message = f"{name} must be a finite number, not {found}"
        raise ValueError(message)
    return found


def reward(name: str, value: object) -> float:
    """A finite number, small enough for finite means and deviations."""
    found = finite(name, value)
    if abs(found) > MAX_REWARD:
        message = f"{name} must lie within ±{MAX_REWARD:g}, not {found:g}"
        raise ValueError(message)
    return found


def at_least(name: str, value: object, minimum: float) -> float:
    """A finite number of at least `minimum`."""
    found = finite(name, value)
    if found < minimum:
        message = f"{name} must be at least {minimum:g}, not {found:g}"
        raise ValueError(message)
    return found


def count(name: str, value: object, minimum: int = 0, maximum: int = MAX_INT) -> int:
    """A whole number from `minimum` to `maximum`."""
    plain = _plain(value)
    if isinstance(plain, bool) or not hasattr(plain, "__index__"):
        message = f"{name} must be a whole number, not {_shown(value)}"
        raise TypeError(message)
    found = operator.index(plain)
    if not minimum <= found <= maximum:
        message = f"{name} must be from {minimum} to {maximum}, not {_shown(found)}"
        raise ValueError(message)
    return found


def flag(name: str, value: object) -> bool:
    """True or False: other values, such as "no", would count as True."""
    plain = _plain(value)
    if not isinstance(plain, bool):
        message = f"{name} must be True or False, not {_shown(value)}"
        raise TypeError(message)
    return plain


def text(name: str, value: object) -> str:
    """Text that UTF-8 can encode: half a surrogate pair becomes `?`."""
    if not isinstance(value, str):
        message = f"{name} must be text, not {_shown(value)}"
        raise TypeError(message)
    return storable(value)


def choice(name: str, value: Choice, among: object) -> Choice:
    """One of the values of a `Literal`."""
    known = get_args(among)
    if value not in known:
        message = f"{name} must be one of {', '.join(known)}, not {value!r}"
        raise ValueError(message)
    return value


def token_ids(name: str, values: object) -> list[int]:
    """A list of token ids."""
    items = _items(name, values)
    # A completion may have thousands: checked one by one they take four times as long.
    if {*map(type, items)} == {int} and min(items) >= 0 and max(items) <= MAX_INT:
        return [*items]
    return [count(f"{name}[{place}]", value) for place, value in enumerate(items)]


def logprobs(name: str, values: object, num_tokens: int) -> list[float]:
    """One log-prob (nats) per completion token; None, for one or for all, becomes NaN.

    NaN means that the loop does not know the value. Raises ValueError for one above MAX_LOGPROB.
    """
    if values is None:
        return [math.nan] * num_tokens
    items = _items(name, values)
    if len(items) != num_tokens:
        message = f"{name} has {len(items)} numbers for {num_tokens} completion tokens"
        raise ValueError(message)
    # As above; ten times as long here.
    is_plain = {*map(type, items)} == {float} and all(map(math.isfinite, items))
    if is_plain and max(items) <= MAX_LOGPROB:
        return [*items]
    return [
        math.nan if value is None else _logprob(f"{name}[{place}]", value)
        for place, value in enumerate(items)
    ]


def is_logprob(value: float) -> bool:
    """Whether the number is the logarithm of a probability, up to rounding."""
    return -math.inf < value <= MAX_LOGPROB


def _logprob(name: str, value: object) -> float:
    found = finite(f"{name} (None: not known)", value)
    if not is_logprob(found):
        message = f"{name} must be the logarithm of a probability, at most 0, not {found:g}"
        raise ValueError(message)
    return found


def utc(name: str, value: object, earliest: datetime, latest: datetime) -> datetime:
    """A time with a time zone, in UTC, from `earliest` to `latest`."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        message = f"{name} must be a datetime with a time zone, such as datetime.now(UTC)"
        raise TypeError(message)
    found = value.astimezone(UTC)
    if not earliest <= found <= latest:
        message = f"{name} must lie from {earliest.isoformat()} to {latest.isoformat()}"
        raise OrderError(message)
    return found


def metrics(values: Mapping[str, object], own: frozenset[str]) -> dict[str, JsonValue]:
    """Numbers by name; NaN and infinities become null, because JSON has no number for them.

    Raises TypeError for a value that is no number and ValueError for a name in `own`.
    """
    found: dict[str, JsonValue] = {}
    for given, value in values.items():
        name = text("the name of a metric", given)
        refuse_own(name, own)
        read = number(f"metric {name!r}", value)
        plain = json_value(value)
        # Integers of more than 64 bits are texts there.
        found[name] = read if isinstance(plain, str) else plain
    return found


def refuse_own(name: str, own: frozenset[str]) -> None:
    """Raises ValueError for the name of a metric that is recorded anyway."""
    if name in own:
        message = f"metric {name!r} is recorded automatically; omit it, or give it another name"
        raise ValueError(message)


def json_value(value: object, depth: int = 0) -> JsonValue:  # noqa: PLR0911  # one per kind
    """JSON of any value: NaN and infinities become null, values unknown to JSON their text."""
    plain = _plain(value)
    match plain:
        case None | bool():
            return plain
        case Enum():
            return json_value(plain.value, depth)
        case float():
            return plain if math.isfinite(plain) else None
        case int():
            # PostgreSQL's jsonb accepts any integer; readers in other languages take 64 bits.
            return int(plain) if abs(plain) < 1 << 63 else str(plain)
        case str():
            return text("value", plain)
        case Mapping() | list() | tuple() | set() | frozenset() if depth >= MAX_DEPTH:
            return TOO_DEEP
        case Mapping():
            return {text("name", str(k)): json_value(v, depth + 1) for k, v in plain.items()}
        case PurePath() | bytes():
            return text("value", str(plain))
        case list() | tuple() | set() | frozenset():
            return [json_value(item, depth + 1) for item in plain]
        case _:
            return text("value", str(plain))


def json_fields(values: Mapping[str, object]) -> dict[str, JsonValue]:
    """Apply `json_value` to every field."""
    return {text("name", str(name)): json_value(value, 1) for name, value in values.items()}


def _plain(value: object) -> object:
    """Convert a numpy or torch number to a Python number; return anything else unchanged."""
    item = getattr(value, "item", None)
    if item is None or isinstance(value, int | float | str):
        return value
    try:
        return item()
    except (TypeError, ValueError, RuntimeError):  # an array with more than one
        return value


def _items(name: str, values: object) -> Sequence[Any]:
    tolist = getattr(values, "tolist", None)
    found = values if tolist is None else tolist()
    if not isinstance(found, list | tuple):
        message = f"{name} must be a list of numbers, not {_shown(values)}"
        raise TypeError(message)
    return found


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."  # noqa: PLR2004
