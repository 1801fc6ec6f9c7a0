"""One question of a text-to-SQL data set, whatever layout it came from."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Question:
    """A question about one database, with its gold."""

    question_id: int
    """Unique in its file."""
    db_id: str
    """The data set's name of the database."""
    database: Path
    """Its file."""
    question: str
    evidence: str
    """A hint given with the question; empty: none."""
    sql: str
    """The gold."""
    difficulty: str | None
    """As in the data set; None: unrated."""
    cocte: str | None = None
    """The gold in CoCTE form; None: not given."""
    prompt: str | None = None
    """What a policy is asked; None: made of the database's schema and the question."""
