"""One question: the policy answers with SQL, whose rows are compared with the gold's."""

from collections.abc import Callable
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from uuid import UUID

from producer.bounded_text import cut_optional
from producer.environments.environment import (
    ActionRefusedError,
    EnvironmentFailedError,
    TextObservation,
)
from producer.process_rewards.cocte import NotCocteError, read_cocte
from producer.process_rewards.row_sets import (
    SMALL_FILE_BYTES,
    Comparison,
    GoldFailedError,
    compare_rows,
    gold_rows,
)
from producer.sql_execution import DatabaseFailedError, open_read_only
from producer.task import Task
from producer.validators.verdict import EndFacts, Evidence, Verdict
from schemas.actions import Action, Answer, Terminate
from schemas.base import Payload
from schemas.completion import CompletionExecuted
from schemas.distribution import install_command
from schemas.entry import EntryContent

FindDatabase = Callable[[EntryContent], Path | None]
"""Returns the file of an entry's database, or None if it is missing. Raises CuaTrainError."""
QUERY = "rows"
"""The query name in verdicts."""


class TextToSqlEnvironment:
    """A single-turn question. Used by one thread at a time."""

    env_type = "text_to_sql"
    box_type = "database"
    is_simulated = True
    ends_on_parse_error = True

    def __init__(self, find_database: FindDatabase) -> None:
        """`find_database` locates the file of an entry's database."""
        self._find_database = find_database
        self._provider_id = ""

    @property
    def provider_id(self) -> str:
        """The database's name; empty before `open`."""
        return self._provider_id

    def open(self, task: Task, seed: int) -> TextObservation:  # noqa: ARG002  # questions have no variants
        """Find the database. The observation is empty, because the task holds the whole prompt.

        Raises EnvironmentFailedError.
        """
        self._database(task)
        self._provider_id = _entry(task).database or ""
        return TextObservation(None)

    def act(self, action: Action) -> TextObservation:
        """Accept the answer without executing it.

        Raises ActionRefusedError for any other action.
        """
        if not isinstance(action, Answer | Terminate):
            message = f"a question is answered with SQL, not with {action.type}"
            raise ActionRefusedError(message)
        return TextObservation(None)

    def judge(self, task: Task, evidence: Evidence) -> Verdict:
        """Judge whether the query returns the gold's rows. Raises EnvironmentFailedError."""
        sql, gold = _answered_sql(evidence), _gold(task)
        found = self.compare(task, sql)
        return Verdict(
            success=found.outcome == "correct",
            query=QUERY,
            expected=gold,
            actual=sql,
            details={"outcome": found.outcome},
            facts=completion_facts(sql, found),
        )

    def failure_facts(self, evidence: Evidence, reason: str) -> None:  # required by the interface
        """None: a failed question has no environment-specific events."""

    def compare(self, task: Task, sql: str | None) -> Comparison:
        """Compare the query's rows with the gold's. Raises EnvironmentFailedError."""
        try:
            return compare_rows(self._database(task), sql, _gold(task))
        except DatabaseFailedError as error:
            raise EnvironmentFailedError(str(error)) from error

    def check(self, task: Task) -> None:
        """Check that the task can be set up and judged.

        Golds of large databases are not executed. Raises ValueError, EnvironmentFailedError.
        """
        if find_spec("sqlglot") is None:
            message = f"text_to_sql needs sqlglot; run {install_command('sql')}"
            raise ValueError(message)
        database, gold = self._database(task), _gold(task)
        try:
            if database.stat().st_size > SMALL_FILE_BYTES:
                open_read_only(database).close()
            else:
                gold_rows(database, gold)
        except (DatabaseFailedError, GoldFailedError) as error:
            message = f"task {task.task_id}: {database}: {error}"
            raise ValueError(message) from error

    def close(self) -> None:
        """Do nothing: no connection stays open between two queries."""

    def _database(self, task: Task) -> Path:
        entry = _entry(task)
        path = self._find_database(entry)
        if path is None:
            message = (
                f"task {task.task_id}: database {entry.database!r} as it was recorded"
                f" ({(entry.database_sha256 or '')[:12]}) is in no data set of the task sources:"
                " its file was changed, or is gone"
            )
            raise EnvironmentFailedError(message)
        return path


def _entry(task: Task) -> EntryContent:
    if task.entry is None or task.entry.kind != "text_to_sql":
        message = f"task {task.task_id} is no text-to-SQL question"
        raise EnvironmentFailedError(message)
    return task.entry


def _gold(task: Task) -> str:
    sql = _entry(task).sql
    if sql is None:
        message = f"task {task.task_id} has no gold SQL"
        raise EnvironmentFailedError(message)
    return sql


def _answered_sql(evidence: Evidence) -> str | None:
    """The SQL of the last answer; None if there was no answer."""
    answers = [
        action.action.text for action in evidence.actions if isinstance(action.action, Answer)
    ]
    return answers[-1] if answers else None


def _num_steps(sql: str | None) -> int:
    """Number of steps of SQL in CoCTE form; 0 if it is in another form."""
    try:
        return len(read_cocte(sql or "").steps)
    except NotCocteError:
        return 0


def completion_facts(sql: str | None, found: Comparison) -> EndFacts:
    """A factory for the event that records how the completion ended."""

    def stated(entry_row: UUID, judged_at: datetime) -> tuple[Payload, ...]:
        return (
            CompletionExecuted(
                entry_id=entry_row,
                sql=cut_optional(sql),
                num_steps=_num_steps(sql),
                outcome=found.outcome,
                outcome_reward=found.reward,
                num_rows=found.num_rows,
                execution_time_s=found.execution_time_s,
                error_message=cut_optional(found.error_message),
                executed_at=judged_at,
            ),
        )

    return stated
