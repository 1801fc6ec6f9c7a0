"""Selects the tasks of each step from seed and position, so there is no iterator state.

If skills are trained one after another, a step uses the tasks that need its skill.
"""

import random
from collections.abc import Collection, Sequence

from producer.config import RunConfig
from producer.errors import UsageError
from producer.rollouts.plan import GroupOutcome
from producer.seeds import derived_seed
from producer.task import Task
from schemas.advice import did_you_mean


def batch_of_tasks(
    tasks: Sequence[Task], *, seed: int, batch: int, groups_per_batch: int
) -> list[Task]:
    """The tasks of batch `batch` (from 0); each epoch over the list has its own seeded order."""
    first = batch * groups_per_batch
    return [_task_at(tasks, seed, position) for position in range(first, first + groups_per_batch)]


def _task_at(tasks: Sequence[Task], seed: int, position: int) -> Task:
    epoch, index = divmod(position, len(tasks))
    order = list(range(len(tasks)))
    random.Random(derived_seed(seed, "order", epoch)).shuffle(order)  # noqa: S311  # not for secrets
    return tasks[order[index]]


def episodes_of_tasks(tasks: Sequence[Task], num_episodes: int) -> list[tuple[Task, int]]:
    """Spread `num_episodes` over the tasks as evenly as possible; omits tasks that get none."""
    each, extra = divmod(num_episodes, len(tasks))
    return [
        (task, each + (index < extra)) for index, task in enumerate(tasks) if each + (index < extra)
    ]


def tasks_of_step(config: RunConfig, tasks: Sequence[Task], step: int) -> list[Task]:
    """One task per group of step `step` (from 1); depends only on the configuration."""
    number = config.groups_per_batch
    if config.skill_sequence is None:
        return batch_of_tasks(tasks, seed=config.seed, batch=step - 1, groups_per_batch=number)
    stage, batch = divmod(step - 1, config.steps_per_skill)
    skill, earlier = config.skill_sequence[stage], config.skill_sequence[:stage]
    chosen = batch_of_tasks(
        [task for task in tasks if skill in skills_of(task)],
        seed=derived_seed(config.seed, "skill", skill),
        batch=batch,
        groups_per_batch=number,
    )
    past = [task for task in tasks if not skills_of(task).isdisjoint(earlier)]
    draws = random.Random(derived_seed(config.seed, "replay", step))  # noqa: S311  # not for secrets
    return [
        past[draws.randrange(len(past))] if past and draws.random() < config.replay_share else task
        for task in chosen
    ]


def tasks_of_refill(
    config: RunConfig, tasks: Sequence[Task], step: int, used: Collection[str], number: int
) -> list[Task]:
    """Up to `number` other tasks for step `step`; depends only on the arguments.

    `used`: ids of the tasks that the step has already sampled.
    """
    skills = config.skill_sequence
    skill = None if skills is None else skills[(step - 1) // config.steps_per_skill]
    left = [
        task
        for task in tasks
        if task.task_id not in used and (skill is None or skill in skills_of(task))
    ]
    random.Random(derived_seed(config.seed, "refill", step)).shuffle(left)  # noqa: S311  # not for secrets
    return left[:number]


def skills_of(task: Task) -> frozenset[str]:
    """Skills that the gold answer of the task's entry needs; empty for tasks without an entry."""
    return frozenset(() if task.entry is None else task.entry.skills)


def check_skills(config: RunConfig, tasks: Sequence[Task]) -> None:
    """Raise UsageError if no training task needs one of the skills in the sequence."""
    known = sorted(frozenset().union(*map(skills_of, tasks)))
    for skill in config.skill_sequence or ():
        if skill not in known:
            message = (
                f"skill_sequence: no training task needs {skill!r}.{did_you_mean(skill, known)}"
                f" The tasks need {', '.join(known) or 'no skills'}"
            )
            raise UsageError(message)


def evaluates_after(config: RunConfig, step: int) -> bool:
    """Whether a skill's training ends with this step."""
    return config.skill_sequence is not None and step % config.steps_per_skill == 0


def success_by_skill(outcomes: Sequence[GroupOutcome]) -> dict[str, tuple[int, int]]:
    """Skill -> (scored sessions whose entry needs it, solved ones); `all` counts each session once.

    Empty if no task has an entry with skills.
    """
    counts: dict[str, list[int]] = {}
    for outcome in outcomes:
        skills = skills_of(outcome.plan.stated.task)
        for skill in sorted(skills) + ["all"] * bool(skills):
            count = counts.setdefault(skill, [0, 0])
            count[0] += len(outcome.results)
            count[1] += sum(result.success for result in outcome.results)
    return {name: (total, right) for name, (total, right) in sorted(counts.items()) if total}
