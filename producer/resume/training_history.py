"""The log's record of a training that an earlier process left, so that nothing is done twice.

It is read once, before anything is emitted. An unreadable record of the training stops it, just as
it parks the training's stream in the tables; other streams' records stop nothing. Knows nothing of
the states on disk.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar
from uuid import UUID

from producer.errors import MismatchError
from producer.log.event_log import EventLog
from producer.log.stream_history import Dropped, StreamHistory, read_decided
from producer.log.writer import TopicPartition
from schemas.base import Payload
from schemas.catalogue import TOPIC_NAMES, TOPICS, stream, stream_kind, stream_owner
from schemas.evaluation import EvaluationCreated, EvaluationFinished, evaluation_label
from schemas.event import Envelope
from schemas.group import GroupDropped
from schemas.rollout import RolloutCreated, RolloutFinished
from schemas.status import MACHINES
from schemas.step import SamplesChosen, StepCreated
from schemas.training import TrainingCreated, TrainingResumed
from schemas.wire import InvalidPayloadError, UnknownSchemaError, UnreadableError, read_envelope

PayloadT = TypeVar("PayloadT", bound=Payload)


@dataclass(frozen=True, slots=True)
class RecordedEvaluation:
    """An evaluation that has begun."""

    created: EvaluationCreated
    stream: StreamHistory

    @property
    def id(self) -> UUID:
        """The id of its row."""
        return stream_owner(self.stream.subject)

    @property
    def label(self) -> str:
        """Label as in a manifest: `baseline`, `eval-20-sampled`."""
        created = self.created
        return evaluation_label(created.kind, created.step, created.temperature)

    @property
    def status(self) -> str | None:
        """The evaluation's own status; a failed group does not make it fail."""
        table = "baseline" if self.created.kind == "baseline" else "eval"
        return self.stream.statuses.get((table, self.id))

    @property
    def has_ended(self) -> bool:
        """Whether no further events of it will follow."""
        return self.status in MACHINES["eval"].ends


