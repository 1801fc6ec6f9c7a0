"""Refuses to resume a training if its task sources now give other tasks than at its beginning.

Every process reads its sources again (a file, a table of earlier tasks, a judge's endpoint). The
configuration names only the source and so does not show that the tasks changed.
"""

from collections.abc import Sequence

from producer.config.continuing import OTHERWISE
from producer.errors import UsageError
from producer.log.stream_history import StreamHistory
from schemas.task import TaskStated
from schemas.training import TrainingCreated, TrainingResumed, TrainingStarted

FIELDS = ("name", "description", "max_steps", "validation_query", "expected_result")
"""Fields named in messages about a change."""
MOST_NAMED = 5
"""Maximum number of changed tasks that the message names."""


def check_same_tasks(own: StreamHistory, tasks: Sequence[TaskStated]) -> None:
    """Raises UsageError unless `tasks` are those the training last used, in the same order.

    `own`: the training's stream. A training that no process has begun to train accepts any tasks.
    """
    before = _trained_with(own)
    if before is None:
        return
    if [task.id for task in before] == [task.id for task in tasks]:
        return
    message = f"this training was begun with other tasks: {_changes(before, tasks)}"
    raise UsageError(message, ways=("restore them to continue it", *OTHERWISE))


def _trained_with(own: StreamHistory) -> list[TaskStated] | None:
    """The tasks of the last process that began to train; None if no process did."""
    whole: list[TaskStated] | None = None
    stated: list[TaskStated] | None = None
    generation = 0
    for event in own.events:
        payload = event.payload
        if isinstance(payload, TrainingCreated):
            stated = []
        elif isinstance(payload, TrainingResumed):
            stated = []
            if payload.generation > generation and payload.current_step == 0:
                # An overwrite accepts other tasks, but its process may have died since.
                whole = None
            generation = payload.generation
        elif isinstance(payload, TaskStated) and stated is not None:
            stated.append(payload)
        elif isinstance(payload, TrainingStarted) and stated is not None:
            whole, stated = stated, None
    return whole


def _changed_fields(before: TaskStated, now: TaskStated) -> list[str]:
    return [name for name in FIELDS if getattr(before, name) != getattr(now, name)]


def _changed_part(before: TaskStated, now: TaskStated) -> str:
    """What changed, if it is none of `FIELDS`."""
    old, new = before.definition or {}, now.definition or {}
    is_entry = bool(old) and old.get("entry") != new.get("entry")
    return "table, database or gold" if is_entry else "definition"


def _changes(before: Sequence[TaskStated], now: Sequence[TaskStated]) -> str:
    """Describes the first few changed tasks."""
    old = {task.task_id: task for task in before}
    new = {task.task_id: task for task in now}
    changes = [f"{task_id!r} is gone" for task_id in old if task_id not in new]
    changes += [f"{task_id!r} is new" for task_id in new if task_id not in old]
    for task_id, task in new.items():
        if task_id in old and old[task_id].id != task.id:
            fields = _changed_fields(old[task_id], task) or [_changed_part(old[task_id], task)]
            changes.append(f"{task_id!r} has another {' and '.join(fields)}")
    num_more = len(changes) - MOST_NAMED
    named = ", ".join(changes[:MOST_NAMED]) or "they stand in another order"
    return f"{named} and {num_more} more" if num_more > 0 else named
