"""What the log says of a training that an earlier process left.

Enough to go on without doing anything twice.

Read once, before anything is emitted. Streams that a dead process left open are closed here by
their rules: a rollout is cancelled, its environment terminated, in a new epoch of each.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from producer.emit import Emitter
from producer.environments.environment import Screenshot
from producer.errors import MismatchError, NotFoundError
from producer.log.stream_history import StreamHistory
from producer.log.writer import LogWriter, TopicPartition
from producer.policy.learner import TrainedTurn
from producer.policy.policy import SampledTokens
from producer.rollouts.plan import (
    GroupPlace,
    GroupPlan,
    Recalled,
    RolloutPlan,
    RolloutResult,
    RolloutSource,
)
from schemas import ids
from schemas.arrays import decode_float32, decode_int32
from schemas.catalogue import TOPIC_NAMES, stream, stream_kind, topic_of
from schemas.environment import EnvironmentTerminated
from schemas.evaluation import EvaluationFinished
from schemas.event import Envelope, Fact
from schemas.group import GroupDropped
from schemas.rollout import RolloutCancelled, RolloutCreated, RolloutFinished
from schemas.status import MACHINES
from schemas.step import SamplesChosen
from schemas.turn import TokenRecord, TurnTaken
from schemas.wire import InvalidPayloadError, UnknownSchemaError, UnreadableError, read_envelope

DEAD_PROCESS = "its process ended before it did"


@dataclass(slots=True)
class TrainingHistory:
    """The streams of one training, by subject."""

    histories: dict[str, StreamHistory] = field(default_factory=dict)

    def take(self, envelope: Envelope) -> None:
        """One record of the log, in its order."""
        self.histories.setdefault(envelope.subject, StreamHistory(envelope.subject)).take(envelope)

    def of(self, subject: str) -> StreamHistory | None:
        """One stream; None when the log has nothing of it."""
        return self.histories.get(subject)

    def close_orphans(
        self, emitter: Emitter, training_id: UUID | None, clock: Callable[[], datetime]
    ) -> int:
        """End every rollout and environment that is still open; how many rollouts that were."""
        num_rollouts = 0
        for subject, history in self.histories.items():
            kind = stream_kind(subject)
            if kind not in {"rollout", "environment"}:
                continue
            owner = UUID(subject.partition("/")[2])
            status = history.statuses.get((kind, owner))
            if status is None or status in MACHINES[kind].ends:
                continue
            emitter.resume_stream(subject, position=history.position, statuses=history.statuses)
            now = clock()
            if kind == "rollout":
                num_rollouts += 1
                emitter.emit(
                    Fact(subject, RolloutCancelled(reason=DEAD_PROCESS, ended_at=now), training_id)
                )
            else:
                emitter.emit(
                    Fact(
                        subject,
                        EnvironmentTerminated(terminated_at=now, status_message=DEAD_PROCESS),
                        training_id,
                    )
                )
            emitter.forget_stream(subject)
        return num_rollouts

    def num_scored_by_group(self) -> Counter[UUID]:
        """Finished rollouts of each group."""
        ends = [
            (history.events[0].payload, history.events[-1].payload)
            for history in self.histories.values()
            if history.events
        ]
        return Counter(
            created.group_id
            for created, ended in ends
            if isinstance(created, RolloutCreated) and isinstance(ended, RolloutFinished)
        )

    def evaluation_finished(self, evaluation_id: UUID) -> EvaluationFinished | None:
        """The end of an evaluation, when it has one."""
        history = self.of(stream("evaluation", evaluation_id))
        events = history.events if history else []
        return next(
            (event.payload for event in events if isinstance(event.payload, EvaluationFinished)),
            None,
        )

    def samples_chosen(self, training_id: UUID, step_id: UUID) -> set[UUID]:
        """Groups of a step whose samples are in the log."""
        return {
            sample.group_id
            for payload in self._training_payloads(training_id)
            if isinstance(payload, SamplesChosen) and payload.step_id == step_id
            for sample in payload.samples
        }

    def groups_dropped(self, training_id: UUID) -> set[UUID]:
        """Groups that were said to be dropped."""
        return {
            payload.group_id
            for payload in self._training_payloads(training_id)
            if isinstance(payload, GroupDropped)
        }

    def _training_payloads(self, training_id: UUID) -> Iterable[object]:
        history = self.of(stream("training", training_id))
        return [event.payload for event in history.events] if history else []

    def recall(
        self, source: RolloutSource, groups: Iterable[GroupPlan], read_blob: Callable[[str], bytes]
    ) -> Recalled:
        """What is there of a source's groups.

        Finished rollouts as results, the next attempt of every place, statuses of groups.
        """
        history = self.of(source.stream)
        statuses = (
            {owner: status for (kind, owner), status in history.statuses.items() if kind == "group"}
            if history
            else {}
        )
        plans = {group.id: group for group in groups}
        results: dict[GroupPlace, RolloutResult] = {}
        next_attempt: dict[GroupPlace, int] = {}
        for subject, rollout in self.histories.items():
            created = (
                rollout.events[0].payload
                if subject.startswith("rollout/") and rollout.events
                else None
            )
            if (
                not isinstance(created, RolloutCreated)
                or created.source_id != source.id
                or created.group_id not in plans
            ):
                continue
            place = (created.group_num, created.env_index)
            next_attempt[place] = max(next_attempt.get(place, 0), created.attempt + 1)
            finished = rollout.events[-1].payload
            if isinstance(finished, RolloutFinished):
                result = _result(
                    _plan(created, plans[created.group_id], source),
                    created,
                    rollout,
                    finished,
                    read_blob,
                )
                if result is not None:
                    results[place] = result
        mine: Mapping[UUID, str] = {
            owner: status for owner, status in statuses.items() if owner in plans
        }
        return Recalled(results, next_attempt, mine)


def read_training_history(
    log: LogWriter,
    training_id: UUID,
    *,
    topic_prefix: str,
    start: Mapping[TopicPartition, int],
    since: Mapping[TopicPartition, int],
) -> TrainingHistory:
    """The training's own stream from `start`, everything else of the training from `since`.

    MismatchError for what cannot be read.
    """
    training_history = TrainingHistory()
    mine = stream("training", training_id)
    needle = str(training_id).encode()
    for topic in (topic_prefix + name for name in TOPIC_NAMES):
        begin = start if topic == topic_of(mine, topic_prefix) else since
        for key, value in log.read_topic(topic, begin):
            # Most records of a shared log are of other trainings: looked over before they are
            # parsed.
            if needle not in value:
                continue
            try:
                envelope = read_envelope(value)
                if envelope.subject == key and (key == mine or envelope.training_id == training_id):
                    training_history.take(envelope)
            except (UnreadableError, UnknownSchemaError, InvalidPayloadError) as error:
                message = (
                    f"the training cannot be continued: a record of {key} cannot be read ({error})."
                    " Use the version that wrote it"
                )
                raise MismatchError(message) from error
    return training_history


def _plan(created: RolloutCreated, group: GroupPlan, source: RolloutSource) -> RolloutPlan:
    stated = group.stated
    return RolloutPlan(
        name=created.rollout_id,
        id=ids.rollout_id(created.rollout_id),
        source=source,
        group_id=created.group_id,
        group_num=created.group_num,
        env_index=created.env_index,
        attempt=created.attempt,
        task=stated.task,
        task_row_id=created.task_id,
        validator_row_id=stated.validator_row_id,
        max_turns=created.max_turns,
        temperature=created.temperature,
        seed=created.seed,
        sampling_seed=0,
    )


def _result(
    plan: RolloutPlan,
    created: RolloutCreated,
    history: StreamHistory,
    finished: RolloutFinished,
    read_blob: Callable[[str], bytes],
) -> RolloutResult | None:
    """The result as it was; None when a screenshot it would train on is gone (the place is then run again)."""
    taken = [event.payload for event in history.events if isinstance(event.payload, TurnTaken)]
    try:
        turns = (
            tuple(_trained_turn(turn, turn.tokens, read_blob) for turn in taken if turn.tokens)
            if not created.is_eval
            else ()
        )
    except NotFoundError:
        return None
    return RolloutResult(
        plan=plan,
        status="completed",
        success=finished.task_success,
        reward=finished.reward,
        num_turns=finished.num_turns,
        num_tokens=finished.num_tokens,
        policy_version=created.policy_version,
        turns=turns,
        num_parse_errors=finished.parse_errors
        + finished.tool_name_errors
        + finished.tool_arg_errors,
        turn_seconds=sum((turn.ended_at - turn.started_at).total_seconds() for turn in taken),
    )


def _trained_turn(
    turn: TurnTaken, tokens: TokenRecord, read_blob: Callable[[str], bytes]
) -> TrainedTurn:
    png = read_blob(turn.screenshot_before)
    width_px, height_px = (
        int.from_bytes(png[16:20], "big"),
        int.from_bytes(png[20:24], "big"),
    )  # PNG's IHDR
    return TrainedTurn(
        Screenshot(png, width_px, height_px),
        SampledTokens(
            prompt_extends=tokens.prompt_extends,
            prompt_tokens=tuple(decode_int32(tokens.prompt_tokens)),
            num_prompt_images=len(tokens.prompt_images),
            completion_tokens=tuple(decode_int32(tokens.completion_tokens)),
            completion_logprobs=tuple(decode_float32(tokens.completion_logprobs)),
            stop_reason=tokens.stop_reason,
        ),
    )
