"""Fills a schema from the log in several processes, each with partitions of its own.

Streams lie in one partition, rows in one stream.

Each process reads, folds and commits as a single one would; their positions are different rows, and
what two of them state alike (tasks, validators) is written in one order. A process that dies leaves
its partitions where its last commit put them.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from consumers.errors import CuaProjectError
from consumers.fold.garbage_collection import reduce_gc_frequency
from consumers.log.open import open_reader
from consumers.log.reader import TopicPartition
from consumers.projection.positions import Positions
from consumers.projection.replay import Replay
from schemas.installation import Installation

WORTHWHILE_RECORDS = 300_000
"""A process takes one to two CPU-seconds to start; with fewer records one process alone is done
sooner (measured at 68,000)."""
LOOK_EVERY_S = 0.5


class UnfinishedError(CuaProjectError):
    """A process failed; what the others and it committed stays."""


@dataclass(frozen=True, slots=True)
class Parallel:
    """How other processes get to the log, and how many there may be."""

    installation: Installation
    num_processes: int
    worthwhile_records: int = WORTHWHILE_RECORDS

    def is_worthwhile(self, lag: int) -> bool:
        """Whether to start them at all."""
        return self.num_processes > 1 and lag >= self.worthwhile_records

    def fill(
        self,
        url: str,
        schema: str,
        positions: Positions,
        until: Positions,
        go_on: Callable[[], bool] = lambda: True,
    ) -> int:
        """Apply everything between the positions; the number of events.

        `go_on` is asked all the time: False ends the processes, and what they have committed stays.
        UnfinishedError when one failed.
        """
        context = multiprocessing.get_context("spawn")
        answers: dict[Connection, SpawnProcess] = {}
        for shard in divide(positions, until, self.num_processes):
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(
                target=_fill, args=(self.installation, url, schema, shard, sender), daemon=True
            )
            process.start()
            sender.close()
            answers[receiver] = process
        try:
            return self._collect(list(answers), schema, go_on)
        finally:
            for receiver, process in answers.items():
                process.terminate()
                process.join()
                receiver.close()

    @staticmethod
    def _collect(waiting: list[Connection], schema: str, go_on: Callable[[], bool]) -> int:
        events = 0
        while waiting and go_on():
            for receiver in wait(waiting, LOOK_EVERY_S):
                assert isinstance(receiver, Connection)  # noqa: S101  # nothing else is waited for
                try:
                    answer: int | str = receiver.recv()
                except EOFError:
                    answer = "it ended without a word"
                if isinstance(answer, str):
                    message = f"a process that filled {schema} failed: {answer}"
                    raise UnfinishedError(message)
                events += answer
                waiting.remove(receiver)
        return events


def divide(
    positions: Mapping[TopicPartition, int], until: Mapping[TopicPartition, int], num_shards: int
) -> list[Positions]:
    """The places that are behind, in shards of about equal work.

    The longest first, each to the shard with the least.
    """
    shards: list[Positions] = [{} for _ in range(num_shards)]
    work = [0] * num_shards
    lags = {place: end - positions.get(place, 0) for place, end in until.items()}
    for place in sorted(lags, key=lambda place: (-lags[place], place)):
        if lags[place] > 0:
            least = work.index(min(work))
            shards[least][place] = until[place]
            work[least] += lags[place]
    return [shard for shard in shards if shard]


def _fill(
    installation: Installation, url: str, schema: str, until: Positions, answer: Connection
) -> None:
    """In another process: apply up to these positions.

    Sends the number of events, or what went wrong as text.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    reduce_gc_frequency()
    try:
        reader = open_reader(installation)
        with Replay(reader, url, schema) as replay:
            replay.advance(until)
        reader.close()
        answer.send(replay.num_events)
    except Exception as error:  # noqa: BLE001  # the process's boundary: whoever started it raises this
        answer.send(f"{type(error).__name__}: {error}")


def _end_with_parent() -> None:
    """A process whose parent was killed must not go on alone."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # noqa: S101  # this runs in a child
    wait([parent.sentinel])
    os._exit(1)
