"""Which tasks a step trains on: a function of seed and position, so there is no iterator state."""

import random
from collections.abc import Sequence

from producer.seeds import derived_seed
from producer.task import Task


def batch_of_tasks(
    tasks: Sequence[Task], *, seed: int, batch: int, groups_per_batch: int
) -> list[Task]:
    """The tasks of batch `batch` (from 0); every epoch over the list has its own seeded order."""
    first = batch * groups_per_batch
    return [_task_at(tasks, seed, position) for position in range(first, first + groups_per_batch)]


def _task_at(tasks: Sequence[Task], seed: int, position: int) -> Task:
    epoch, index = divmod(position, len(tasks))
    order = list(range(len(tasks)))
    random.Random(derived_seed(seed, "order", epoch)).shuffle(order)  # noqa: S311  # not for secrets
    return tasks[order[index]]


def episodes_of_tasks(tasks: Sequence[Task], num_episodes: int) -> list[tuple[Task, int]]:
    """(task, its share of `num_episodes`), as even as possible; tasks without a share left out."""
    each, extra = divmod(num_episodes, len(tasks))
    return [
        (task, each + (index < extra)) for index, task in enumerate(tasks) if each + (index < extra)
    ]
