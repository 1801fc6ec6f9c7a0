"""The judge: runs a task's device query through a shell and compares the answer.

It sees nothing else of the device.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic import JsonValue

from producer.task import Task
from producer.validators.queries import find_query

EQUALS = "equals"
"""How answers are compared: as text, without blanks around it, capital letters not distinguished.
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a validator found."""

    success: bool
    query: str
    expected: str
    actual: str
    method: str
    details: dict[str, JsonValue] = field(default_factory=dict)
    """The commands that were run."""


def judge(task: Task, shell: Callable[[str], str]) -> Verdict:
    """Ask the device and compare.

    ValueError for a task that cannot be judged; whatever `shell` raises (EnvironmentFailedError)
    passes through.
    """
    query = find_query(task.validation_query) if task.validation_query is not None else None
    if query is None or task.validation_query is None or task.expected_result is None:
        message = (
            f"{task.task_id} cannot be judged: no device query called {task.validation_query!r}"
        )
        raise ValueError(message)
    commands = query.commands(task.validation_config)
    actual = query.read([shell(command) for command in commands])
    success = actual.strip().lower() == task.expected_result.strip().lower()
    return Verdict(
        success,
        task.validation_query,
        task.expected_result,
        actual,
        EQUALS,
        {"commands": list(commands)},
    )
