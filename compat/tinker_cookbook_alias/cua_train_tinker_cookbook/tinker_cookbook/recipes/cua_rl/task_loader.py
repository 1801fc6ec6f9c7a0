"""The recipe's functions that load tasks."""

from producer.cua_recipe import (
    load_demo_eval_tasks,
    load_demo_training_tasks,
    load_tasks_by_ids,
    load_tasks_from_file,
)

__all__ = [
    "load_demo_eval_tasks",
    "load_demo_training_tasks",
    "load_tasks_by_ids",
    "load_tasks_from_file",
]
