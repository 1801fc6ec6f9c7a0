"""Where a stream's records must be, for the reference fold.

Written out, not derived from the code: CRC-32 of the stream's name, modulo 12 or the number of the
topic's partitions, whichever is less.
"""

import json
from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID
from zlib import crc32

TOPIC_OF = {
    "training": "training",
    "evaluation": "training",
    "annotation": "training",
    "record": "training",
    "rollout": "rollouts",
    "environment": "rollouts",
    "scoring": "rollouts",
}


class Placed(NamedTuple):
    """A record where a log has it."""

    topic: str
    partition: int
    key: str | None
    value: bytes


def stream_in(key: str | None, value: bytes) -> str | None:
    """The stream that a record names: its event's subject, else its key."""
    try:
        subject = json.loads(value)["subject"]
    except (ValueError, KeyError, TypeError):
        subject = None
    for name in (key, subject) if key is not None else (subject,):
        if is_stream(name):
            return str(name)
    return None


def is_stream(name: object) -> bool:
    """Whether this is the name of a stream."""
    if not isinstance(name, str):
        return False
    kind, _, owner = name.partition("/")
    try:
        return kind in TOPIC_OF and str(UUID(owner)) == owner
    except ValueError:
        return False


def is_foreign(record: Placed, partitions: int) -> bool:
    """Whether a record is not where its stream's are, in topics of so many partitions."""
    name = stream_in(record.key, record.value)
    if name is None:
        return False
    home = crc32(name.encode()) % min(12, partitions)
    topic = TOPIC_OF[name.partition("/")[0]]
    return record.partition != home or not record.topic.endswith(topic)


def at_home(
    records: Iterable[tuple[str, int, int, str | None, bytes, object]], partitions: int
) -> tuple[list[tuple[str | None, bytes]], int]:
    """(key, value) of a log's records that are in a stream or name none; how many are foreign."""
    own, foreign = [], 0
    for topic, partition, _, key, value, _ in records:
        if is_foreign(Placed(topic, partition, key, value), partitions):
            foreign += 1
        else:
            own.append((key, value))
    return own, foreign
