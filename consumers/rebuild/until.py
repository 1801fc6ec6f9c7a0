"""Positions and durations as text: what `rebuild` takes and prints."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from consumers.errors import UsageError
from consumers.log.reader import LogReader, TopicPartition
from consumers.projection.positions import Positions

POLL_S = 1.0


def parse_until(text: str, reader: LogReader) -> Positions:
    """The positions that a text means: `topic/partition=offset,...`, or an ISO 8601 time.

    A time (UTC unless it names a zone) means, per partition, the first record appended at or after
    it. UsageError for anything else, and for what the log does not have: a time at or before its
    first record, after its last one or in the future, or positions of which every one is 0.
    """
    if "=" in text:
        positions = _within(dict(_parse_position(part) for part in text.split(",")), reader)
        if not any(positions.values()):
            message = f"--until {text}: there is no record before these positions"
            raise UsageError(message)
        return positions
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        message = (
            f"{text!r} is neither a time such as 2026-03-01T12:00:00Z nor positions such as"
            " cua.training/0=17,cua.rollouts/3=120"
        )
        raise UsageError(message) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return _positions_at(moment, reader)


def _positions_at(moment: datetime, reader: LogReader) -> Positions:
    partitions = reader.partitions()
    first, end = reader.beginning_offsets(partitions), reader.end_offsets(partitions)
    if first == end:
        message = "--until: the log is empty"
        raise UsageError(message)
    positions = reader.offsets_for_time(partitions, moment)
    filled = [at for at in partitions if end[at] > first[at]]
    if positions == end:
        last = _appended_at(reader, {at: end[at] - 1 for at in filled}, max)
        message = (
            f"--until {_text(moment)} is beyond the end of the log{last}; a rebuild without --until"
            " takes everything"
        )
        raise UsageError(message)
    if positions == first:
        earliest = _appended_at(reader, {at: first[at] for at in filled}, min)
        message = f"--until {_text(moment)} is before the beginning of the log{earliest}"
        raise UsageError(message)
    return positions


def _appended_at(
    reader: LogReader,
    offsets: Positions,
    choose: Callable[[Iterable[datetime]], datetime],
) -> str:
    """When the first or last of these records was appended, for a message."""
    times: list[datetime] = []
    for at, offset in offsets.items():
        reader.seek({at: offset})
        # A partition may end with what is no record, such as a transaction's marker.
        times += [record.appended_at for record in reader.poll(1, POLL_S)]
    return f", which is at {_text(choose(times))}" if times else ""


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _parse_position(part: str) -> tuple[TopicPartition, int]:
    name, _, offset = part.strip().partition("=")
    topic, _, partition = name.rpartition("/")
    if not (topic and partition.isdecimal() and offset.isdecimal()):
        message = f"{part!r} is not a position; give topic/partition=offset"
        raise UsageError(message)
    return TopicPartition(topic, int(partition)), int(offset)


def _within(positions: Positions, reader: LogReader) -> Positions:
    ends = reader.end_offsets(reader.partitions())
    for at, offset in positions.items():
        if offset > ends.get(at, 0):
            message = (
                f"{at.topic}/{at.partition}={offset} is beyond the log: that partition ends at"
                f" {ends[at]}"
                if at in ends
                else f"the log has no partition {at.topic}/{at.partition}"
            )
            raise UsageError(message)
    return positions


def format_positions(positions: Positions) -> str:
    """The text that `parse_until` reads back; a missing partition means 0."""
    return ",".join(
        f"{at.topic}/{at.partition}={offset}" for at, offset in sorted(positions.items()) if offset
    )
