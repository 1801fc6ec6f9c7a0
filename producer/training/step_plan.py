"""The groups of a step: their tasks and seeds, and the extra groups that replace unusable ones."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from producer.config import RunConfig
from producer.rollouts.plan import GroupOutcome, GroupPlan, RolloutSource, StatedTask
from producer.seeds import derived_seed
from producer.training.batches import tasks_of_refill, tasks_of_step
from producer.training.samples import drop_reason
from producer.training.session import Session
from schemas import ids


@dataclass(frozen=True, slots=True)
class StepPlan:
    """What a step will do."""

    number: int
    """Step number, from 1."""
    id: UUID
    source: RolloutSource
    groups: tuple[GroupPlan, ...]


def plan_step(session: Session, number: int, tasks: Sequence[StatedTask]) -> StepPlan:
    """The step's groups: tasks by position in the data, environment seeds by position and group."""
    config, generation = session.config, session.generation
    step_id = ids.step_id(session.own_training_id, generation, number)
    source = RolloutSource(
        "step", step_id, f"step-{number}", generation, number - 1, session.stream.subject
    )
    chosen = tasks_of_step(config, [task.task for task in tasks], number)
    plan = StepPlan(number, step_id, source, ())
    by_id = {task.task.task_id: task for task in tasks}
    groups = [_group(config, plan, num, by_id[task.task_id]) for num, task in enumerate(chosen)]
    return replace(plan, groups=tuple(groups))


def groups_of_refill(
    config: RunConfig, plan: StepPlan, tasks: Sequence[StatedTask], outcomes: Sequence[GroupOutcome]
) -> list[GroupPlan]:
    """Plan one group on another task for each group with equal rewards, which gives no signal.

    `outcomes` covers all groups of the plan. Failed groups are not replaced. Returns fewer groups,
    or none, if the unused tasks run out. Deterministic, so a resumed process plans the same groups.
    """
    kept = [one for one in outcomes if drop_reason(config, one) != "zero_variance"]
    others = tasks_of_refill(
        config,
        [task.task for task in tasks],
        plan.number,
        used={group.stated.task.task_id for group in plan.groups},
        number=config.groups_per_batch - len(kept),
    )
    by_id = {task.task.task_id: task for task in tasks}
    return [
        _group(config, plan, num, by_id[task.task_id])
        for num, task in enumerate(others, len(plan.groups))
    ]


def _group(config: RunConfig, plan: StepPlan, num: int, stated: StatedTask) -> GroupPlan:
    has_baseline = config.advantage == "remax"
    # One seed for the whole group: its rollouts are compared, so they must start alike.
    seed = derived_seed(config.seed, "training", plan.source.generation, plan.number, num)
    return GroupPlan(
        num=num,
        id=ids.group_id(plan.id, num),
        stated=stated,
        seeds=(seed,) * (config.group_size + has_baseline),
        has_baseline=has_baseline,
    )
