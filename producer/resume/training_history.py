"""What the log holds of a training that an earlier process left: enough to redo nothing.

Knows nothing of the disk's saved states, nor how the log is read.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from producer.log.stream_history import StreamHistory
from producer.log.writer import TopicPartition
from producer.policy.policy import Turn
from producer.resume.recorded_evaluations import has_ended, has_failed, label_of
from producer.resume.recorded_rollouts import (
    recorded_plan,
    recorded_result,
    recorded_turns,
    turns_taken,
)
from producer.rollouts.plan import (
    GroupPlace,
    GroupPlan,
    Recalled,
    RolloutPlan,
    RolloutResult,
    RolloutSource,
)
from schemas.base import Payload
from schemas.catalogue import stream, stream_kind
from schemas.evaluation import EvaluationCreated, EvaluationFinished
from schemas.event import Envelope
from schemas.group import GroupDropped
from schemas.operator_drops import Drops
from schemas.rollout import RolloutCreated, RolloutFailed, RolloutFinished
from schemas.step import SamplesChosen, StepCreated
from schemas.training import TrainingCreated, TrainingProgressed, TrainingResumed
from schemas.turn import TurnTaken


@dataclass(slots=True)
class TrainingHistory:
    """The streams of one training, by subject."""

    streams: dict[str, StreamHistory] = field(default_factory=dict)
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Offsets at or before every record that was not read; a missing partition means 0."""

    drops: Drops = field(default_factory=Drops)
    """What operators gave up."""
    _garbled: dict[str, StreamHistory] = field(default_factory=dict)
    """Streams of which only records were met that are no events of theirs."""

    def read(self, envelope: Envelope, value: bytes) -> None:
        """One record of the log, in log order; `value`: its bytes."""
        self._stream(envelope.subject).read(envelope, value)

    def read_unreadable(self, key: str, value: bytes) -> None:
        """A record that is no event of its key's stream.

        UnreadableError unless an operator gave it up. The stream is the training's only once an
        event of it says so.
        """
        known = self.streams.get(key) or self._garbled.setdefault(
            key, StreamHistory(key, drops=self.drops)
        )
        known.read_value(value)

    def _stream(self, subject: str) -> StreamHistory:
        if subject not in self.streams:
            garbled = self._garbled.pop(subject, None)
            self.streams[subject] = garbled or StreamHistory(subject, drops=self.drops)
        return self.streams[subject]

    def of(self, subject: str) -> StreamHistory:
        """One stream; empty when the log has none of it."""
        return self.streams.get(subject) or StreamHistory(subject)

    def training_stream(self, training_id: UUID) -> StreamHistory:
        """The training's own stream."""
        return self.of(stream("training", training_id))

    def payloads_of(self, subject: str) -> list[Payload]:
        """Payloads of one stream, in order."""
        return [event.payload for event in self.of(subject).events]

    def evaluations(self) -> Iterator[tuple[str, StreamHistory]]:
        """(subject, stream) of every evaluation that has begun."""
        for subject, history in self.streams.items():
            if stream_kind(subject) == "evaluation" and history.events:
                yield subject, history

    def last_configuration(self, own: StreamHistory) -> TrainingCreated | TrainingResumed:
        """The event that recorded the newest configuration. `own`: the training's stream."""
        payloads = (event.payload for event in reversed(own.events))
        return next(
            payload
            for payload in payloads
            if isinstance(payload, TrainingCreated | TrainingResumed)
        )

    def step_before_generation(self, own: StreamHistory, generation: int) -> int:
        """The step after which a generation began; 0 for the first generation."""
        for event in own.events:
            payload = event.payload
            if isinstance(payload, TrainingResumed) and payload.generation == generation:
                return payload.current_step
        return 0

    def stated_percent(self, own: StreamHistory, generation: int, total_steps: int) -> float:
        """The training's progress as stated last for this generation and number of steps, 0-100."""
        percent, stated_for = 0.0, (0, 0)
        for event in own.events:
            payload = event.payload
            if isinstance(payload, TrainingCreated | TrainingResumed):
                number = payload.generation if isinstance(payload, TrainingResumed) else 0
                if (number, payload.total_steps) != stated_for:
                    percent, stated_for = 0.0, (number, payload.total_steps)
            elif isinstance(payload, TrainingProgressed):
                percent = max(percent, payload.progress.percent)
        return percent if stated_for == (generation, total_steps) else 0.0

    def steps_done(self, own: StreamHistory, generation: int) -> list[int]:
        """Completed steps of a generation."""
        return self._steps_with("completed", own, generation)

    def has_failed_parts(self, own: StreamHistory, generation: int) -> bool:
        """Whether a step or a scheduled evaluation of the generation has failed: both are final."""
        return bool(self._steps_with("failed", own, generation)) or any(
            has_failed(created, history) for created, history in self._scheduled(generation)
        )

    def has_given_up_evaluation(self, generation: int, known: Collection[str]) -> bool:
        """Whether an operator gave up the rest of a scheduled evaluation before its result.

        `known`: labels of those whose result is known from elsewhere.
        """
        return any(
            history.is_abandoned
            and label_of(created) not in known
            and not has_ended(created, history)
            for created, history in self._scheduled(generation)
        )

    def has_evaluations(self, generation: int) -> bool:
        """Whether a baseline or a scheduled evaluation of the generation was begun."""
        return any(True for _ in self._scheduled(generation))

    def _steps_with(self, status: str, own: StreamHistory, generation: int) -> list[int]:
        created = (event.payload for event in own.events)
        return [
            step.step
            for step in created
            if isinstance(step, StepCreated)
            and step.generation == generation
            and own.statuses.get(("step", step.step_id)) == status
        ]

    def _scheduled(self, generation: int) -> Iterator[tuple[EvaluationCreated, StreamHistory]]:
        for _, history in self.evaluations():
            created = history.events[0].payload
            if (
                isinstance(created, EvaluationCreated)
                and created.kind != "manual"
                and created.generation == generation
            ):
                yield created, history

    def num_scored_by_group(self) -> Counter[UUID]:
        """Finished rollouts of each group."""
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
        """The result of an evaluation; None while it has none."""
        payloads = self.payloads_of(stream("evaluation", evaluation_id))
        return next(
            (payload for payload in payloads if isinstance(payload, EvaluationFinished)), None
        )

    def sampled_rollouts(self, training_id: UUID, step_id: UUID) -> set[UUID]:
        """Rollouts of a step whose use is recorded."""
        return {
            sample.rollout_id
            for payload in self.payloads_of(stream("training", training_id))
            if isinstance(payload, SamplesChosen) and payload.step_id == step_id
            for sample in payload.samples
        }

    def dropped_groups(self, training_id: UUID) -> set[UUID]:
        """Groups that are recorded as dropped."""
        payloads = self.payloads_of(stream("training", training_id))
        return {payload.group_id for payload in payloads if isinstance(payload, GroupDropped)}

    def stale_groups(self, training_id: UUID) -> set[UUID]:
        """Groups that are recorded as dropped because another takes their place."""
        payloads = self.payloads_of(stream("training", training_id))
        return {
            payload.group_id
            for payload in payloads
            if isinstance(payload, GroupDropped) and payload.reason == "stale"
        }

    def last_step_begun(self, training_id: UUID, generation: int) -> int:
        """The highest step of a generation that was begun; 0: none was."""
        payloads = self.payloads_of(stream("training", training_id))
        begun = (
            payload.step
            for payload in payloads
            if isinstance(payload, StepCreated) and payload.generation == generation
        )
        return max(begun, default=0)

    def finished_rollouts(
        self,
        source: RolloutSource,
        groups: Iterable[GroupPlan],
        read_blob: Callable[[str], bytes],
        *,
        with_turns: bool = False,
    ) -> Recalled:
        """Results of the source's finished rollouts, and every place's attempts so far.

        With the turns of rollouts that were under way and, `with_turns`, of finished ones.
        """
        plans = {group.id: group for group in groups}
        recalled = _Recalling(source, with_turns=with_turns, read_blob=read_blob)
        for subject, rollout in self.streams.items():
            if stream_kind(subject) != "rollout" or not rollout.events:
                continue
            created = rollout.events[0].payload
            if isinstance(created, RolloutCreated) and created.group_id in plans:
                recalled.add(created, rollout, plans[created.group_id])
        return recalled.recalled()


