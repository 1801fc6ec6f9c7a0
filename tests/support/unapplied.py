"""What the tables did not apply, as an operator lists it."""

from consumers.projection.operators import Operator, UnappliedSummary
from consumers.projection.unapplied_filter import UnappliedFilter


def list_unapplied(operator: Operator, state: str | None = None) -> list[UnappliedSummary]:
    """Everything that is not applied, by offset."""
    return [item for page in operator.unapplied_pages(UnappliedFilter(state)) for item in page]
