"""Makes a local log of any length in minutes: generated histories of trainings, inserted in bulk.

One training, `TRAINING`, is a whole history that can be continued: its first half lies at the
beginning of the log and its second half at the end.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import count, zip_longest

from producer.log.local import INSERT, LocalLog
from schemas.catalogue import NUM_PARTITIONS, TOPIC_NAMES, topic_of
from schemas.home import home_partition
from schemas.installation import Installation
from tests.reference_fold.histories import LoggedEvent, Shape, history

TRAINING = "measured"
SHAPE = Shape(
    steps=6,
    groups=4,
    group_size=4,
    turns=5,
    response_chars=100,
    prompt_tokens=60,
    completion_tokens=12,
    has_trouble=False,
)
AT_ONCE = 4
"""Trainings that write at the same time."""
EVENTS_PER_TRANSACTION = 20_000
APPENDED_EVERY_US = 200
BEGAN_US = 1_780_000_000_000_000


def long_history(num_events: int) -> Iterator[LoggedEvent]:
    """The events of such a log, in order."""
    own = history(TRAINING, 1, SHAPE)
    half = len(own) // 2
    yield from own[:half]
    yield from _others(max(0, num_events - len(own)))
    yield from own[half:]


def make_long_log(installation: Installation, num_events: int) -> int:
    """Fill a new local log with at least `num_events` of other trainings; how many it has then."""
    topics = [installation.topic_prefix + name for name in TOPIC_NAMES]
    path = installation.local_log_path
    LocalLog(path, topics=topics).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -262144")
        places = {
            (topic, partition): number
            for number, topic, partition in connection.execute(
                "SELECT id, topic, partition FROM partitions"
            )
        }
        insert = _Insert(connection, places, installation.topic_prefix)
        insert.all(long_history(num_events))
    return insert.next_position - 1


def _others(num_events: int) -> Iterator[LoggedEvent]:
    """Events of other trainings, a few at a time."""
    given = 0
    for first in count(0, AT_ONCE):
        numbers = range(first, first + AT_ONCE)
        for events in zip_longest(*(history(f"other-{each}", each, SHAPE) for each in numbers)):
            present = [event for event in events if event is not None]
            yield from present
            given += len(present)
            if given >= num_events:
                return


class _Insert:
    """Rows by the file's own layout, in large transactions."""

    def __init__(
        self, connection: sqlite3.Connection, places: dict[tuple[str, int], int], prefix: str
    ) -> None:
        self._connection = connection
        self._places = places
        self._prefix = prefix
        self._ends = dict.fromkeys(places.values(), 0)
        self.next_position = 1

    def all(self, events: Iterator[LoggedEvent]) -> None:
        """Insert them in order."""
        rows: list[tuple[int, int, int, int, str, bytes]] = []
        for subject, value in events:
            place = topic_of(subject, self._prefix), home_partition(subject, NUM_PARTITIONS)
            number = self._places[place]
            offset = self._ends[number]
            self._ends[number] = offset + 1
            position = self.next_position
            self.next_position += 1
            at = BEGAN_US + position * APPENDED_EVERY_US
            rows.append((position, number, offset, at, subject, value))
            if len(rows) >= EVENTS_PER_TRANSACTION:
                self._commit(rows)
        self._commit(rows)

    def _commit(self, rows: list[tuple[int, int, int, int, str, bytes]]) -> None:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        self._connection.executemany(INSERT, rows)
        self._connection.executemany(
            "UPDATE partitions SET next_offset = ? WHERE id = ?",
            [(end, number) for number, end in self._ends.items()],
        )
        at = BEGAN_US + self.next_position * APPENDED_EVERY_US
        execute("UPDATE head SET next_position = ?, appended_at = ?", (self.next_position, at))
        execute("COMMIT")
        rows.clear()
