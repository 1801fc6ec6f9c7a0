"""How MySQL writes its values as texts: decimals, doubles, dates and times."""

import math
import re
import struct
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Final, Literal

TimeKind = Literal["DATE", "DATETIME", "TIME"]

FIXED_DIGITS: Final = 15
"""A double is written without an exponent while its point is at most this far from its first
digit."""
_DATE: Final = r"(?:(?P<year>\d{4})[-/.](?P<month>\d\d?)[-/.](?P<day>\d\d?)|(?P<digits>\d{8}))"
_CLOCK: Final = r"(?P<hour>\d{1,3}):(?P<minute>\d\d?)(?::(?P<second>\d\d?)(?P<fraction>\.\d*)?)?"
DATE_TIME: Final = re.compile(rf"\s*{_DATE}(?:[T\s]+{_CLOCK})?\s*")
TIME: Final = re.compile(rf"\s*(?P<sign>-?){_CLOCK}\s*")
NO_DATE: Final = "0000-00-00"
MIDNIGHT: Final = "00:00:00"
MAX_HOURS: Final = 838
LAST_MINUTE: Final = 59


def decimal_text(value: float | None, scale: int) -> str | None:
    """Write a DECIMAL with its digits after the point: 300.00."""
    if value is None:
        return None
    try:
        exact = Decimal(repr(value)).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    except InvalidOperation:
        return double_text(float(value))
    return f"{exact + 0:f}"  # + 0 avoids -0.00


def double_text(value: float) -> str:
    """Write a double with the fewest digits: 20, 0.1, 0.00001, 1e15, 1.5e-16."""
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    if not isinstance(exponent, int):
        return str(value)
    shown = "".join(map(str, digits)).rstrip("0") or "0"
    point = len(digits) + exponent
    minus = "-" if sign else ""
    if shown == "0":
        return "-0" if sign else "0"
    if -FIXED_DIGITS < point <= FIXED_DIGITS:
        return f"{minus}{Decimal(shown).scaleb(point - len(shown)):f}"
    mantissa = shown[0] + (f".{shown[1:]}" if len(shown) > 1 else "")
    return f"{minus}{mantissa}e{point - 1}"


def single(value: float) -> float:
    """The value that a FLOAT stores; infinite beyond its range."""
    try:
        (held,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        return math.copysign(math.inf, value)
    return float(held)


def shown_single(value: float) -> float:
    """The value that is displayed for a FLOAT, with six digits."""
    return float(f"{value:.6g}")


def as_text(value: float | str | bytes) -> str:
    """A value in a text, as in CONCAT."""
    if isinstance(value, float):
        return double_text(value)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def time_text(kind: TimeKind, given: str) -> str | None:
    """Normalise a date or time to the form that MySQL stores; None if MySQL rejects it."""
    if kind == "TIME":
        return _time(given)
    if given.strip() in {NO_DATE, f"{NO_DATE} {MIDNIGHT}"}:
        return NO_DATE if kind == "DATE" else f"{NO_DATE} {MIDNIGHT}"
    found = DATE_TIME.fullmatch(given)
    if found is None:
        return None
    digits = found["digits"]
    year, month, day = (
        (digits[:4], digits[4:6], digits[6:])
        if digits
        else (found["year"], found["month"], found["day"])
    )
    hour, minute, second = (int(found[name] or 0) for name in ("hour", "minute", "second"))
    with suppress(ValueError, OverflowError):  # the day does not exist
        moment = datetime(int(year), int(month), int(day), hour, minute, second)  # noqa: DTZ001  # MySQL times have no zone
        if kind == "DATE":
            return moment.date().isoformat()
        return str(moment + timedelta(seconds=_rounding(found["fraction"])))
    return None


def clock_text(length: timedelta) -> str:
    """Write a TIME: 09:05:00, -01:00:00."""
    seconds = round(abs(length).total_seconds())
    sign = "-" if length < timedelta(0) else ""
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _time(given: str) -> str | None:
    found = TIME.fullmatch(given)
    if found is None:
        return None
    hour, minute, second = (int(found[name] or 0) for name in ("hour", "minute", "second"))
    if hour > MAX_HOURS or minute > LAST_MINUTE or second > LAST_MINUTE:
        return None
    length = timedelta(hours=hour, minutes=minute, seconds=second + _rounding(found["fraction"]))
    return clock_text(-length if found["sign"] else length)


def _rounding(fraction: str | None) -> int:
    """1 if the fraction rounds up to the next second, else 0."""
    return int(fraction is not None and fraction[1:2] >= "5")
