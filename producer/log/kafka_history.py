"""A training's records in Kafka, found without reading the whole log.

Kafka has no index. So a reading begins at the bound that the caller has; else where this home has
read before (`known_trainings`); and when much is left, the tables are asked where to look
(`training_places`). Without any of them the whole log is read, which is as right and slower.
"""

import json
import logging
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol
from uuid import UUID

from pydantic import TypeAdapter, ValidationError

from producer.log.project_command import NoAnswerError
from producer.log.stream_history import StreamHistory
from producer.log.training_places import TrainingPlaces, ask_tables
from producer.log.writer import TopicPartition
from schemas.catalogue import stream_owner


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


logger = logging.getLogger(__name__)

ASK_ABOVE = 10_000
"""Records left to read. Asking takes a process, 0.1 CPU-s; reading so many, 0.3."""

Ask = Callable[[UUID, str, threading.Event | None], TrainingPlaces]


class OffsetLog(Protocol):
    """What is needed of `KafkaLog`, which documents it."""

    @property
    def log_id(self) -> str:
        """The log's identity."""
        ...

    def ends(self) -> dict[TopicPartition, int]:
        """Offset after the last record of every partition."""
        ...

    def place_of(self, topic: str, key: str) -> TopicPartition:
        """The partition of a stream."""
        ...

    def spans(self, topic: str, since: Mapping[TopicPartition, int]) -> dict[TopicPartition, range]:
        """Offsets from `since` to the end."""
        ...

    def read_within(
        self, spans: Mapping[TopicPartition, Sequence[range]]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of the records at these offsets."""
        ...


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
        self, log: OffsetLog, topic: str, subject: str, since: Mapping[TopicPartition, int]
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
        self, log: OffsetLog, topic: str, training_id: UUID, since: Mapping[TopicPartition, int]
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
        self, log: OffsetLog, training_id: UUID, spans: Mapping[TopicPartition, range]
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
        log: OffsetLog, places: TrainingPlaces, spans: Mapping[TopicPartition, range]
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

    def _ask_once(self, log: OffsetLog, training_id: UUID) -> TrainingPlaces | None:
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
