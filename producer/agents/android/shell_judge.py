"""The judge: runs a task's device query through a shell and compares the answer."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from producer.agents.android.queries import find_query
from producer.agents.android.query_descriptions import describe_unknown_query
from producer.task import Task
from producer.validators.verdict import Evidence, Verdict


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


class JudgedByShell(ABC):
    """The part of a device's Environment that its shell answers, simulated or real."""

    ends_on_parse_error = False

    @abstractmethod
    def shell(self, command: str) -> str:
        """Run a shell command; its output. EnvironmentFailedError."""

    def judge(self, task: Task, evidence: Evidence) -> Verdict:  # noqa: ARG002  # by its state alone
        """By the answer to the task's device query. ValueError, EnvironmentFailedError."""
        return judge(task, self.shell)

    def failure_facts(self, evidence: Evidence, reason: str) -> None:  # noqa: ARG002  # as the interface
        """None: a device has no end of its own by a failure."""
        return
