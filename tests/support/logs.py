"""Logs for tests: histories in memory or in a real local log."""

from pathlib import Path
from random import Random

from producer.log.local import LocalLog
from producer.log.writer import Record
from schemas.catalogue import topic_of
from tests.reference_fold.histories import LoggedEvent, Shape, history, interleaved
from tests.support.memory_log import MemoryLog


def logged_events(*run_names: str, seed: int = 1, shape: Shape | None = None) -> list[LoggedEvent]:
    """Several trainings at once."""
    return list(
        interleaved(
            [history(name, seed + number, shape) for number, name in enumerate(run_names)],
            Random(seed),
        )
    )


def memory_log(events: list[LoggedEvent], log: MemoryLog | None = None) -> MemoryLog:
    """A history in memory, in the topics where it belongs."""
    log = log or MemoryLog()
    for event in events:
        log.append(event.subject, event.value, topic_of(event.subject, "cua."))
    return log


def write_local_log(path: Path, events: list[LoggedEvent], at_once: int = 100) -> None:
    """Append a history to the local log of an installation."""
    log = LocalLog(path)
    try:
        records = [
            Record(topic_of(event.subject, "cua."), event.subject, event.value) for event in events
        ]
        for start in range(0, len(records), at_once):
            log.append(records[start : start + at_once])
    finally:
        log.close()
