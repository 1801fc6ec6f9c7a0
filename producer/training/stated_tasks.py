"""Records tasks and their validators in the log, so that rows can refer to their definitions."""

from collections.abc import Sequence

from producer.emit import StreamWriter
from producer.rollouts.plan import StatedTask
from producer.task import Task
from producer.tasks.statements import entry_fact, task_facts
from producer.training.load_tasks import LoadedTasks
from schemas.task import TaskStated


def statements(loaded: LoadedTasks) -> list[TaskStated]:
    """What a training states of its tasks, in this order."""
    tasks = loaded.tasks
    if loaded.eval_tasks is not tasks:
        tasks = [*tasks, *loaded.eval_tasks]
    return [task_facts(task)[0] for task in tasks]


def state_tasks(stream: StreamWriter, tasks: Sequence[Task]) -> list[StatedTask]:
    """Emit each task's definition. Content-addressed, so restating one changes nothing."""
    stated: list[StatedTask] = []
    for task in tasks:
        task_event, validator_event = task_facts(task)
        stream.emit(task_event)
        if validator_event is not None:
            stream.emit(validator_event)
        entry_event = entry_fact(task, task_event.id)
        if entry_event is not None:
            stream.emit(entry_event)
        stated.append(
            StatedTask(
                task,
                task_event.id,
                None if validator_event is None else validator_event.id,
                None if entry_event is None else entry_event.id,
            )
        )
    return stated
