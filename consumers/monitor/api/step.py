"""A training step: its measurements, and its rollouts by group."""

from itertools import groupby
from uuid import UUID

from pydantic import Field
from sqlalchemy.orm import Session

from consumers.monitor.api.value import Real, StatusChange, Utc, Value
from consumers.monitor.grid import tasks_of
from consumers.queries import (
    get_status_history,
    get_training,
    list_groups_by_step,
    list_rollouts_by_step,
)
from consumers.tables import Step


class StepSummary(Value):
    """One step of a training."""

    id: UUID
    """Row id; its answer is at `/api/steps/ID`."""
    step: int
    """From 1."""
    generation: int
    """Generation of the training that made it."""
    status: str
    """pending, rollout_collecting, training, completed, failed ..."""
    progress_percent: Real
    """0-100."""
    reward_mean: Real | None
    """Over its rollouts; null: it has not finished."""
    reward_std: Real | None
    """Population standard deviation of those rewards."""
    loss: Real | None
    """Summed over the samples of all substeps."""
    kl_divergence: Real | None
    """Mean of log p_sampling - log p_training over the action tokens, nats."""
    policy_gradient_norm: Real | None
    """Global L2 norm before clipping, mean over substeps."""
    learning_rate: Real
    """Of this step."""
    num_rollouts: int | None = Field(validation_alias="num_trajectories")
    """Rollouts that ended with a reward."""
    num_tokens: int | None
    """Completion tokens of those rollouts."""
    rollout_start_time: Utc | None
    """When its first rollout started."""
    rollout_end_time: Utc | None
    """When its last rollout ended."""
    training_start_time: Utc | None
    """When the update started."""
    training_end_time: Utc | None
    """When the update ended."""
    checkpoint_path: str | None
    """null: no checkpoint was saved."""
    updated_at: Utc
    """Time of the last event that changed it."""


class RolloutSummary(Value):
    """One rollout of a group."""

    id: UUID
    """Row id; its answer is at `/api/rollouts/ID`."""
    rollout_id: str
    """The text id: `demo/g0/step-3/group-2/env-1/attempt-0`."""
    env_index: int
    """Place in the group, from 0."""
    attempt: int
    """From 0; a failed attempt is followed by another."""
    status: str
    """Its state."""
    reward: Real | None
    """null: not scored."""
    task_success: bool | None
    """It counts as solved; null: not judged."""
    num_turns: int | None
    """Turns taken in all; null: it has not ended."""


class GroupFacts(Value):
    """Rollouts of one task that are compared with each other."""

    id: UUID
    """Row id."""
    group_num: int
    """From 0 within the step."""
    task_id: str | None
    """The task's text id; null: not recorded yet."""
    task_name: str | None
    """The task's name; null: not recorded yet."""
    status: str | None
    """Its state; null: not recorded yet."""
    reward_mean: Real | None
    """Of its completed rollouts."""
    reward_std: Real | None
    """Population standard deviation of their rewards."""
    dropped_reason: str | None
    """Why it was left out of training; null: it was used."""
    rollouts: list[RolloutSummary]
    """By place and attempt."""


class StepFacts(StepSummary):
    """A step with its groups and its status history."""

    training_id: UUID
    """Row id of its training."""
    run_name: str | None
    """Name of its training; null: not recorded yet."""
    superseded: bool
    """A newer generation repeats it."""
    current_phase: str | None
    """What it is doing."""
    error_message: str | None
    """Why it failed; null: it did not."""
    groups: list[GroupFacts]
    """By number."""
    status_history: list[StatusChange]
    """Newest first."""


def step_facts(session: Session, step: Step) -> StepFacts:
    """Everything that the page of the step has."""
    training = get_training(session, step.training_id)
    columns = {name: getattr(step, name) for name in _COLUMNS}
    facts: dict[str, object] = {
        "run_name": training.run_name if training else None,
        "groups": _groups(session, step.id),
        "status_history": get_status_history(session, "step", step.id),
    }
    return StepFacts.model_validate(columns | facts)


_COLUMNS = (*(StepFacts.model_fields.keys() & Step.__mapper__.columns.keys()), "num_trajectories")


def _groups(session: Session, step_id: UUID) -> list[dict[str, object]]:
    rollouts = list_rollouts_by_step(session, step_id)
    groups = {group.id: group for group in list_groups_by_step(session, step_id)}
    tasks = tasks_of(session, rollouts)
    facts: list[dict[str, object]] = []
    for group_id, rows in groupby(rollouts, key=lambda rollout: rollout.group_id):
        members = list(rows)
        group, task = groups.get(group_id), tasks.get(members[0].task_id)
        facts.append(
            {
                "id": group_id,
                "group_num": members[0].group_num,
                "task_id": task.task_id if task else None,
                "task_name": task.name if task else None,
                **{
                    name: getattr(group, name, None)
                    for name in ("status", "reward_mean", "reward_std", "dropped_reason")
                },
                "rollouts": members,
            }
        )
    return facts
