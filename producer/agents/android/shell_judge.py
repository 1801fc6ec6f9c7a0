"""The judge: runs a task's device queries through a shell and compares the answers."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace

from producer.agents.android.queries import describe_unknown_query, find_queries
from producer.task import Task, joined_goals
from producer.validators.verdict import Evidence, Verdict


def judge(task: Task, shell: Callable[[str], str]) -> Verdict:
    """Run the task's queries and compare the answers.

    Raises ValueError if the task cannot be judged. Errors of `shell` (EnvironmentFailedError)
    propagate.
    """
    if task.validation_query is None or task.expected_result is None:
        message = f"task {task.task_id} cannot be judged: it has no validator"
        raise ValueError(message)
    queries = find_queries(task.validation_query)
    if queries is None:
        reason = describe_unknown_query(task.validation_query)
        message = f"task {task.task_id} cannot be judged: {reason}"
        raise ValueError(message)
    answers = [query.read(shell(query.command)) for query in queries]
    expected = [answer for _, answer in joined_goals(task.validation_query, task.expected_result)]
    return Verdict(
        [_compared(answer) for answer in answers] == [_compared(text) for text in expected],
        task.validation_query,
        task.expected_result,
        " & ".join(answers),
        {"commands": [query.command for query in queries]},
    )


def _compared(answer: str) -> str:
    return answer.strip().lower()


def single_query_tasks(task: Task) -> list[Task]:
    """Split the task into one task per device query, each with its own expected answer.

    Returns an empty list for a task without a query.
    """
    if task.validation_query is None or task.expected_result is None:
        return []
    return [
        replace(task, validation_query=query, expected_result=answer)
        for query, answer in joined_goals(task.validation_query, task.expected_result)
    ]


class JudgedByShell(ABC):
    """The part of an Android Environment that works through a shell, simulated or real."""

    ends_on_parse_error = False

    @abstractmethod
    def shell(self, command: str) -> str:
        """Run a shell command and return its output. Raises EnvironmentFailedError."""

    def judge(self, task: Task, evidence: Evidence) -> Verdict:  # noqa: ARG002  # judged by state alone
        """Judge by the answers to the task's device queries.

        Raises ValueError, EnvironmentFailedError.
        """
        return judge(task, self.shell)

    def failure_facts(self, evidence: Evidence, reason: str) -> None:  # noqa: ARG002  # required by the interface
        """None: an Android device has no environment-specific events for a failed episode."""
        return
