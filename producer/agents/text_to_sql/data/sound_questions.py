"""The questions of a split with their databases' schemas, with or without the unsound ones.

Published data sets may lack databases or contain golds that fail on their database.
"""

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from producer.agents.text_to_sql.data.layouts import (
    DataSplit,
    Question,
    question_files,
    read_questions,
)
from producer.agents.text_to_sql.data.tasks import (
    database_statements,
    findings,
    question_task,
)
from producer.console import warn_of_some
from producer.errors import UsageError
from producer.sql_execution.sqlite import FileState, file_state
from producer.task import Task

OTHERWISE = (
    "correct the data",
    "leave such questions out with --skip-invalid",
    'leave them out with "skip_invalid": true in the task source',
)


class SoundQuestions(NamedTuple):
    """The questions read from a split."""

    questions: list[Question]
    statements: dict[Path, list[str]]
    """The CREATE TABLE statements of each database."""
    left_out: list[str]
    """For each question that is left out, the reason."""


def sound_questions(
    folder: Path,
    split: DataSplit,
    *,
    skip_invalid: bool,
    is_checked: bool = False,
) -> SoundQuestions:
    """Read the questions of a split. Raises UsageError.

    With `skip_invalid`, questions with an invalid record, a missing or unreadable database or a
    failing gold are left out, counted and logged instead of refused. With `is_checked`, golds are
    not executed, because the caller does so.
    """
    question_files(folder, split)  # what is missing as a whole cannot be left out
    left_out: list[str] = []
    try:
        questions = read_questions(folder, split, left_out if skip_invalid else None)
        statements, unreadable = _statements(questions, skip_invalid=skip_invalid)
    except UsageError as error:
        raise UsageError(
            error.message, ways=error.ways or (() if skip_invalid else OTHERWISE)
        ) from error
    sound = []
    for question in questions:
        problem = unreadable.get(question.database)
        if problem is None and skip_invalid and not is_checked:
            problem = gold_problem(question)
        if problem is None:
            sound.append(question)
        else:
            left_out.append(f"question {question.question_id} about {question.db_id}: {problem}")
    if left_out:
        _warn_once(folder, tuple(left_out), len(sound) + len(left_out))
    if not sound:
        message = f"{folder}: no question of split {split!r} is sound: {left_out[0]}"
        raise UsageError(message)
    return SoundQuestions(sound, statements, left_out)


def load_text_to_sql(
    folder: Path, split: DataSplit, where: str, *, skip_invalid: bool = False
) -> list[Task]:
    """The tasks of a split.

    Raises UsageError with a message that begins with `where`.
    """
    try:
        read = sound_questions(folder, split, skip_invalid=skip_invalid)
    except UsageError as error:
        message = f"{where}: {error.message}"
        raise UsageError(message, ways=error.ways) from error
    return [
        question_task(question, split, read.statements[question.database])
        for question in read.questions
    ]


def gold_problem(question: Question) -> str | None:
    """Why the gold cannot be trained on; None if it can."""
    return _gold_problem(question, file_state(question.database))


@lru_cache(maxsize=65_536)
def _gold_problem(question: Question, _state: FileState) -> str | None:
    return next((found.message for found in findings(question) if found.problem != "no_rows"), None)


@lru_cache(maxsize=64)
def _warn_once(folder: Path, left_out: tuple[str, ...], num_questions: int) -> None:
    """Log what is left out, once per process, although the data set is read several times."""
    summary = f"{folder}: {len(left_out):,} of {num_questions:,} questions are left out"
    warn_of_some([summary, *left_out], "questions that are left out")


def _statements(
    questions: list[Question], *, skip_invalid: bool
) -> tuple[dict[Path, list[str]], dict[Path, str]]:
    """Each database's CREATE TABLE statements, and the problems of unreadable databases."""
    statements: dict[Path, list[str]] = {}
    unreadable: dict[Path, str] = {}
    for path in sorted({question.database for question in questions}):
        try:
            statements[path] = database_statements(path)
        except UsageError as error:
            if not skip_invalid:
                raise
            unreadable[path] = str(error)
    return statements, unreadable
