"""The prompt of a text-to-SQL question: the schema, the hint, the question."""

from collections.abc import Sequence
from typing import Final

from producer.bounded_text import cut

MAX_PROMPT_CHARS: Final = 24_000
"""Of the schema; 6,000 tokens and more. BIRD's longest schema has 20,000."""
MAX_QUESTION_CHARS: Final = 4_000
"""Of the question, and of the evidence."""


def prompt_text(
    statements: Sequence[str],
    question: str,
    evidence: str = "",
    *,
    max_chars: int = MAX_PROMPT_CHARS,
) -> str:
    """The prompt.

    Statements beyond `max_chars` are left out from the first that does not fit, and their number is
    said; so is what is cut off a longer question.
    """
    kept: list[str] = []
    num_chars = 0
    for statement in statements:
        num_chars += len(statement) + 1
        if num_chars > max_chars:
            break
        kept.append(statement)
    if left := len(statements) - len(kept):
        kept.append(f"-- {left} more tables are not shown")
    parts = ["\n".join(kept)] if kept else []
    if hint := evidence.strip():
        parts.append(f"Evidence: {cut(hint, MAX_QUESTION_CHARS)}")
    parts.append(f"Question: {cut(question.strip(), MAX_QUESTION_CHARS)}")
    return "\n\n".join(parts)
