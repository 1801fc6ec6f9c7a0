"""Tasks from a file: JSON, JSON lines, a table with a header, or one instruction a line."""

import csv
import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue, ValidationError

from producer.errors import UsageError
from producer.task import Task
from producer.tasks.custom import CustomTask
from producer.tasks.mistakes import explain_mistake

TEXT_SUFFIX = ".txt"
DELIMITERS = {".csv": ",", ".tsv": "\t"}
"""Ending of a file that is a table -> what separates its cells."""
LIST_FIELDS = ("setup", "tags")
SEPARATOR = ";"
"""Between the parts of a cell of LIST_FIELDS."""
COMMENT = "#"


class _Row(NamedTuple):
    content: JsonValue
    line: int | None
    """From 1; None in a JSON array. Of a table: the last line of the row."""


def tasks_from_file(path: Path, where: str) -> list[Task]:
    """Every task of the file, in order. UsageError, led by `where`, with the line that is wrong.

    A file whose name ends in .txt has one instruction a line, unless it begins as JSON; blank lines
    and lines that begin with # are skipped. The first line of a .csv or .tsv file names the fields;
    an empty cell is a field that is not given, and `;` separates the parts of `setup` and `tags`.
    """
    text = _read(path, where)
    suffix = path.suffix.lower()
    if suffix in DELIMITERS:
        rows = list(_table_rows(text, path, where))
    elif suffix == TEXT_SUFFIX and text.lstrip()[:1] not in {"[", "{"}:
        rows = list(_text_rows(text))
    else:
        rows = list(_json_rows(text, path, where))
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


def _table_rows(text: str, path: Path, where: str) -> Iterator[_Row]:
    reader = csv.DictReader(
        StringIO(text, newline=""), delimiter=DELIMITERS[path.suffix.lower()], strict=True
    )
    try:
        names = [name.strip() for name in reader.fieldnames or ()]
        if not {"task_id", "description"} <= set(names) or len(set(names)) < len(names):
            message = (
                f"{where}: the first line of {path} must name each column once, among them task_id"
                f" and description; found {', '.join(map(repr, names)) or 'nothing'}"
            )
            raise UsageError(message)
        reader.fieldnames = names
        for row in reader:
            if None in row or None in row.values():
                message = (
                    f"{where}: {path} line {reader.line_num} has another number of cells than the"
                    f" {len(names)} columns; quote a cell that contains a comma"
                )
                raise UsageError(message)
            cells = {name: _cell(name, cell) for name, cell in row.items() if cell.strip()}
            yield _Row(cells, reader.line_num)
    except csv.Error as error:
        message = f"{where}: {path} line {reader.reader.line_num} is no row of a table: {error}"
        raise UsageError(message) from error


def _cell(name: str, cell: str) -> JsonValue:
    if name not in LIST_FIELDS:
        return cell
    return [part.strip() for part in cell.split(SEPARATOR) if part.strip()]


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