@dataclass(slots=True)
class TrainingHistory:
    """The streams of one training, by subject."""

    streams: dict[str, StreamHistory] = field(default_factory=dict)
    training_id: UUID | None = None
    """None for streams that belong to no training."""
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Offsets at or before every record that was not read; a missing partition means 0."""
    drops: Dropped = field(default_factory=dict)
    """What operators gave up, as in `StreamHistory.drops`."""
    _garbled: dict[str, StreamHistory] = field(default_factory=dict)
    """Streams of which only unreadable records have been seen."""

    def read(self, envelope: Envelope, value: bytes) -> None:
        """Take one record of the log, in log order; `value` is its bytes."""
        subject = envelope.subject
        if subject not in self.streams:
            garbled = self._garbled.pop(subject, None)
            self.streams[subject] = garbled or self._new(subject)
        self.streams[subject].read(envelope, value)

    def read_unreadable(self, key: str, value: bytes) -> None:
        """Take a record that is not a valid event of its key's stream.

        Raises UnreadableError unless an operator gave the record up. The stream belongs to the
        training only once a valid event of it says so.
        """
        known = self.streams.get(key) or self._garbled.setdefault(key, self._new(key))
        known.read_value(value)

    def _new(self, subject: str) -> StreamHistory:
        return StreamHistory(subject, drops=self.drops.get(subject, {}))

    @property
    def decisions(self) -> Dropped:
        """What operators dropped, of the decisions met."""
        histories = {**self._garbled, **self.streams}
        return {subject: one.decisions for subject, one in histories.items() if one.decisions}

    def of(self, subject: str) -> StreamHistory:
        """The stream of `subject`; empty if the log has none."""
        return self.streams.get(subject) or StreamHistory(subject)

    @property
    def own(self) -> StreamHistory:
        """The training's own stream."""
        return self.of(f"training/{self.training_id}")

    def payloads_of(self, subject: str, kind: type[PayloadT]) -> list[PayloadT]:
        """Payloads of this type in one stream, in order."""
        payloads = (event.payload for event in self.of(subject).events)
        return [payload for payload in payloads if isinstance(payload, kind)]

    def own_payloads(self, kind: type[PayloadT]) -> list[PayloadT]:
        """Payloads of this type in the training's own stream."""
        return self.payloads_of(f"training/{self.training_id}", kind)

    @property
    def newest_configuration(self) -> TrainingCreated | TrainingResumed:
        """The event that recorded the newest configuration."""
        found = self.own_payloads(Payload)[::-1]
        return next(item for item in found if isinstance(item, TrainingCreated | TrainingResumed))

    def step_before_generation(self, generation: int) -> int:
        """The step after which a generation began; 0 for the first generation."""
        resumed = self.own_payloads(TrainingResumed)
        return next((item.current_step for item in resumed if item.generation == generation), 0)

    def steps_begun(self, generation: int) -> list[StepCreated]:
        """All steps of a generation that were begun."""
        return [step for step in self.own_payloads(StepCreated) if step.generation == generation]

    def last_step(self, generation: int, status: str | None = None) -> int:
        """The highest step of a generation that was begun or has this status; 0 if none."""
        statuses = self.own.statuses
        return max(
            (
                step.step
                for step in self.steps_begun(generation)
                if status in {None, statuses.get(("step", step.step_id))}
            ),
            default=0,
        )

    def evaluations(self) -> Iterator[RecordedEvaluation]:
        """Every evaluation whose creation is in the log."""
        for subject, history in self.streams.items():
            if stream_kind(subject) == "evaluation" and history.events:
                created = history.events[0].payload
                if isinstance(created, EvaluationCreated):
                    yield RecordedEvaluation(created, history)

    def scheduled(self, generation: int) -> list[RecordedEvaluation]:
        """The baseline and the scheduled evaluations of a generation."""
        return [
            item
            for item in self.evaluations()
            if item.created.kind != "manual" and item.created.generation == generation
        ]

    def has_failed_parts(self, generation: int) -> bool:
        """Whether a step or a scheduled evaluation of the generation failed, which is final."""
        return self.last_step(generation, "failed") > 0 or any(
            item.status == "failed" for item in self.scheduled(generation)
        )

    def has_given_up_evaluation(self, generation: int, known: Collection[str]) -> bool:
        """Whether an operator gave up the rest of a scheduled evaluation before its result.

        `known`: labels of evaluations whose result is known from elsewhere.
        """
        return any(
            item.stream.is_dropped and item.label not in known and not item.has_ended
            for item in self.scheduled(generation)
        )

    def has_unfinished(self, generation: int, step: int) -> bool:
        """Whether a step after `step` was begun or a scheduled evaluation has not ended.

        A later step counts even if it has ended, because the next process resumes after `step`.
        """
        return self.last_step(generation) > step or any(
            not item.has_ended for item in self.scheduled(generation)
        )

    def num_scored_by_group(self) -> Counter[UUID]:
        """Number of finished rollouts per group."""
        ends = [
            (history.events[0].payload, history.events[-1].payload)
            for history in self.streams.values()
            if history.events
        ]
        return Counter(
            created.group_id
            for created, ended in ends
            if isinstance(created, RolloutCreated) and isinstance(ended, RolloutFinished)
        )

    def evaluation_finished(self, evaluation_id: UUID) -> EvaluationFinished | None:
        """The result of an evaluation; None if it has none yet."""
        subject = stream("evaluation", evaluation_id)
        return next(iter(self.payloads_of(subject, EvaluationFinished)), None)

    def sampled_rollouts(self, step_id: UUID) -> set[UUID]:
        """Ids of a step's rollouts whose use in the update is recorded."""
        return {
            sample.rollout_id
            for chosen in self.own_payloads(SamplesChosen)
            if chosen.step_id == step_id
            for sample in chosen.samples
        }

    def dropped_groups(self) -> set[UUID]:
        """Ids of groups recorded as dropped."""
        return {item.group_id for item in self.own_payloads(GroupDropped)}


