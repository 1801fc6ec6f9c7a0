"""How a completion ended, for the record."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from producer.bounded_text import cut_optional
from producer.process_rewards.cocte import NotCocteError, read_cocte
from producer.process_rewards.row_sets import Comparison
from producer.validators.verdict import Evidence
from schemas.actions import Answer
from schemas.base import Payload
from schemas.completion import CompletionExecuted


def answered_sql(evidence: Evidence) -> str | None:
    """The query that was answered with; None: there was none."""
    answers = [
        action.action.text for action in evidence.actions if isinstance(action.action, Answer)
    ]
    return answers[-1] if answers else None


def num_steps(sql: str | None) -> int:
    """Steps of SQL in CoCTE form; 0: it is in another form."""
    try:
        return len(read_cocte(sql or "").steps)
    except NotCocteError:
        return 0


@dataclass(frozen=True, slots=True)
class CompletionFacts:
    """Makes the event, once the entry's row and the time are known."""

    sql: str | None
    found: Comparison

    def __call__(self, entry_row: UUID, judged_at: datetime) -> tuple[Payload, ...]:
        """The completion's end as an event of its rollout's stream."""
        found = self.found
        return (
            CompletionExecuted(
                entry_id=entry_row,
                sql=cut_optional(self.sql),
                num_steps=num_steps(self.sql),
                outcome=found.outcome,
                outcome_reward=found.reward,
                num_rows=found.num_rows,
                execution_time_s=found.execution_time_s,
                error_message=cut_optional(found.error_message),
                executed_at=judged_at,
            ),
        )
