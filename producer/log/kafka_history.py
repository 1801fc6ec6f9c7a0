"""A training's records in Kafka, found without reading the whole log.

Kafka has no index. So a reading begins at the bound that the caller has; else where this home has
read before (`KnownTrainings`); and when much is left, `cua-project positions` is asked what the
tables know. Without any of them the whole log is read, which is as right and slower.
"""

import json
import logging
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from pydantic import BaseModel, TypeAdapter, ValidationError

from producer.log.project_command import NoAnswerError, ask_project
from producer.log.stream_history import StreamHistory
from producer.log.writer import TopicPartition
from schemas.catalogue import stream_owner

if TYPE_CHECKING:
    from producer.log.kafka import KafkaLog

logger = logging.getLogger(__name__)

ASK_ABOVE = 10_000
"""Records left to read. Asking takes a process, 0.1 CPU-s; reading so many, 0.3."""
ASK_TIMEOUT_S = 15.0
"""An embedded database that does not run is started, which takes a second or two."""
ENTRY = ("consumers.projection.places_answer",)
"""Prints what `cua-project positions --training-id ID --json` does, with fewer imports."""
NEAR_OFFSETS = 256
"""A gap so small is read, not skipped: it lies in the batch that Kafka sends anyway."""


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


class TrainingPlaces(NamedTuple):
    """The tables' answer about one training: a bound that holds for one log up to a position.

    What lies behind that position is read.
    """

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


class _Partition(BaseModel):
    topic: str
    partition: int
    indexed: tuple[int, int]
    found: list[tuple[int, int]]

    @property
    def place(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class _Answer(BaseModel):
    log_id: str | None = None
    epoch: int
    sequence: int
    partitions: list[_Partition]


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
        {one.place: range(*one.indexed) for one in answer.partitions},
        {one.place: [range(*offsets) for offsets in one.found] for one in answer.partitions},
        (answer.epoch, answer.sequence),
    )


def read_answer(text: str) -> _Answer:
    """What `cua-project positions --json` printed. NoAnswerError for anything else."""
    try:
        return _Answer.model_validate_json(text)
    except ValidationError as error:
        message = f"cua-project positions printed what this version cannot read: {text[:200]!r}"
        raise NoAnswerError(message) from error


Ask = Callable[[UUID, str, threading.Event | None], TrainingPlaces]


class KafkaHistory:
    """Reads trainings from Kafka. The tables are asked once per training. Not thread-safe.

    Every method raises UnreachableError, MismatchError, and StopRequestedError once `stop` is set
    while the tables are asked.
    """

    def __init__(
        self, path: Path, stop: threading.Event | None = None, ask: Ask = ask_tables
    ) -> None:
        """`path`: where this home remembers which trainings it has seen."""
        self._path = path
        self._stop = stop
        self._ask = ask
        self._places: dict[UUID, TrainingPlaces | None] = {}

    def read_own(
        self, log: "KafkaLog", topic: str, subject: str, since: Mapping[TopicPartition, int]
    ) -> list[tuple[str, bytes]]:
        """(key, value) of a training's own records; none for a new name. Memory: the training's.

        Remembers which other trainings its partition has.
        """
        known, place = KnownTrainings(self._path, log.log_id), log.place_of(topic, subject)
        span = log.spans(topic, since).get(place)
        if span is None:
            return []
        before = known.of(place)
        is_remembered = place not in since and subject not in before.trainings
        start = span.start
        if is_remembered and before.read_to:
            if before.read_to in range(span.start, span.stop + 1):
                start = before.read_to
            else:
                # Kafka no longer has what was read: nothing is known of what it has instead.
                known.forget()
        left = range(start, span.stop)
        chosen = self._choose(log, stream_owner(subject), {place: left})
        trainings: set[str] = set()
        own: list[tuple[str, bytes]] = []
        for key, value in log.read_within(chosen):
            if key.startswith("training/"):
                trainings.add(key)
            if key == subject:
                own.append((key, value))
        if is_remembered and sum(map(len, chosen[place])) == len(left):
            known.add(place, span.stop, trainings)
        return own

    def read_training(
        self, log: "KafkaLog", topic: str, training_id: UUID, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of at least every record of a topic that names the training."""
        yield from log.read_within(self._choose(log, training_id, log.spans(topic, since)))

    def agrees(self, history: StreamHistory) -> bool:
        """Whether a training's stream, read just now, is what the tables have of it.

        After False the next reading reads the whole log: where the tables sent it was wrong.
        """
        training_id = stream_owner(history.subject)
        places = self._places.get(training_id)
        if places is None or (not history.waiting and history.position.point >= places.reached):
            return True
        epoch, sequence = places.reached
        self._distrust(
            training_id,
            f"they have its stream up to epoch {epoch}, sequence {sequence}, and where they say it"
            " is there is less",
        )
        return False

    def _choose(
        self, log: "KafkaLog", training_id: UUID, spans: Mapping[TopicPartition, range]
    ) -> dict[TopicPartition, list[range]]:
        """What to read of these offsets."""
        places = self._places.get(training_id)
        if sum(map(len, spans.values())) > ASK_ABOVE:
            places = self._ask_once(log, training_id)
        if places is not None and self._are_ahead(log, places, spans):
            self._distrust(training_id, "they are ahead of it: another log's")
            places = None
        if places is None:
            return {at: [span] if span else [] for at, span in spans.items()}
        return {at: places.within(at, span) for at, span in spans.items()}

    @staticmethod
    def _are_ahead(
        log: "KafkaLog", places: TrainingPlaces, spans: Mapping[TopicPartition, range]
    ) -> bool:
        """Whether the tables have read offsets that the log does not have."""
        beyond = {
            at: places.indexed[at].stop
            for at, span in spans.items()
            if at in places.indexed and places.indexed[at].stop > span.stop
        }
        if not beyond:
            return False
        # A projector may have read on since the spans were asked for.
        ends = log.ends()
        return any(stop > ends.get(at, 0) for at, stop in beyond.items())

    def _ask_once(self, log: "KafkaLog", training_id: UUID) -> TrainingPlaces | None:
        if training_id in self._places:
            return self._places[training_id]
        try:
            places = self._ask(training_id, log.log_id, self._stop)
        except NoAnswerError as error:
            self._distrust(training_id, str(error))
            return None
        self._places[training_id] = places
        return places

    def _distrust(self, training_id: UUID, reason: str) -> None:
        self._places[training_id] = None
        logger.info(
            "reading Kafka's log from its beginning, because the tables cannot say where this"
            " training is: %s",
            reason,
        )
