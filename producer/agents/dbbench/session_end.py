"""How a session ended: its status and its outcome are two things."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from producer.codecs.codec import CONTEXT_FULL
from producer.validators.verdict import Evidence
from schemas.actions import Answer, ExecuteSql
from schemas.base import Payload
from schemas.session import Outcome, SessionEnded, SessionStatus


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """What is known of a session before it is judged."""

    status: SessionStatus
    answer: str | None
    """The final answer; None: there was none."""
    num_rounds: int
    num_operations: int
    num_sql_errors: int
    error_message: str | None
    """What was wrong with the last completion; None: nothing."""

    def facts(
        self, outcome: Outcome, table_hash: str | None, error: str | None, num_replayed: int = 0
    ) -> "SessionFacts":
        """With what it came to."""
        return SessionFacts(self, outcome, table_hash, error, num_replayed)


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """Makes the events of a session's end, once the entry's row and the time are known."""

    end: SessionEnd
    outcome: Outcome
    table_hash: str | None
    error: str | None
    num_replayed: int

    def __call__(self, entry_row: UUID, judged_at: datetime) -> tuple[Payload, ...]:
        """The session's end as an event of its rollout's stream."""
        end = self.end
        return (
            SessionEnded(
                entry_id=entry_row,
                session_status=end.status,
                outcome=self.outcome,
                answer=end.answer,
                table_hash=self.table_hash,
                num_rounds=end.num_rounds,
                num_operations=end.num_operations,
                num_sql_errors=end.num_sql_errors,
                num_replayed=self.num_replayed,
                error_message=self.error or end.error_message,
                ended_at=judged_at,
            ),
        )


def session_end(evidence: Evidence) -> SessionEnd:
    """How the episode with this evidence ended."""
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
