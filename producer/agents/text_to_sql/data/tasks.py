"""Data set questions as single-turn tasks, and checks that their golds can be executed."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from producer.agents.text_to_sql.data.database_schema import (
    UnreadableDatabaseError,
    create_statements,
    read_tables,
)
from producer.agents.text_to_sql.data.databases import SOURCE_TYPE, database_sha256
from producer.agents.text_to_sql.data.descriptions import read_descriptions
from producer.agents.text_to_sql.data.layouts import DataSplit, Question
from producer.bounded_text import cut
from producer.errors import UsageError
from producer.process_rewards.cocte import NotCocteError, read_cocte
from producer.process_rewards.row_sets import GoldFailedError, RowSet, gold_rows
from producer.sql_execution import DatabaseFailedError
from producer.task import Task
from schemas.entry import EntryContent

MAX_PROMPT_CHARS: Final = 24_000
"""Maximum length of the schema in a prompt, 6,000 tokens or more. BIRD's longest schema has
20,000."""
MAX_QUESTION_CHARS: Final = 4_000
"""Maximum length of the question, and also of the evidence."""


def prompt_text(
    statements: Sequence[str],
    question: str,
    evidence: str = "",
    *,
    max_chars: int = MAX_PROMPT_CHARS,
) -> str:
    """Build a prompt from a schema and a question.

    Statements from the first that does not fit into `max_chars` are omitted, and the prompt says
    how many; it also says what was cut off a longer question.
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


DIFFICULTIES: Final[dict[str, Literal["easy", "medium", "hard"]]] = {
    "simple": "easy",
    "moderate": "medium",
    "challenging": "hard",
    "easy": "easy",
    "medium": "medium",
    "hard": "hard",
}
"""Maps BIRD's and other difficulty names to the tasks' own."""


def database_statements(path: Path) -> list[str]:
    """The CREATE TABLE statements of a database.

    Raises UsageError that names the file.
    """
    try:
        statements = create_statements(read_tables(path), read_descriptions(path))
    except UnreadableDatabaseError as error:
        message = f"{path}: is no SQLite database that can be read: {error}"
        raise UsageError(message) from error
    if not statements:
        message = f"{path}: the database has no tables"
        raise UsageError(message)
    return statements


def question_prompt(question: Question, statements: Sequence[str]) -> str:
    """The text that a policy is prompted with."""
    if question.prompt is not None:
        return question.prompt
    return prompt_text(statements, question.question, question.evidence)


def question_task(question: Question, split: DataSplit, statements: Sequence[str]) -> Task:
    """Turn the question into a single-turn task."""
    task_id = f"{split}_{question.db_id}_{question.question_id}"
    return Task(
        task_id=task_id,
        name=task_id,
        description=question_prompt(question, statements),
        difficulty=DIFFICULTIES.get(question.difficulty or ""),
        category=question.db_id,
        max_steps=1,
        validation_query=None,
        expected_result=None,
        source_type=SOURCE_TYPE,
        split="train" if split == "train" else "eval",
        entry=EntryContent(
            kind="text_to_sql",
            entry_id=str(question.question_id),
            instruction=question.question,
            database=question.db_id,
            database_sha256=database_sha256(question.database),
            evidence=question.evidence or None,
            sql=question.sql,
            difficulty=question.difficulty,
        ),
    )


Problem = Literal["fails", "no_rows", "cocte"]


class Finding(NamedTuple):
    """What is wrong with a question's gold."""

    question: Question
    problem: Problem
    """`fails`: the gold cannot be executed. `no_rows`: it returns no rows, so any query that finds
    nothing is right. `cocte`: the gold in CoCTE form is not in that form or returns other rows."""
    message: str


def findings(question: Question) -> Iterator[Finding]:
    """Yield what is wrong with a question's golds; nothing if they are sound."""
    try:
        rows = gold_rows(question.database, question.sql)
    except (GoldFailedError, DatabaseFailedError) as error:
        yield Finding(question, "fails", str(error))
        return
    if not rows:
        yield Finding(question, "no_rows", "the gold has no rows")
    if question.cocte is not None and (message := _cocte_problem(question, question.cocte, rows)):
        yield Finding(question, "cocte", message)


def _cocte_problem(question: Question, cocte: str, rows: RowSet) -> str | None:
    try:
        found = gold_rows(question.database, read_cocte(cocte).sql)
    except (NotCocteError, GoldFailedError, DatabaseFailedError) as error:
        return str(error)
    return None if found == rows else "the gold in CoCTE form has other rows than the gold"
