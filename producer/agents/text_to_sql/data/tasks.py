"""Questions of a data set as tasks of one turn."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from producer.agents.text_to_sql.data.database_schema import (
    UnreadableDatabaseError,
    create_statements,
    read_tables,
)
from producer.agents.text_to_sql.data.databases import SOURCE_TYPE, database_sha256
from producer.agents.text_to_sql.data.descriptions import read_descriptions
from producer.agents.text_to_sql.data.layouts import DataSplit, read_questions
from producer.agents.text_to_sql.data.prompt import prompt_text
from producer.agents.text_to_sql.data.question import Question
from producer.errors import NotFoundError, UsageError
from producer.task import Task
from schemas.entry import EntryContent

DIFFICULTIES: Final[dict[str, Literal["easy", "medium", "hard"]]] = {
    "simple": "easy",
    "moderate": "medium",
    "challenging": "hard",
    "easy": "easy",
    "medium": "medium",
    "hard": "hard",
}
"""BIRD's names, and the tasks' own."""


def load_text_to_sql(folder: Path, split: DataSplit, where: str) -> list[Task]:
    """The tasks of a split. UsageError, led by `where`, NotFoundError."""
    try:
        questions = read_questions(folder, split)
        statements = {
            path: database_statements(path)
            for path in {question.database for question in questions}
        }
    except (UsageError, NotFoundError) as error:
        message = f"{where}: {error}"
        raise type(error)(message) from error
    return [_task(question, split, statements[question.database]) for question in questions]


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


def _task(question: Question, split: DataSplit, statements: Sequence[str]) -> Task:
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
