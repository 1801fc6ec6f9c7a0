"""Puts records where another program might: outside of their stream's home, so in no stream."""

from collections.abc import Sequence
from random import Random

from tests.reference_fold.reference_home import stream_in
from tests.reference_fold.writers import LoggedEvent
from tests.support.memory_log import MemoryLog

TOPICS = ("cua.training", "cua.rollouts")


def append_stray(log: MemoryLog, event: LoggedEvent, random: Random) -> None:
    """One record, with or without its key, in any partition of either topic: also in its home."""
    names_itself = stream_in(None, event.value) is not None
    key = None if names_itself and random.random() < 0.3 else event.subject
    partition = random.randrange(log.num_partitions + 1)
    log.append(key, event.value, random.choice(TOPICS), partition % log.num_partitions)


def append_with_strays(
    log: MemoryLog, events: Sequence[LoggedEvent], strays: int, random: Random
) -> None:
    """The events, and so many of them a second time somewhere: some before, some after."""
    before = random.sample(range(len(events)), min(strays, len(events)))
    for number, event in enumerate(events):
        if number in before[::2]:
            append_stray(log, event, random)
        log.append(event.subject, event.value)
        if number in before[1::2]:
            append_stray(log, event, random)
