"""Which trainings the records of each block of offsets name: an index of the log, not rows of it.

Every record that was read counts, whatever became of it. Every block below the reader's position
has an entry, if only an empty one: a block without one means that the index is not whole.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from consumers.log.reader import TopicPartition

if TYPE_CHECKING:
    # Imports pydantic, which `cua-project positions` does without.
    from consumers.fold.parse import ParsedRecord

BLOCK_OFFSETS = 128
"""Larger blocks: fewer rows, more records of other trainings to skip. 10 million
events have 80,000 rows of 100 bytes."""
ANY = "*"
"""For a record that may name any training."""
MAX_NAMED = 1_000
"""Ids in a record that is no event; one with more may name any training."""

Blocks = dict[tuple[str, int, int], set[str]]
"""(topic, partition, block) -> ids of trainings."""

# Looked for at every place: ids may overlap in what is no event.
_ID = re.compile(rb"(?=([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}))")


class TrainingBlocks:
    """What the tables know of the blocks that are written now. Not thread-safe.

    `clear` it when a batch was not committed: it takes what it returned for stored.
    """

    def __init__(self) -> None:
        self._stored: dict[TopicPartition, tuple[int, set[str]]] = {}
        """The last block of each partition, and what is stored of it."""

    def clear(self) -> None:
        """Know nothing of what is stored."""
        self._stored.clear()

    def take(
        self,
        parsed_records: "Iterable[ParsedRecord]",
        base: Mapping[TopicPartition, int],
        read_to: Mapping[TopicPartition, int],
    ) -> Blocks:
        """What is to be stored of these records; the offsets from `base` to `read_to` were read."""
        found: dict[tuple[str, int, int], set[UUID | str]] = {
            (*place, block): set()
            for place, end in read_to.items()
            if end > base[place]
            for block in range(base[place] // BLOCK_OFFSETS, (end - 1) // BLOCK_OFFSETS + 1)
        }
        for parsed in parsed_records:
            record = parsed.record
            place = record.topic, record.partition, record.offset // BLOCK_OFFSETS
            named = found.setdefault(place, set())
            envelope = parsed.envelope
            if envelope is None:
                named.update(_named_anywhere(record.value))
                continue
            if envelope.training_id is not None:
                named.add(envelope.training_id)
            if envelope.subject.startswith("training/"):
                named.add(envelope.subject[len("training/") :])
        new: Blocks = {}
        for topic, partition, block in sorted(found):
            # Not for every record: turning an id into text takes longer than all else here.
            names = {str(item) for item in found[topic, partition, block]}
            at = TopicPartition(topic, partition)
            last, stored = self._stored.get(at, (-1, set[str]()))
            if block != last:
                self._stored[at] = (block, set(names))
                new[topic, partition, block] = names
            elif not names <= stored:
                new[topic, partition, block] = names - stored
                stored |= names
        return new


def _named_anywhere(value: bytes) -> set[str]:
    """Ids of whatever a record that is no event contains."""
    found: set[str] = set()
    for match in _ID.finditer(value):
        found.add(match[1].decode())
        if len(found) > MAX_NAMED:
            return {ANY}
    return found
