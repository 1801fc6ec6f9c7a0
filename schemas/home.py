"""Where a stream's records are: in one partition of its topic, its home, the same on every log.

The home is the CRC-32 of the stream's name modulo the topic's number of homes, as in librdkafka's
`consistent` partitioner. A topic has 12 homes, or as many as it has partitions where those are
fewer. So a topic of 12 or more may grow: no stream moves. One of fewer may not; its number of homes
is part of the log's id, and with another number it is another log. A record anywhere else than in
its stream's home is foreign: it is in no stream.

Producer and consumers use only this.
"""

import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from schemas.catalogue import NUM_PARTITIONS, TOPIC_NAMES, TOPICS, stream_kind

MAX_HOMES = NUM_PARTITIONS
"""Of a topic, and those of every topic of the local log."""
MANY = f"{MAX_HOMES} or more"
SIZES = ":"
"""In a log's id, before its numbers of homes; cluster ids and uuids have none."""


class Home(NamedTuple):
    """The home of one stream."""

    topic: str
    """Without the installation's prefix: `rollouts`."""
    partition: int

    def is_at(self, topic: str, partition: int) -> bool:
        """Whether it is this partition of a topic, whatever the topic's prefix."""
        return partition == self.partition and topic.endswith(self.topic)


def topic_name(topic: str) -> str:
    """A topic's name without its prefix: `rollouts`. Other people's topics keep theirs whole."""
    return next((name for name in TOPIC_NAMES if topic.endswith(name)), topic)


def home_partition(key: str, partitions: int) -> int:
    """The home of a stream, or of any other key, in a topic of so many partitions."""
    return zlib.crc32(key.encode()) % min(MAX_HOMES, partitions)


def name_sizes(partitions: Mapping[str, int]) -> str:
    """The end of a log's id: numbers of homes below 12, from topic -> number of partitions.

    `:rollouts=3,training=1`; "" where every topic has 12 homes.
    """
    small = {
        name: number
        for topic, number in partitions.items()
        for name in TOPIC_NAMES
        if topic.endswith(name) and number < MAX_HOMES
    }
    named = ",".join(f"{name}={number}" for name, number in sorted(small.items()))
    return SIZES + named if named else ""


@lru_cache(maxsize=64)
def _sizes(log_id: str) -> dict[str, int]:
    """Topic without its prefix -> number of homes, of those that the id names."""
    named = log_id.partition(SIZES)[2]
    pairs = (part.partition("=") for part in named.split(",") if part)
    return {name: int(number) for name, _, number in pairs}


@lru_cache(maxsize=50_000)
def find_home(subject: str, log_id: str) -> Home:
    """The home of a stream in the log with this id. ValueError for an unknown kind of stream.

    Cached: every record of a stream repeats its subject.
    """
    topic = TOPICS[stream_kind(subject)]
    return Home(topic, home_partition(subject, _sizes(log_id).get(topic, MAX_HOMES)))


def is_foreign(key: str, topic: str, partition: int, log_id: str) -> bool:
    """Whether a record with this key is not in its stream's home. False if the key names none."""
    try:
        home = find_home(key, log_id)
    except ValueError:
        return False
    return not home.is_at(topic, partition)


def describe_growth(before: str, now: str) -> str | None:
    """What to say when one log's id names other numbers of homes than before; None: it does not.

    `before`, `now`: ids of logs.
    """
    if before == now or before.partition(SIZES)[0] != now.partition(SIZES)[0]:
        return None
    old: dict[str, object] = {**_sizes(before)}
    new: dict[str, object] = {**_sizes(now)}
    grown = [
        f"{name} had {old.get(name, MANY)} partitions and has {new.get(name, MANY)} now"
        for name in TOPIC_NAMES
        if old.get(name) != new.get(name)
    ]
    return (
        f"a topic of fewer than {MAX_HOMES} partitions has grown, so its streams would go on in"
        f" other partitions (topic {'; topic '.join(grown)}); this log cannot be continued: choose"
        f" another CUA_TOPIC_PREFIX, whose topics are made with {MAX_HOMES} partitions, and another"
        " database for its tables (docs/kafka.md)"
    )
