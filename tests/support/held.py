"""What the tables hold back, as an operator lists it."""

from consumers.projection.held_filter import HeldFilter
from consumers.projection.redrive import HeldSummary, Operator


def list_held(operator: Operator, held_as: str | None = None) -> list[HeldSummary]:
    """Everything that is held, by offset."""
    return [item for page in operator.held_pages(HeldFilter(held_as)) for item in page]
