"""Fills a schema from the log in several processes, each with partitions of its own.

A stream is in one partition, a row in one stream: each process reads, folds and commits as a single
one would. A process stops before a record that names no stream, and one process goes on alone: a
decision about such a record is in another partition. Rows that several streams define alike (tasks,
validators) are written in one order. A process that dies leaves its partitions at its last commit.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from consumers.fold.fold import reduce_gc_frequency
from consumers.log.open import open_reader
from consumers.log.reader import TopicPartition
from consumers.projection.loop import UnfinishedError
from consumers.projection.positions import Positions
from consumers.rebuild.replay import Replay
from schemas.installation import Installation

WORTHWHILE_RECORDS = 100_000
"""With fewer, starting the processes costs about as much as they save (docs/decisions)."""
CHECK_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class Parallel:
    """The processes that may be started; each opens the installation's log itself."""

    installation: Installation
    num_processes: int
    worthwhile_records: int = WORTHWHILE_RECORDS

    def fill(
        self,
        url: str,
        schema: str,
        start: Positions,
        until: Positions,
        keep_going: Callable[[], bool] = lambda: True,
        group: int | None = None,
    ) -> int:
        """Apply everything between the positions; the number of events.

        The processes' sessions join `group`. Does nothing if that is not worth several processes.
        `keep_going` is called all the time; False ends the processes, and what they have committed
        stays. UnfinishedError.
        """
        shards = divide(start, until, self.num_processes)
        num_records = sum(max(0, end - start.get(at, 0)) for at, end in until.items())
        if len(shards) < 2 or num_records < self.worthwhile_records:  # noqa: PLR2004  # several
            return 0
        context = multiprocessing.get_context("spawn")
        processes: dict[Connection, SpawnProcess] = {}
        for shard in shards:
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(
                target=_fill,
                args=(self.installation, url, schema, shard, sender, group),
                daemon=True,
            )
            process.start()
            sender.close()
            processes[receiver] = process
        try:
            return _collect(list(processes), schema, keep_going)
        finally:
            for receiver, process in processes.items():
                # A stopped process would take no SIGTERM, and what it has not committed is undone.
                process.kill()
                process.join()
                receiver.close()


def _collect(waiting: list[Connection], schema: str, keep_going: Callable[[], bool]) -> int:
    events = 0
    while waiting and keep_going():
        for receiver in wait(waiting, CHECK_EVERY_S):
            assert isinstance(receiver, Connection)  # noqa: S101  # nothing else is waited for
            try:
                result: int | str = receiver.recv()
            except EOFError:
                result = "it ended without a result"
            if isinstance(result, str):
                message = f"a process filling the schema {schema} failed: {result}"
                raise UnfinishedError(message)
            events += result
            waiting.remove(receiver)
    return events


def divide(
    positions: Mapping[TopicPartition, int], until: Mapping[TopicPartition, int], num_shards: int
) -> list[Positions]:
    """The partitions that are behind, in shards of about equal work, with their end offsets.

    Longest first, each to the shard with the least work.
    """
    shards: list[Positions] = [{} for _ in range(num_shards)]
    work = [0] * num_shards
    lags = {at: end - positions.get(at, 0) for at, end in until.items()}
    for at in sorted(lags, key=lambda at: (-lags[at], at)):
        if lags[at] > 0:
            least = work.index(min(work))
            shards[least][at] = until[at]
            work[least] += lags[at]
    return [shard for shard in shards if shard]


def _fill(
    installation: Installation,
    url: str,
    schema: str,
    until: Positions,
    result: Connection,
    group: int | None,
) -> None:
    """Another process's work: apply up to these positions.

    Sends the number of events, or the error as text.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    reduce_gc_frequency()
    try:
        reader = open_reader(installation)
        with Replay(reader, url, schema, group=group, is_shard=True) as replay:
            replay.advance(until)
        reader.close()
        result.send(replay.num_events)
    except Exception as error:  # noqa: BLE001  # the process's boundary: the parent raises it
        result.send(f"{type(error).__name__}: {error}")


def _end_with_parent() -> None:
    """End this process when its parent is killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # noqa: S101  # this runs in a child
    wait([parent.sentinel])
    os._exit(1)
