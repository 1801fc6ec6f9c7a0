"""A session with an entry's table: SQL in, rows as text out, judged by the entry's gold."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID, uuid4

from producer.agents.dbbench.codec import rows_text
from producer.agents.dbbench.data.judging import is_right_answer
from producer.agents.dbbench.data.table import LIMITS, open_embedded, server_setup, state_hash
from producer.codecs.codec import CONTEXT_FULL
from producer.environments.environment import (
    ActionRefusedError,
    EnvironmentFailedError,
    TextObservation,
)
from producer.errors import UnreachableError, UsageError
from producer.sql_execution import Database, DatabaseFailedError, SqlRefusedError
from producer.sql_execution.mysql_admin import ServerUrl, administrator, parse_server_url
from producer.sql_execution.mysql_session import MysqlDatabase
from producer.task import Task
from producer.validators.verdict import EndFacts, Evidence, Verdict
from schemas.actions import Action, Answer, ExecuteSql, Terminate
from schemas.base import Payload
from schemas.entry import EntryContent, TableInfo
from schemas.session import Outcome, SessionEnded, SessionStatus

OpenDatabase = Callable[[TableInfo], Database]
"""Creates a database that holds only this table. Raises DatabaseFailedError, ValueError."""
QUERY = "dbbench"
"""The query name in verdicts."""


def open_on_server(url: str, password: str | None = None) -> OpenDatabase:
    """Create tables on this MySQL or MariaDB server. Raises UsageError for an invalid URL.

    `password` belongs to the URL's user; None uses the URL's own.
    """
    parsed = _server(url, password)

    def open_database(table: TableInfo) -> Database:
        return MysqlDatabase(administrator(parsed), server_setup(table), LIMITS)

    return open_database


def check_server(url: str, password: str | None = None) -> None:
    """Raise UnreachableError if the server cannot be used. Checked once per process."""
    try:
        administrator(_server(url, password))
    except DatabaseFailedError as error:
        hint = "" if password else "; its password belongs in CUA_DBBENCH_PASSWORD"
        message = f"dbbench_database: {error}{hint}"
        raise UnreachableError(message) from error


def _server(url: str, password: str | None) -> ServerUrl:
    try:
        parsed = parse_server_url(url)
    except ValueError as error:
        message = f"dbbench_database: {error}"
        raise UsageError(message) from error
    return parsed if password is None else parsed._replace(password=password)


class DbBenchEnvironment:
    """A session of DB Bench. Used by one thread at a time."""

    env_type = "dbbench"
    box_type = "database"
    is_simulated = True
    ends_on_parse_error = True

    def __init__(self, open_database: OpenDatabase = open_embedded) -> None:
        """`open_database` creates the database that holds the table."""
        self._open_database = open_database
        self._database: Database | None = None
        self._provider_id = ""

    @property
    def provider_id(self) -> str:
        """Name of the session, different for each `open`; empty before it."""
        return self._provider_id

    def open(self, task: Task, seed: int) -> TextObservation:  # noqa: ARG002  # entries have no variants
        """Build the table. The observation is empty. Raises EnvironmentFailedError."""
        self.close()
        table = _table(_entry(task))
        try:
            self._database = self._open_database(table)
        except (DatabaseFailedError, ValueError) as error:
            message = f"task {task.task_id}: {error}"
            raise EnvironmentFailedError(message) from error
        self._provider_id = f"session-{uuid4().hex[:12]}"
        return TextObservation(None)

    def act(self, action: Action) -> TextObservation:
        """Execute SQL and return its rows or its error as text.

        Raises ActionRefusedError for other actions.
        """
        match action:
            case ExecuteSql(sql=sql):
                try:
                    return TextObservation(rows_text(self._open().execute(sql)))
                except SqlRefusedError as error:
                    return TextObservation(f"Error: {error}", error=str(error))
                except DatabaseFailedError as error:
                    raise EnvironmentFailedError(str(error)) from error
            case Answer() | Terminate():
                return TextObservation(None)
            case _:
                message = f"a database cannot {action.type}"
                raise ActionRefusedError(message)

    def judge(self, task: Task, evidence: Evidence) -> Verdict:
        """Judge by the table's state or by the answer's values. Raises EnvironmentFailedError."""
        entry, end = _entry(task), session_end(evidence)
        found_hash: str | None = None
        actual: str | None
        if entry.answer_md5 is not None:
            found_hash = self._hash(_table(entry))
            expected, actual = entry.answer_md5, found_hash
            is_right = found_hash == entry.answer_md5
        else:
            from producer.agents.dbbench.data.skills import is_ordered

            gold = entry.answer_direct or ()
            expected, actual = str([list(row) for row in gold]), end.answer
            ordered = entry.sql is not None and is_ordered(entry.sql)
            is_right = end.answer is not None and is_right_answer(
                end.answer, gold, is_ordered=ordered
            )
        outcome: Outcome = "correct" if is_right else "incorrect"
        return Verdict(
            success=is_right,
            query=QUERY,
            expected=expected,
            actual=actual,
            details={"session_status": end.status, "outcome": outcome},
            facts=end.facts(outcome, found_hash, None),
        )

    def failure_facts(self, evidence: Evidence, reason: str) -> EndFacts:
        """Record that the database failed and nothing was judged. Does not access the database."""
        end = replace(session_end(evidence), status="task_environment_error")
        return end.facts("unknown", None, reason)

    def close(self) -> None:
        """Drop the database. Idempotent."""
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def _hash(self, table: TableInfo) -> str:
        try:
            return state_hash(self._open(), table)
        except DatabaseFailedError as error:
            raise EnvironmentFailedError(str(error)) from error

    def _open(self) -> Database:
        if self._database is None:
            message = "the session is not open"
            raise EnvironmentFailedError(message)
        return self._database


def _entry(task: Task) -> EntryContent:
    if task.entry is None or task.entry.kind != "dbbench":
        message = f"task {task.task_id} is no entry of DB Bench"
        raise EnvironmentFailedError(message)
    return task.entry


def _table(entry: EntryContent) -> TableInfo:
    if entry.table_info is None:
        message = f"entry {entry.entry_id} has no table_info"
        raise EnvironmentFailedError(message)
    return entry.table_info


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """The facts about a session that are known before it is judged."""

    status: SessionStatus
    answer: str | None
    """The final answer; None if there was none."""
    num_rounds: int
    num_operations: int
    num_sql_errors: int
    error_message: str | None
    """What was wrong with the last completion; None if nothing was."""

    def facts(self, outcome: Outcome, table_hash: str | None, error: str | None) -> EndFacts:
        """A factory for the event that records how the session ended."""

        def stated(entry_row: UUID, judged_at: datetime) -> tuple[Payload, ...]:
            return (
                SessionEnded(
                    entry_id=entry_row,
                    session_status=self.status,
                    outcome=outcome,
                    answer=self.answer,
                    table_hash=table_hash,
                    num_rounds=self.num_rounds,
                    num_operations=self.num_operations,
                    num_sql_errors=self.num_sql_errors,
                    num_replayed=0,
                    error_message=error or self.error_message,
                    ended_at=judged_at,
                ),
            )

        return stated


def session_end(evidence: Evidence) -> SessionEnd:
    """Summarise how the episode with this evidence ended."""
    answer, error = None, None
    status: SessionStatus = "task_limit_reached"
    for call in evidence.actions:
        if call.tool_name == CONTEXT_FULL:
            status, error = "agent_context_limit", call.error_message
        elif call.error_type is not None and call.error_type != "runtime":
            status, error = "agent_validation_failed", call.error_message
        elif isinstance(call.action, Answer):
            status, answer = "completed", call.action.text
    operations = [call for call in evidence.actions if isinstance(call.action, ExecuteSql)]
    return SessionEnd(
        status=status,
        answer=answer,
        num_rounds=evidence.num_turns,
        num_operations=len(operations),
        num_sql_errors=sum(call.error_type == "runtime" for call in operations),
        error_message=error,
    )
