"""Questions of a data set as tasks of one turn; whether their golds can be executed."""

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


DIFFICULTIES: Final[dict[str, Literal["easy", "medium", "hard"]]] = {
    "simple": "easy",
    "moderate": "medium",
    "challenging": "hard",
    "easy": "easy",
    "medium": "medium",
    "hard": "hard",
}
"""BIRD's names, and the tasks' own."""


def database_statements(path: Path) -> list[str]:
    """The CREATE TABLE statements of a database. UsageError that names the file."""
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
    """What a policy is asked."""
    if question.prompt is not None:
        return question.prompt
    return prompt_text(statements, question.question, question.evidence)


def question_task(question: Question, split: DataSplit, statements: Sequence[str]) -> Task:
    """The question as a task of one turn."""
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
    """`fails`: it cannot be executed; `no_rows`: it has none, so that a query that finds nothing is
    right; `cocte`: its gold in CoCTE form is in another form, or has other rows."""
    message: str


def findings(question: Question) -> Iterator[Finding]:
    """What is wrong with a question; nothing of a sound one."""
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
