"""Which tasks a step trains on."""

from collections import Counter

from producer.task import Task
from producer.training.batches import batch_of_tasks, episodes_of_tasks

TASKS = [Task(f"t{n}", f"t{n}", "do it", "easy", "app", 5, "current_app", "x") for n in range(5)]


def test_every_task_is_used_once_before_any_is_used_again() -> None:
    names = [
        task.task_id
        for batch in range(5)
        for task in batch_of_tasks(TASKS, seed=1, batch=batch, groups_per_batch=3)
    ]
    assert [Counter(names[start : start + 5]) for start in (0, 5, 10)] == [
        Counter(task.task_id for task in TASKS)
    ] * 3


def test_a_batch_depends_on_its_position_and_the_seed_alone() -> None:
    first = batch_of_tasks(TASKS, seed=1, batch=3, groups_per_batch=4)
    assert batch_of_tasks(TASKS, seed=1, batch=3, groups_per_batch=4) == first
    assert [
        batch_of_tasks(TASKS, seed=seed, batch=3, groups_per_batch=4) for seed in range(2, 8)
    ] != [first] * 6


def test_episodes_are_spread_evenly_and_none_is_lost() -> None:
    assert [count for _, count in episodes_of_tasks(TASKS, 12)] == [3, 3, 2, 2, 2]
    assert [count for _, count in episodes_of_tasks(TASKS, 3)] == [1, 1, 1]