def read_own_stream(
    log: EventLog, training_id: UUID, start: Mapping[TopicPartition, int]
) -> TrainingHistory:
    """The training's own stream alone. Raises as `read_training_history`."""
    new = partial(_new_history, log, training_id)
    return read_decided(new, lambda history: _read_own(history, log, training_id, start))


def _new_history(log: EventLog, training_id: UUID, dropped: Dropped) -> TrainingHistory:
    return TrainingHistory(training_id=training_id, ends=log.lower_bounds(), drops=dropped)


def read_training_history(
    log: EventLog,
    training_id: UUID,
    *,
    start: Mapping[TopicPartition, int],
    since: Mapping[TopicPartition, int],
) -> TrainingHistory:
    """Read the training's own stream from `start` and its other streams from `since`.

    Raises MismatchError for a record that cannot be read, and for a training whose creation an
    operator gave up.
    """
    new = partial(_new_history, log, training_id)

    def read(history: TrainingHistory) -> None:
        _read_training(history, log, training_id, start, since)

    return read_decided(new, read)


def _read_training(
    history: TrainingHistory,
    log: EventLog,
    training_id: UUID,
    start: Mapping[TopicPartition, int],
    since: Mapping[TopicPartition, int],
) -> None:
    _read_own(history, log, training_id, start)
    own = stream("training", training_id)
    topic = TOPICS["training"]
    if own not in history.streams:
        # A training emits nothing before its claim was read back, so this one is new.
        return
    for name in TOPIC_NAMES:
        records = log.read_training(name, training_id, start if name == topic else since)
        _read_into(history, training_id, ((key, value) for key, value in records if key != own))


def _read_own(
    history: TrainingHistory,
    log: EventLog,
    training_id: UUID,
    start: Mapping[TopicPartition, int],
) -> None:
    """Read only the training's own stream."""
    subject = stream("training", training_id)
    _read_into(history, training_id, log.read_stream(subject, start))
    if history.own.exists and not history.own_payloads(TrainingCreated):
        message = (
            f"{subject} cannot be continued: an operator gave up the record that creates it"
            " (cua-project parked drop), so the tables take nothing more of it"
        )
        raise MismatchError(message, ways=("choose another --training-name",))


def _read_into(
    history: TrainingHistory, training_id: UUID, records: Iterable[tuple[str, bytes]]
) -> None:
    """Read the records of the training's streams into `history`.

    Raises MismatchError for one that cannot be read, since it parks its stream in the tables.
    Records under keys that are not streams of this training are ignored.
    """
    own = stream("training", training_id)
    needle = str(training_id).encode()
    unreadable: dict[str, Exception] = {}
    failed: dict[str, Exception] = {}
    for key, value in records:
        # The tables count any record with the key of a stream, even if it only parks that stream.
        is_of_training = key == own or key in history.streams
        # Most records of a shared log belong to other trainings: filter before parsing.
        if not is_of_training and needle not in value:
            continue
        if key in failed:
            history.of(key).skim(value)
            continue
        try:
            envelope = _envelope(value)
            if envelope is None or envelope.subject != key:
                history.read_unreadable(key, value)
            elif is_of_training or envelope.training_id == training_id:
                history.read(envelope, value)
        except UnreadableError as error:
            unreadable.setdefault(key, error)
        except (UnknownSchemaError, InvalidPayloadError) as error:
            failed[key] = error
    for key, reason in (failed | unreadable).items():
        if key == own or key in history.streams:
            raise _cannot_continue(key, reason) from reason


def _cannot_continue(key: str, error: Exception) -> MismatchError:
    message = (
        f"the training cannot be continued: a record of {key} cannot be read ({error}). Continue"
        " with the cua-train version that wrote it, or give the record up (`cua-project parked"
        " list` names it, `cua-project parked drop` gives it up)"
    )
    return MismatchError(message)


def _envelope(value: bytes) -> Envelope | None:
    try:
        return read_envelope(value)
    except UnreadableError:
        return None
