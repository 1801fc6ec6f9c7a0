"""What this home has read of Kafka's training topic: how far, and which trainings are before that.

A new name is new only if nothing of it is in its partition, and Kafka has no index to ask. So each
home reads each record there once: a name that is not among those it knows can only be further on.
The file may be deleted at any time; the partition is then read again.
"""

import json
import logging
import os
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from producer.log.writer import TopicPartition

logger = logging.getLogger(__name__)


class Known(NamedTuple):
    """What is known of one partition."""

    read_to: int
    """Every offset below was read."""
    trainings: frozenset[str]
    """Keys of the trainings that have a record there."""


NOTHING = Known(0, frozenset())
_FILE = TypeAdapter(dict[str, dict[str, Known]])


class KnownTrainings:
    """One log's part of the file. Two processes that save at once: one of them wins, both are true.

    A file that cannot be read counts as empty; one that cannot be written stays as it is.
    """

    def __init__(self, path: Path, log_id: str) -> None:
        self._path = path
        self._log_id = log_id

    def of(self, place: TopicPartition) -> Known:
        """What is known of a partition of this log."""
        return self._load().get(_name(place), NOTHING)

    def add(self, place: TopicPartition, read_to: int, trainings: Collection[str]) -> None:
        """All below `read_to` was read, and holds these trainings besides those known."""
        partitions = self._load()
        before = partitions.get(_name(place), NOTHING)
        known = Known(max(read_to, before.read_to), before.trainings | frozenset(trainings))
        if known == before:
            return
        partitions[_name(place)] = known
        content = {name: [at, sorted(found)] for name, (at, found) in partitions.items()}
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}.part")
        try:
            # Another log's part goes: this home has left it.
            temporary.write_text(json.dumps({self._log_id: content}), encoding="utf-8")
            temporary.replace(self._path)
        except OSError as error:
            logger.debug("cannot write %s: %s", self._path, error)

    def forget(self) -> None:
        """The log is no longer what was read."""
        self._path.unlink(missing_ok=True)

    def _load(self) -> dict[str, Known]:
        try:
            return _FILE.validate_json(self._path.read_bytes()).get(self._log_id, {})
        except (OSError, ValidationError):
            return {}


def _name(place: TopicPartition) -> str:
    return f"{place.topic}/{place.partition}"
