"""What happens to tables while a log grows: projecting, restarts, rebuilds, operators' decisions.

Each operation leaves tables that a replay of the log, from its beginning, must give as well.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from consumers.database.connection import connected
from consumers.fold.parse import parse_record
from consumers.log.reader import TopicPartition
from consumers.projection.loop import ProjectionLoop
from consumers.projection.operators import Operator, UnappliedSummary
from consumers.projection.positions import Positions, SupersededError
from consumers.projection.schema import ProjectedSchema
from consumers.rebuild.parallel import divide
from consumers.rebuild.rebuild import rebuild
from consumers.rebuild.replay import Replay
from schemas.catalogue import topic_of
from tests.reference_fold.strays import append_stray
from tests.reference_fold.writers import LoggedEvent
from tests.support import decisions
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.unapplied import list_unapplied

BATCHES = (1, 2, 7, 50, 400)


@dataclass
class Installation:
    """A log that grows, and the tables made of it."""

    url: str
    log: MemoryLog
    left: list[LoggedEvent]
    """What is still to be appended, in order."""
    random: Random
    done: list[str] = field(default_factory=list)
    """Operations so far, for a test that fails."""

    def grow(self, *, whole: bool = False) -> None:
        """Append some of what is left, or all of it."""
        size = len(self.left) if whole else self.random.randint(0, len(self.left) * 2 // 3 + 1)
        for item in self.left[:size]:
            self.log.append(item.subject, item.value, topic_of(item.subject, "cua."))
        del self.left[:size]


def project(home: Installation) -> None:
    """A new projector, with batches of some size, up to the log's end."""
    size = home.random.choice(BATCHES)
    ProjectionLoop(MemoryReader(home.log), home.url, batch_records=size).run_once()


def write_again(home: Installation) -> None:
    """A writer does not know what was acknowledged, and appends some of it a second time."""
    if home.log.records:
        start = home.random.randrange(len(home.log.records))
        for record in home.log.records[start : start + home.random.randint(1, 20)]:
            home.log.append(record.key, record.value)


def stray(home: Installation) -> None:
    """Another program writes a record of a stream, or of none yet, where that stream is not."""
    for record in home.log.records[-home.random.randint(1, 3) :]:
        if record.key is not None:
            append_stray(home.log, LoggedEvent(record.key, record.value), home.random)


def project_in_parallel(home: Installation) -> None:
    """A projector that is behind, with several writers of partitions of their own."""

    def fill(
        url: str,
        schema: str,
        start: Positions,
        until: Positions,
        keep_going: Callable[[], bool],
        group: int | None = None,
    ) -> int:
        del group
        replays = []
        threads = []
        for shard in divide(start, until, 3):
            replay = Replay(MemoryReader(home.log), url, schema)
            replays.append(replay)
            threads.append(threading.Thread(target=_advance, args=(replay, shard)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert keep_going()
        return sum(replay.num_events for replay in replays)

    ProjectionLoop(MemoryReader(home.log), home.url, parallel=fill).run_once()


def _advance(replay: Replay, shard: dict[TopicPartition, int]) -> None:
    with replay:
        replay.advance(shard)


def rebuild_tables(home: Installation) -> None:
    """Made again from the log, compared, and put right where they differ."""
    result = rebuild(MemoryReader(home.log), home.url)
    assert (result.different, result.changed) == ([], 0), home.done


def come_back_late(home: Installation) -> None:
    """A projector that was stopped between reading and committing, while another went on."""
    with connected(home.url, "test") as connection:
        late = ProjectedSchema(connection, "cua", home.log.log_id)
        late.load()
        read = [
            record
            for record in home.log.records
            if record.offset
            >= late.committed.positions.get(TopicPartition(record.topic, record.partition), 0)
        ]
        ahead = bool(read)
        home.grow()
        project(home)
        if ahead:
            try:
                late.apply([parse_record(record, home.log.log_id) for record in read])
            except SupersededError:
                return
            message = "a projector that was replaced has committed"
            raise AssertionError(message)


def retry(home: Installation) -> None:
    """The operator tries everything parked again."""
    project(home)
    with connected(home.url, "test") as connection:
        Operator(connection, "cua").retry()


def drop_record(home: Installation) -> None:
    """The operator gives up a parked record, or its stream from there on."""
    culprits = [item for item in _unapplied(home, "parked") if item.kind != "behind"]
    if culprits:
        rest = home.random.random() < 0.5
        chosen = home.random.choice(culprits)
        decisions.drop_record(home.log, home.url, chosen.id, rest=rest)


def drop_gap(home: Installation) -> None:
    """The operator gives up what a stream waits for."""
    parked = {item.stream for item in _unapplied(home, "parked")}
    waiting = {item.stream for item in _unapplied(home, "waiting")}
    if streams := sorted(waiting - parked):
        decisions.drop_gap(home.log, home.url, home.random.choice(streams))


def undo_drop(home: Installation) -> None:
    """The operator takes up again what was given up."""
    refused = _unapplied(home, "refused")
    if streams := sorted({item.stream for item in refused if item.kind == "dropped"}):
        decisions.undo_rest(home.log, home.url, home.random.choice(streams))


def _unapplied(home: Installation, state: str) -> list[UnappliedSummary]:
    project(home)
    with connected(home.url, "test") as connection:
        return list_unapplied(Operator(connection, "cua"), state)


OPERATIONS: tuple[Callable[[Installation], None], ...] = (
    project,
    write_again,
    stray,
    project_in_parallel,
    rebuild_tables,
    come_back_late,
    retry,
    drop_record,
    drop_gap,
    undo_drop,
)
