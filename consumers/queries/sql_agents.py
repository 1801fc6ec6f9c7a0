"""What SQL agents did: entries, sessions, completions with their scored steps."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from consumers.tables import (
    AgentSession,
    Completion,
    CompletionScore,
    Entry,
    Rollout,
    StepScore,
)
from schemas.entry import EntryContent


class ScoredCompletion(NamedTuple):
    """What one scorer makes of a completion, as a whole and step by step."""

    whole: CompletionScore
    steps: Sequence[StepScore]
    """By index."""


def get_entry(session: Session, entry_id: UUID) -> Entry | None:
    """The entry with this row id."""
    return session.get(Entry, entry_id)


def entry_content(entry: Entry) -> EntryContent:
    """The entry as it was stated.

    Of values that PostgreSQL keeps otherwise (NUL, -0.0, floats of whole numbers beyond 10^15) as
    the row has them.
    """
    table = None
    if entry.table_name is not None:
        table = {"name": entry.table_name, "columns": entry.columns_json, "rows": entry.rows_json}
    names = ("kind", "entry_id", "instruction", "database", "database_sha256", "evidence")
    columns = {name: getattr(entry, name) for name in (*names, "answer_md5", "sql", "difficulty")}
    content = {"table_info": table, "answer_direct": entry.answer_direct_json, **columns}
    return EntryContent.model_validate(content | {"skills": entry.skills})


def list_entries_by_task(session: Session, task_id: UUID) -> Sequence[Entry]:
    """What a task is made of; several where its content has changed, oldest first."""
    order = (Entry.created_at, Entry.id)
    return session.scalars(select(Entry).where(Entry.task_id == task_id).order_by(*order)).all()


def get_session_by_rollout(session: Session, rollout_id: UUID) -> AgentSession | None:
    """How a rollout's session with a database ended; None: it is no session, or has not ended."""
    return session.get(AgentSession, rollout_id)


def list_sessions(
    session: Session,
    training_id: UUID | None = None,
    *,
    outcome: str | None = None,
    session_status: str | None = None,
    entry_id: UUID | None = None,
) -> Sequence[AgentSession]:
    """Sessions by the time of their end, of one training or of all; each condition narrows them."""
    query = select(AgentSession)
    if training_id is not None:
        query = query.join(Rollout, Rollout.id == AgentSession.id)
        query = query.where(Rollout.training_id == training_id)
    for column, wanted in (
        (AgentSession.outcome, outcome),
        (AgentSession.session_status, session_status),
        (AgentSession.entry_id, entry_id),
    ):
        if wanted is not None:
            condition: ColumnElement[bool] = column == wanted
            query = query.where(condition)
    return session.scalars(query.order_by(AgentSession.end_time, AgentSession.id)).all()


def get_completion_by_rollout(session: Session, rollout_id: UUID) -> Completion | None:
    """What a rollout's SQL came to; None: it is no text-to-SQL completion, or has not ended."""
    return session.get(Completion, rollout_id)


def list_completions(
    session: Session,
    training_id: UUID | None = None,
    *,
    outcome: str | None = None,
    entry_id: UUID | None = None,
) -> Sequence[Completion]:
    """Completions by the time of their execution, of one training or of all."""
    query = select(Completion)
    if training_id is not None:
        query = query.join(Rollout, Rollout.id == Completion.id)
        query = query.where(Rollout.training_id == training_id)
    if outcome is not None:
        query = query.where(Completion.outcome == outcome)
    if entry_id is not None:
        query = query.where(Completion.entry_id == entry_id)
    return session.scalars(query.order_by(Completion.executed_at, Completion.id)).all()


def list_scores_by_completion(session: Session, completion_id: UUID) -> Sequence[ScoredCompletion]:
    """Every scorer's opinion of a completion, by the scorer's name."""
    wholes = session.scalars(
        select(CompletionScore)
        .where(CompletionScore.completion_id == completion_id)
        .order_by(CompletionScore.scorer)
    ).all()
    steps = session.scalars(
        select(StepScore)
        .where(StepScore.completion_id == completion_id)
        .order_by(StepScore.step_index)
    ).all()
    return [
        ScoredCompletion(whole, [step for step in steps if step.scorer == whole.scorer])
        for whole in wholes
    ]
