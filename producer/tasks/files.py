"""Tasks from a file: JSON, JSON lines, or text with one instruction a line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue, ValidationError

from producer.errors import UsageError
from producer.task import Task
from producer.tasks.custom import CustomTask
from producer.tasks.mistakes import explain_mistake

TEXT_SUFFIX = ".txt"
COMMENT = "#"


class _Row(NamedTuple):
    content: JsonValue
    line: int | None
    """From 1; None in a JSON array."""


def tasks_from_file(path: Path, where: str) -> list[Task]:
    """Every task of the file, in order. UsageError, led by `where`, with the line that is wrong.

    A file whose name ends in .txt has one instruction a line, unless it begins as JSON; blank lines
    and lines that begin with # are skipped.
    """
    text = _read(path, where)
    is_json = text.lstrip()[:1] in {"[", "{"} or path.suffix.lower() != TEXT_SUFFIX
    rows = list(_json_rows(text, path, where) if is_json else _text_rows(text))
    if not rows:
        message = f"{where}: {path} contains no task; give at least one task"
        raise UsageError(message)
    return [_task(row, f"{where}: {path}[{index}]") for index, row in enumerate(rows)]


def _read(path: Path, where: str) -> str:
    try:
        return path.expanduser().read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{where}: {path} is not UTF-8 text ({error})"
        raise UsageError(message) from error
    except (OSError, ValueError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        message = f"{where}: cannot read {str(path)!r}: {reason}"
        raise UsageError(message) from error


def _text_rows(text: str) -> Iterator[_Row]:
    for number, line in enumerate(text.split("\n"), start=1):
        instruction = line.strip()
        if instruction and not instruction.startswith(COMMENT):
            yield _Row(instruction, number)


def _json_rows(text: str, path: Path, where: str) -> Iterator[_Row]:
    place = ""
    try:
        if text.lstrip().startswith("["):
            for content in json.loads(text):
                yield _Row(content, None)
            return
        # Not splitlines(): JSON strings may contain U+2028 and U+0085.
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                place = f"line {number}: "
                yield _Row(json.loads(line), number)
    except (ValueError, RecursionError) as error:
        message = (
            f"{where}: {path} is neither a JSON array nor JSON lines: {place}{error}. Instructions,"
            f" one a line, belong in a file whose name ends in {TEXT_SUFFIX}"
        )
        raise UsageError(message) from error


def _task(row: _Row, place: str) -> Task:
    try:
        return CustomTask.model_validate_json(json.dumps(row.content)).task("file")
    except ValidationError as error:
        line = "" if row.line is None else f" (line {row.line})"
        message = f"{place}{explain_mistake(error, CustomTask)}{line}"
        raise UsageError(message) from error
