"""The judge: runs a task's device query through a shell and compares the answer."""

from collections.abc import Callable

from producer.task import Task
from producer.validators.queries import find_query
from producer.validators.query_descriptions import describe_unknown_query
from producer.validators.verdict import Verdict

EQUALS = "equals"
"""How answers are compared: as text, ignoring case and surrounding whitespace."""


def judge(task: Task, shell: Callable[[str], str]) -> Verdict:
    """Run the task's query and compare the answer.

    ValueError if the task cannot be judged. Errors of `shell` (EnvironmentFailedError) propagate.
    """
    if task.validation_query is None or task.expected_result is None:
        message = f"task {task.task_id} cannot be judged: it has no validator"
        raise ValueError(message)
    query = find_query(task.validation_query)
    if query is None:
        reason = describe_unknown_query(task.validation_query)
        message = f"task {task.task_id} cannot be judged: {reason}"
        raise ValueError(message)
    actual = query.read([shell(command) for command in query.commands])
    success = actual.strip().lower() == task.expected_result.strip().lower()
    return Verdict(
        success,
        task.validation_query,
        task.expected_result,
        actual,
        {"commands": list(query.commands)},
    )
