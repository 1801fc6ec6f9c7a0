"""Repeats updates from the log, with a step's recorded advantages or those of a control."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from producer.config import RunConfig
from producer.errors import NotFoundError
from producer.policy.learner import Learner, TokenNumbers, Trajectory, UpdateResult
from producer.resume.recorded_rollouts import recall
from producer.resume.recorded_training import RecordedStep, RecordedTraining
from producer.rollouts.plan import (
    GroupOutcome,
    GroupPlan,
    RolloutResult,
    RolloutSource,
    StatedTask,
)
from producer.task import Task
from producer.training.samples import (
    NOT_IN_UPDATE,
    advantages_of_tokens,
    control_seed,
    select_samples,
)
from producer.training.updates import trajectories_of, trajectory, update_settings
from schemas import ids
from schemas.step import Sample


@dataclass(frozen=True, slots=True)
class RedoneStep:
    """A step that was trained again."""

    recorded: RecordedStep
    update: UpdateResult

    @property
    def differences(self) -> dict[str, tuple[float | None, float]]:
        """Measurement -> (recorded, now), for those whose bits differ."""
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
    control: RunConfig | None = None,
) -> Iterator[RedoneStep]:
    """Update `learner`, which has the state before the steps, on each of them in turn.

    `control`: a configuration with another control, with which the last step is trained; None: as
    recorded. Raises NotFoundError if the log or the blobs lack what a step was trained on.
    """
    for step in steps:
        settings = update_settings(config, generation=step.generation, step=step.number)
        samples = [sample for sample in step.samples if sample.drop_reason not in NOT_IN_UPDATE]
        results = _results_of(recorded, step, samples, read_blob)
        if control is not None and step is steps[-1]:
            trajectories = _controlled_trajectories(control, step, samples, results)
        else:
            trajectories = _trajectories(config, samples, results)
        yield RedoneStep(step, learner.update(trajectories, settings))


def _trajectories(
    config: RunConfig, samples: Sequence[Sample], results: Mapping[UUID, RolloutResult]
) -> list[Trajectory]:
    """The trajectories a step was trained on, in the same order."""

    def place(sample: Sample) -> tuple[int, int]:
        plan = results[sample.rollout_id].plan
        return plan.group_num, plan.env_index

    ordered = sorted(samples, key=place)
    tokens: dict[UUID, TokenNumbers] = {}
    if config.core_function is not None:
        own = [results[sample.rollout_id] for sample in ordered if sample.used]
        found = advantages_of_tokens(config, own, [result.plan.group_num for result in own])
        tokens = {result.plan.id: one for result, one in zip(own, found, strict=True)}
    return [
        trajectory(
            config,
            results[sample.rollout_id],
            advantage=sample.advantage,
            is_trained=sample.used,
            token_advantages=tokens.get(sample.rollout_id),
        )
        for sample in ordered
        if results[sample.rollout_id].turns
    ]


def _controlled_trajectories(
    config: RunConfig,
    step: RecordedStep,
    samples: Sequence[Sample],
    results: Mapping[UUID, RolloutResult],
) -> list[Trajectory]:
    """The step's rollouts with advantages computed under the configuration's control."""
    group_of: dict[UUID, list[RolloutResult]] = {}
    for sample in samples:
        group_of.setdefault(sample.group_id, []).append(results[sample.rollout_id])
    outcomes = []
    for group_id, members in group_of.items():
        ordered = tuple(sorted(members, key=lambda result: result.plan.env_index))
        plan = GroupPlan(ordered[0].plan.group_num, group_id, _ANY_TASK, ())
        outcomes.append(GroupOutcome(plan, ordered, is_failed=False))
    outcomes.sort(key=lambda outcome: outcome.plan.num)
    seed = control_seed(config, generation=step.generation, step=step.number)
    groups = select_samples(config, outcomes, control_seed=seed)
    return trajectories_of(config, [sample for group in groups for sample in group])


def _results_of(
    recorded: RecordedTraining,
    step: RecordedStep,
    samples: Sequence[Sample],
    read_blob: Callable[[str], bytes],
) -> dict[UUID, RolloutResult]:
    """The samples' rollouts by their ids. Raises NotFoundError if any are missing."""
    number, generation = step.number, step.generation
    step_id = ids.step_id(ids.training_id(recorded.run_name), generation, number)
    subject = recorded.stream.subject
    source = RolloutSource("step", step_id, f"step-{number}", generation, number - 1, subject)
    group_ids = {sample.group_id for sample in samples}
    groups = [GroupPlan(0, group_id, _ANY_TASK, ()) for group_id in group_ids]
    recalled = recall(recorded.history.streams, source, groups, read_blob)
    results = {result.plan.id: result for result in recalled.results.values()}
    missing = [sample for sample in samples if sample.rollout_id not in results]
    if missing:
        message = (
            f"step {step.number} cannot be trained again: {len(missing)} of its {len(samples)}"
            " rollouts, or their screenshots, are missing from the log or the blob store"
        )
        raise NotFoundError(message)
    return results


_ANY_TASK = StatedTask(Task("", "", "", None, None, 1, None, None), UUID(int=0), None)
"""Placeholder: an update reads recorded tokens and does not need their task."""
