"""Trains steps again from the log: recorded tokens and advantages, from an older state on.

On a processor the bits are those of the first time, so a state that was lost can be made again
without a new rollout, and a recorded loss can be checked.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

from producer.config import RunConfig
from producer.errors import MismatchError, NotFoundError
from producer.policy.learner import (
    Learner,
    StreamingLearner,
    TokenNumbers,
    Trajectory,
    UpdateResult,
)
from producer.resume import resume_state
from producer.resume.lineage import RecordedStep, recorded_lineage
from producer.resume.open_training import RecordedTraining
from producer.resume.recorded_evaluations import label_of
from producer.resume.resume_state import EvaluationSummary, Manifest, SavedState
from producer.resume.training_history import TrainingHistory
from producer.rollouts.plan import GroupPlan, RolloutSource, StatedTask
from producer.task import Task
from producer.training.evaluation import EvaluationPlan, evaluation_summary
from producer.training.samples import NOT_IN_UPDATE
from producer.training.step import next_baseline
from producer.training.streamed_step import update_in_minibatches
from producer.training.token_credit import advantages_of_tokens
from producer.training.trajectories import trajectory, update_settings
from schemas import ids
from schemas.catalogue import stream
from schemas.evaluation import EvaluationCreated
from schemas.step import Sample

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RedoneStep:
    """A step that was trained again."""

    recorded: RecordedStep
    update: UpdateResult

    @property
    def differences(self) -> dict[str, tuple[float | None, float]]:
        """Measurement -> (recorded, now) of those whose bits differ."""
        update, finished = self.update, self.recorded.finished
        now = {
            "loss": update.loss,
            "policy_gradient_norm": update.gradient_norm,
            "kl_divergence": update.kl_sample_train_v1 if update.num_measured_tokens else 0.0,
        }
        compared = {name: (getattr(finished, name), value) for name, value in now.items()}
        repeated = {} if update.learned is None else update.learned.repeated
        for name, value in repeated.items():
            was = finished.metrics.get(name)
            compared[name] = (was if isinstance(was, float) else None, value)
        return {name: both for name, both in compared.items() if both[0] != both[1]}


def redo_steps(
    recorded: RecordedTraining,
    config: RunConfig,
    learner: Learner,
    steps: Sequence[RecordedStep],
    read_blob: Callable[[str], bytes],
) -> Iterator[RedoneStep]:
    """Update `learner`, which has the state before them, on each of these steps in turn.

    NotFoundError when the log or the blobs lack what a step was trained on.
    """
    training_id = ids.training_id(recorded.run_name)
    for step in steps:
        placed = _trajectories(recorded.history, training_id, step, config, read_blob)
        at = {"generation": step.generation, "step": step.number}
        if config.stream_minibatch and isinstance(learner, StreamingLearner):
            update = update_in_minibatches(config, learner, placed, **at)
        else:
            update = learner.update([one for _, one in placed], update_settings(config, **at))
        yield RedoneStep(step, update)


def _trajectories(
    history: TrainingHistory,
    training_id: UUID,
    step: RecordedStep,
    config: RunConfig,
    read_blob: Callable[[str], bytes],
) -> list[tuple[int, Trajectory]]:
    """What the step was trained on, in the same order, each with its group's place in the plan.

    NotFoundError when some of it is missing.
    """
    step_id = ids.step_id(training_id, step.generation, step.number)
    source = RolloutSource(
        "step",
        step_id,
        f"step-{step.number}",
        step.generation,
        step.number - 1,
        stream("training", training_id),
    )
    stale = history.stale_groups(training_id)
    samples = [
        sample
        for sample in step.samples
        if sample.drop_reason not in NOT_IN_UPDATE and sample.group_id not in stale
    ]
    group_ids = {sample.group_id for sample in samples}
    groups = [GroupPlan(0, group_id, _ANY_TASK, ()) for group_id in group_ids]
    recalled = history.finished_rollouts(source, groups, read_blob)
    results = {result.plan.id: result for result in recalled.results.values()}
    missing = [sample for sample in samples if sample.rollout_id not in results]
    if missing:
        message = (
            f"step {step.number} cannot be trained again: {len(missing)} of its"
            f" {len(samples)} rollouts, or their screenshots, are not here any more"
        )
        raise NotFoundError(message)

    def place(sample: Sample) -> tuple[int, int]:
        """A group that was collected instead of a stale one stands where that one stood."""
        plan = results[sample.rollout_id].plan
        return plan.group_num % config.groups_per_batch, plan.env_index

    ordered = sorted(samples, key=place)
    tokens: dict[UUID, TokenNumbers] = {}
    if config.core_function is not None:
        used = [sample for sample in ordered if sample.used]
        own = [results[sample.rollout_id] for sample in used]
        nums = [result.plan.group_num for result in own]
        found = advantages_of_tokens(config, own, nums)
        tokens = {sample.rollout_id: one for sample, one in zip(used, found, strict=True)}
    return [
        (
            place(sample)[0],
            trajectory(
                config,
                results[sample.rollout_id],
                advantage=sample.advantage,
                is_trained=sample.used,
                token_advantages=tokens.get(sample.rollout_id),
            ),
        )
        for sample in ordered
        if results[sample.rollout_id].turns
    ]


_ANY_TASK = StatedTask(
    Task(
        task_id="",
        name="",
        description="",
        difficulty=None,
        category=None,
        max_steps=1,
        validation_query=None,
        expected_result=None,
    ),
    UUID(int=0),
    None,
)
"""An update reads recorded tokens; it does not know their task."""


def state_before(
    states: Sequence[SavedState], steps: Mapping[int, RecordedStep], step: int
) -> SavedState | None:
    """The newest of `states` from which `step` follows; None: only the beginning does."""
    for state in states:
        number, generation = state.manifest.step, state.manifest.generation
        begun_by = steps[number].generation if number in steps else None
        if number < step and number and begun_by == generation:
            return state
    return None


def remake_state(
    recorded: RecordedTraining,
    config: RunConfig,
    learner: Learner,
    run_folder: Path,
    read_blob: Callable[[str], bytes],
) -> bool:
    """Make the state after the newest finished step again, in the run's folder; whether it is.

    False, and nothing is written, when the bits are not those that were recorded. NotFoundError as
    `redo_steps`. `learner` is fresh.
    """
    steps = recorded_lineage(event.payload for event in recorded.stream.events).steps
    newest = steps[max(steps)]
    before = state_before(recorded.states, steps, newest.number)
    if before is not None:
        learner.load_state(before.folder)
    begins_at = before.manifest.step if before is not None else 0
    wanted = [steps[number] for number in range(begins_at + 1, newest.number + 1)]
    logger.info(
        "the state after step %d is lost; training steps %d to %d again from the log",
        *(newest.number, begins_at + 1, newest.number),
    )
    for redone in redo_steps(recorded, config, learner, wanted, read_blob):
        if redone.differences:
            logger.warning(
                "step %d trained again is not bit for bit what was recorded: %s",
                *(redone.recorded.number, describe(redone.differences)),
            )
            return False
    folder = resume_state.begin_state(run_folder, newest.generation, newest.number)
    learner.save_state(folder)
    resume_state.commit_state(folder, _manifest(recorded, newest, before, learner))
    logger.info("the state after step %d is made again, bit for bit", newest.number)
    return True


def _manifest(
    recorded: RecordedTraining, newest: RecordedStep, before: SavedState | None, learner: Learner
) -> Manifest:
    empty = Manifest(
        training_name=recorded.run_name,
        generation=newest.generation,
        step=0,
        policy_version=0,
        log_id=recorded.log_id,
        log_start={},
        since={},
    )
    older = empty if before is None else before.manifest
    events = recorded.stream.events
    envelope = next(event.envelope for event in events if event.payload is newest.finished)
    return replace(
        older,
        generation=newest.generation,
        step=newest.number,
        policy_version=learner.version,
        moving_baseline=next_baseline(newest.finished),
        evaluations=_evaluations(recorded.history, newest, older.evaluations),
        pending=(),
        claim_epoch=envelope.epoch,
        claim_source=envelope.source,
    )


def _evaluations(
    history: TrainingHistory, newest: RecordedStep, known: Sequence[EvaluationSummary]
) -> tuple[EvaluationSummary, ...]:
    """Finished evaluations up to the step, oldest first."""
    found = {item.label: item for item in known}
    for subject, own in history.evaluations():
        created = own.events[0].payload
        if not isinstance(created, EvaluationCreated) or created.kind == "manual":
            continue
        owner = UUID(subject.partition("/")[2])
        finished = history.evaluation_finished(owner)
        step = created.step or 0
        if finished is None or created.generation != newest.generation or step > newest.number:
            continue
        label = label_of(created)
        plan = EvaluationPlan(
            created.kind,
            owner,
            label,
            step,
            created.temperature,
            created.total_tasks,
            created.split,
            created.num_tasks,
            created.task_source,
        )
        found[label] = evaluation_summary(plan, finished)
    return tuple(sorted(found.values(), key=lambda item: item.step))


def describe(differences: Mapping[str, tuple[float | None, float]]) -> str:
    """`loss 1.0 -> 1.5; ...`."""
    return "; ".join(f"{name} {was!r} -> {now!r}" for name, (was, now) in differences.items())


def require_step(steps: Mapping[int, RecordedStep], number: int, name: str) -> RecordedStep:
    """The step. NotFoundError; MismatchError for a training whose steps have no samples."""
    if number not in steps:
        known = f"it has finished steps 1 to {max(steps)}" if steps else "it has finished no step"
        message = f"training {name!r} has no finished step {number}; {known}"
        raise NotFoundError(message)
    if not steps[number].samples:
        message = f"step {number} of training {name!r} is no step of reinforcement learning"
        raise MismatchError(message)
    return steps[number]
