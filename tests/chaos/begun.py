"""From which offsets a training has to be read: written down before anybody begins it.

Stands for the manifest of a training's run folder. Any number of processes may begin a training,
also one that slept for long; each notes the log's ends first. Whoever claims the training after it
has begun the one before, so those notes are a bound for its records.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from producer.log.writer import TopicPartition

Offsets = dict[TopicPartition, int]


class Begun:
    """The notes of one emitter, in files beside the reports."""

    def __init__(self, folder: Path, emitter: int) -> None:
        self._folder = folder
        self._emitter = emitter

    def note(self, number: int, ends: Offsets) -> None:
        """Before training `number` is read or claimed."""
        line = json.dumps({f"{place.topic}/{place.partition}": at for place, at in ends.items()})
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        descriptor = os.open(self._path(number), flags, 0o644)
        try:
            os.write(descriptor, line.encode() + b"\n")
        finally:
            os.close(descriptor)

    def is_begun(self, number: int) -> bool:
        """Whether anybody has begun it."""
        return self._path(number).exists()

    def bound(self, number: int) -> Offsets:
        """Offsets at or before every record of training `number`; a missing place means 0."""
        lowest: Offsets = {}
        for ends in self._read(number - 1):
            lowest = {place: min(at, lowest.get(place, at)) for place, at in ends.items()}
        return lowest

    def _read(self, number: int) -> Iterator[Offsets]:
        path = self._path(number)
        for line in path.read_bytes().splitlines() if path.exists() else []:
            pairs = ((*place.rsplit("/", 1), at) for place, at in json.loads(line).items())
            yield {TopicPartition(topic, int(partition)): at for topic, partition, at in pairs}

    def _path(self, number: int) -> Path:
        return self._folder / f"begun-{self._emitter}-{number}"
