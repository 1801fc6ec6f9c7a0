"""Where a training's records are in Kafka: what the tables know, asked of `cua-project positions`.

An answer is a bound that holds for one log up to a position, never more: what lies behind it is
read. No answer, or one about another log, costs only the time to read everything.
"""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from pydantic import TypeAdapter, ValidationError

from producer.log.project_command import NoAnswerError, ask_project
from producer.log.writer import TopicPartition

ASK_TIMEOUT_S = 15.0
"""An embedded database that does not run is started, which takes a second or two."""
ENTRY = ("consumers.projection.places_answer",)
"""Prints what `cua-project positions --training-id ID --json` does, with fewer imports."""
NEAR_OFFSETS = 256
"""A gap so small is read, not skipped: it lies in the batch that Kafka sends anyway."""


class TrainingPlaces(NamedTuple):
    """The tables' answer about one training."""

    indexed: Mapping[TopicPartition, range]
    """Offsets of which they know whose records are there."""
    found: Mapping[TopicPartition, Sequence[range]]
    """Where records of the training may be, within those; ascending."""
    reached: tuple[int, int]
    """(epoch, sequence) of the training's stream in the tables; (0, 0): they have none of it."""

    def within(self, at: TopicPartition, span: range) -> list[range]:
        """The part of these offsets in which the training's records may be, ascending."""
        indexed = self.indexed.get(at, range(span.start, span.start))
        pieces = [
            range(span.start, indexed.start),
            *self.found.get(at, ()),
            range(indexed.stop, span.stop),
        ]
        merged: list[range] = []
        for piece in pieces:
            start, stop = max(piece.start, span.start), min(piece.stop, span.stop)
            if start >= stop:
                continue
            if merged and start - merged[-1].stop <= NEAR_OFFSETS:
                merged[-1] = range(merged[-1].start, stop)
            else:
                merged.append(range(start, stop))
        return merged


class _Partition(NamedTuple):
    topic: str
    partition: int
    indexed: tuple[int, int]
    found: list[tuple[int, int]]


class _Answer(NamedTuple):
    log_id: str | None
    epoch: int
    sequence: int
    partitions: list[_Partition]


_ANSWER = TypeAdapter(dict[str, object])
_FIELDS = TypeAdapter(_Answer)


def ask_tables(
    training_id: UUID,
    log_id: str,
    stop: threading.Event | None = None,
    *,
    home: Path | None = None,
) -> TrainingPlaces:
    """Ask the configured database, or the embedded one of a home if there is one.

    `home`: of the trainer; None: CUA_HOME. NoAnswerError when there is none, it does not answer in
    time or has the tables of another log; StopRequestedError once `stop` is set.
    """
    environ = {} if home is None else {"CUA_HOME": str(home)}
    text = ask_project([str(training_id)], ASK_TIMEOUT_S, stop, environ, entry=ENTRY)
    answer = read_answer(text)
    if answer.log_id != log_id:
        message = f"the tables are those of the log {answer.log_id}, not of {log_id}"
        raise NoAnswerError(message)
    return TrainingPlaces(
        {
            TopicPartition(partition.topic, partition.partition): range(*partition.indexed)
            for partition in answer.partitions
        },
        {
            TopicPartition(partition.topic, partition.partition): [
                range(*offsets) for offsets in partition.found
            ]
            for partition in answer.partitions
        },
        (answer.epoch, answer.sequence),
    )


def read_answer(text: str) -> _Answer:
    """What `cua-project positions --json` printed. NoAnswerError for anything else."""
    try:
        fields = _ANSWER.validate_json(text)
        return _FIELDS.validate_python([fields.get(name) for name in _Answer._fields])
    except ValidationError as error:
        message = f"cua-project positions printed what this version cannot read: {text[:200]!r}"
        raise NoAnswerError(message) from error
