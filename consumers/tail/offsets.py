"""Where to start and where to stop: the grammar of `--offset`, as in rpk.

start  end  N  +N (after the beginning)  -N (before the end)       10m  1h30m (that long ago)
FROM:TO  FROM:  :TO  with N, start or end                          @TIME  @TIME:TIME  @TIME:10m
@:TIME TIME: 2026-11-21, 2026-11-21T03:14:15Z, seconds or milliseconds since 1970, -10m (that long
ago); second one: 10m (after the first)
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from consumers.errors import UsageError
from consumers.log.reader import LogReader, TopicPartition
from schemas.ids import EPOCH_START

DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?")
DATE = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:\d{2})?)?"
)
MILLISECONDS_DIGITS = 13
SECONDS_DIGITS = (9, 10)


@dataclass(frozen=True, slots=True)
class Bound:
    """Where to start or stop, the same for every partition."""

    kind: Literal["start", "end", "at", "after_start", "before_end", "time"]
    offset: int = 0
    """Of `at`, `after_start` and `before_end`."""
    time: datetime | None = None
    """Of `time`, UTC: the first record appended then or later."""


class OffsetSpec(NamedTuple):
    """A parsed `--offset`."""

    start: Bound
    stop: Bound | None
    """Exclusive; None: no stop."""


class Span(NamedTuple):
    """Offsets to read, per partition."""

    starts: dict[TopicPartition, int]
    stops: dict[TopicPartition, int] | None
    """Exclusive; None: no stop."""


START, END = Bound("start"), Bound("end")


def parse_offset(text: str, now: datetime) -> OffsetSpec:
    """Parse `--offset`; relative times count from `now`. UsageError."""
    try:
        spec = (
            _parse_times(text.removeprefix("@"), now)
            if text.startswith("@")
            else _parse_offsets(text, now)
        )
    except OverflowError:  # a time before year 1 or after year 9999
        spec = None
    if spec is None:
        message = (
            f"--offset {text!r} is not an offset; use start, end, N, +N, -N, N:M, N:, :M, 10m,"
            " @TIME or @TIME:TIME (see `cua-project tail --help`)"
        )
        raise UsageError(message)
    return spec


def _parse_offsets(text: str, now: datetime) -> OffsetSpec | None:
    first, colon, second = text.partition(":")
    if not colon:
        ago = parse_duration(text)
        start = Bound("time", time=now - ago) if ago is not None else _parse_bound(text)
        return None if start is None else OffsetSpec(start, None)
    start = _parse_bound(first) if first else START
    stop = _parse_bound(second) if second else None
    if start is None or (second and stop is None):
        return None
    if stop is not None and start.kind == stop.kind == "at" and stop.offset < start.offset:
        message = f"--offset {text!r} ends before it begins; give FROM:TO with TO above FROM"
        raise UsageError(message)
    return OffsetSpec(start, stop)


def _parse_bound(text: str) -> Bound | None:
    if text in {"start", "end"}:
        return START if text == "start" else END
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        return None
    if text[0] == "+":
        return Bound("after_start", int(text[1:]))
    return Bound("before_end", int(text[1:])) if text[0] == "-" else Bound("at", int(text))


def _parse_times(text: str, now: datetime) -> OffsetSpec | None:
    if (only := _parse_time(text, now)) is not None:
        return OffsetSpec(Bound("time", time=only), None)
    # Times contain colons themselves, so any colon may be the separator.
    for colon in (index for index, character in enumerate(text) if character == ":"):
        first, second = text[:colon], text[colon + 1 :]
        start = _parse_time(first, now) if first else None
        if first and start is None:
            continue
        begin = START if start is None else Bound("time", time=start)
        if second in {"", "end"}:
            return OffsetSpec(begin, END if second else None)
        length = parse_duration(second)
        stop = (
            start + length if length is not None and start is not None else _parse_time(second, now)
        )
        if stop is not None:
            return OffsetSpec(begin, Bound("time", time=stop))
    return None


def _parse_time(text: str, now: datetime) -> datetime | None:
    try:
        if re.fullmatch(r"[0-9]+", text):
            if len(text) == MILLISECONDS_DIGITS:
                return EPOCH_START + timedelta(milliseconds=int(text))
            return (
                EPOCH_START + timedelta(seconds=int(text)) if len(text) in SECONDS_DIGITS else None
            )
        if text.startswith("-"):
            ago = parse_duration(text[1:])
            return None if ago is None else now - ago
        if not DATE.fullmatch(text):
            return None
        time = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)


def parse_duration(text: str) -> timedelta | None:
    """`10m`, `1h30m`, `2d`, `500ms`; None if it is not a duration."""
    found = DURATION.fullmatch(text)
    if not text or found is None:
        return None
    days, hours, minutes, seconds, milliseconds = (int(number or 0) for number in found.groups())
    try:
        return timedelta(
            days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds
        )
    except OverflowError:
        return None


def resolve(spec: OffsetSpec, reader: LogReader, partitions: Sequence[TopicPartition]) -> Span:
    """The offsets that the bounds mean now; starts are clamped to the log's beginning and end."""
    beginnings, ends = reader.beginning_offsets(partitions), reader.end_offsets(partitions)

    def offsets(bound: Bound) -> dict[TopicPartition, int]:
        at = reader.offsets_for_time(partitions, bound.time) if bound.time is not None else {}
        return {tp: _offset(bound, beginnings[tp], ends[tp], at.get(tp, 0)) for tp in partitions}

    starts = {
        tp: min(max(offset, beginnings[tp]), ends[tp]) for tp, offset in offsets(spec.start).items()
    }
    return Span(starts, None if spec.stop is None else offsets(spec.stop))


def _offset(bound: Bound, beginning: int, end: int, at_time: int) -> int:
    match bound.kind:
        case "start":
            return beginning
        case "end":
            return end
        case "at":
            return bound.offset
        case "after_start":
            return beginning + bound.offset
        case "before_end":
            return end - bound.offset
        case "time":
            return at_time
