"""Histories that stop anywhere: what an event wrote is still there when nothing came after it."""

from collections import Counter
from collections.abc import Callable
from random import Random

from tests.reference_fold.writers import LoggedEvent


def cut_streams(events: list[LoggedEvent], random: Random) -> list[LoggedEvent]:
    """The events without the end of some streams: of each a prefix, whatever the others have."""

    def anywhere(length: int) -> int:
        return length if random.random() < 0.3 else random.randint(1, length)

    return _prefixes(events, anywhere)


def cut_streams_at(events: list[LoggedEvent], number: int) -> list[LoggedEvent]:
    """Every stream's prefix of this many events, counted again from one where it is shorter."""
    return _prefixes(events, lambda length: 1 + number % length)


def _prefixes(events: list[LoggedEvent], choose: Callable[[int], int]) -> list[LoggedEvent]:
    lengths = Counter(event.subject for event in events)
    left = {subject: choose(length) for subject, length in lengths.items()}
    found = []
    for event in events:
        left[event.subject] -= 1
        if left[event.subject] >= 0:
            found.append(event)
    return found