@dataclass(slots=True)
class _Recalling:
    """What is gathered of a source's rollouts, one attempt after the other in any order."""

    source: RolloutSource
    with_turns: bool
    read_blob: Callable[[str], bytes]
    results: dict[GroupPlace, RolloutResult] = field(default_factory=dict)
    next_attempt: dict[GroupPlace, int] = field(default_factory=dict)
    last_failed: dict[GroupPlace, int] = field(default_factory=dict)
    num_failed: Counter[GroupPlace] = field(default_factory=Counter)
    errors: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    turns: dict[GroupPlace, tuple[Turn, ...]] = field(default_factory=dict)
    under_way: dict[GroupPlace, list[tuple[int, list[TurnTaken]]]] = field(default_factory=dict)
    """(attempt, its turns) of attempts that their process did not bring to an end."""
    instructions: dict[GroupPlace, str] = field(default_factory=dict)
    """Of the tasks of those places."""

    def add(self, created: RolloutCreated, rollout: StreamHistory, group: GroupPlan) -> None:
        """One attempt."""
        place = (created.group_num, created.env_index)
        self.next_attempt[place] = max(self.next_attempt.get(place, 0), created.attempt + 1)
        end = rollout.events[-1].payload
        if isinstance(end, RolloutFailed):
            self.num_failed[place] += 1
            self.errors[created.group_num].append(end.error_type)
            self.last_failed[place] = max(self.last_failed.get(place, 0), created.attempt)
        elif isinstance(end, RolloutFinished):
            if not rollout.is_abandoned:
                self._finish(place, recorded_plan(created, group, self.source), rollout, end)
        else:
            self.under_way.setdefault(place, []).append((created.attempt, turns_taken(rollout)))
            self.instructions[place] = group.stated.task.description

    def _finish(
        self, place: GroupPlace, plan: RolloutPlan, rollout: StreamHistory, end: RolloutFinished
    ) -> None:
        result = recorded_result(plan, rollout, end, self.read_blob)
        if result is None:
            return
        self.results[place] = result
        if not self.with_turns:
            return
        turns = recorded_turns(turns_taken(rollout), plan.task.description, self.read_blob)
        if turns:
            self.turns[place] = turns

    def recalled(self) -> Recalled:
        """All of it. Of several attempts under way the longest counts: each had the same seeds."""
        for place, attempts in self.under_way.items():
            same_seeds = [
                taken
                for attempt, taken in attempts
                if attempt > self.last_failed.get(place, -1) and place not in self.results
            ]
            longest = max(same_seeds, key=len, default=[])
            turns = recorded_turns(longest, self.instructions[place], self.read_blob)
            if turns:
                self.turns[place] = turns
        return Recalled(self.results, self.next_attempt, self.num_failed, self.errors, self.turns)
