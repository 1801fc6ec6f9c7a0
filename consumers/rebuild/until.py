"""Positions as text: what `rebuild --until` takes and prints."""

from datetime import UTC, datetime

from consumers.errors import UsageError
from consumers.log.reader import LogReader, TopicPartition
from consumers.projection.positions import Positions


def parse_until(text: str, reader: LogReader) -> Positions:
    """The positions that a text means: `topic/partition=offset,...`, or an ISO 8601 time.

    A time (UTC unless it names a zone) means, per partition, the first record appended at or after
    it. UsageError for anything else.
    """
    if "=" in text:
        return _within(dict(_parse_position(part) for part in text.split(",")), reader)
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
    return reader.offsets_for_time(reader.partitions(), moment)


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
