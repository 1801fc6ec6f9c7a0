"""Tasks as users write them, as an object or only an instruction, and files of such tasks.

A file is JSON, JSON lines, a table with a header, or one instruction per line.
"""

import csv
import json
import re
import unicodedata
from collections.abc import Iterator
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, Self

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, ValidationError, model_validator

from producer.agents.android.queries import (
    describe_unknown_query,
    describe_wrong_answer,
    find_queries,
)
from producer.errors import UsageError
from producer.field_errors import explain_mistake
from producer.json_text import RefusedJsonError, read_strict
from producer.numbers import UserFields
from producer.task import Difficulty, Name, Split, Task

DEFAULT_MAX_STEPS = 20
"""Maximum turns of a custom task without `max_steps`; the same as the recipe's max_turns."""
MAX_SLUG_CHARS: Final = 40
MAX_TITLE_CHARS: Final = 80
ONLY_SHOWN: Final = frozenset({"judged", "source_type"})
"""Fields in the output of `cua-train tasks show --json` that are derived from the others."""
OF_OTHER_SOURCES: Final = frozenset({"judge", "judge_model", "entry"})
"""Fields that only tasks from other sources have."""
TEXT_SUFFIX = ".txt"
BEGINS_AS_JSON: Final = re.compile(r'\s*(?:\{\s*(?:"|\}\s*$)|\[\s*(?:["\[{]|\]\s*$))')
"""Matches the beginning of a JSON object or array of tasks. `[Settings] Turn on Wi-Fi` does not
match, because it is an instruction."""
DELIMITERS = {".csv": ",", ".tsv": "\t"}
"""Maps the suffix of a table file to its delimiter."""
LIST_FIELDS = ("setup", "tags")
SEPARATOR = ";"
"""Separates the parts of a cell of LIST_FIELDS."""
COMMENT = "#"
CONTROL: Final = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
"""Control characters that are no blanks."""


def _without_nul(text: str) -> str:
    if "\x00" in text:
        message = "contains a NUL character; remove it"
        raise ValueError(message)
    return text


class CustomTask(UserFields):
    """A task as a user writes it.

    A plain string is the instruction of a task without a validator.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    task_id: Name
    """Identifies the task in reports and tables."""
    description: Annotated[str, Field(min_length=1, pattern=r"\S"), AfterValidator(_without_nul)]
    """The instruction."""
    name: Name | None = None
    """Title for people; defaults to the task_id."""
    difficulty: Difficulty | None = None
    """Difficulty for filters; None if unrated."""
    category: str | None = None
    """Category for filters."""
    max_steps: int = Field(DEFAULT_MAX_STEPS, ge=1, le=1_000_000)
    """Maximum turns the agent may take."""
    validation_query: str | None = None
    """Device query (`wifi_enabled`, `setting_global/wifi_on`). Without one, the task cannot be
    judged by the device."""
    expected: str | int | bool | None = None
    """The answer that solves the task; numbers and booleans are compared as text."""
    validation_config: dict[str, str] = {}
    """Must be empty: queries take no parameters except in their name."""
    setup: tuple[str, ...] = ()
    """Shell commands run before the episode."""
    tags: tuple[str, ...] = ()
    """Recorded with the task."""
    app_name: str | None = None
    """Recorded with the task; None for no particular app."""
    split: Split = "train"
    """Whether the task is for training or evaluation."""

    @model_validator(mode="before")
    @classmethod
    def _read_text(cls, given: Any) -> Any:  # noqa: ANN401  # whatever was passed
        """Accept an instruction alone, or the output of `cua-train tasks show --json`."""
        if isinstance(given, dict):
            kept = {key: value for key, value in given.items() if key not in ONLY_SHOWN}
            if "expected_result" in kept and "expected" not in kept:
                kept["expected"] = kept.pop("expected_result")
            # `cua-train tasks show --json` prints these fields for every task. A value means that
            # the task comes from another source; it is then refused.
            return {k: v for k, v in kept.items() if k not in OF_OTHER_SOURCES or v is not None}
        if not isinstance(given, str):
            return given
        text = unicodedata.normalize("NFC", given.strip())
        return {"task_id": text_task_id(text), "name": _title(text) or None, "description": text}

    @model_validator(mode="after")
    def _validator_is_complete(self) -> Self:
        if self.validation_query is not None and find_queries(self.validation_query) is None:
            message = f"validation_query: {describe_unknown_query(self.validation_query)}"
            raise ValueError(message)
        if self.validation_query is not None and self.expected is None:
            message = (
                "expected: required with validation_query; give the answer that solves the task"
            )
            raise ValueError(message)
        if self.validation_query is None and self.expected is not None:
            message = "expected: needs a validation_query to compare with"
            raise ValueError(message)
        if self.validation_config:
            message = (
                "validation_config: no query takes parameters; leave it out (the name of some"
                " queries ends in one, such as app_running_PACKAGE)"
            )
            raise ValueError(message)
        if self.validation_query is not None:
            wrong = describe_wrong_answer(self.validation_query, str(self.expected))
            if wrong is not None:
                message = f"{wrong}; `cua-train tasks queries` lists what each query answers"
                raise ValueError(message)
        return self

    def task(self, source_type: str) -> Task:
        """Convert to a Task."""
        same = self.model_dump(exclude={"name", "expected"})
        expected = None if self.expected is None else str(self.expected)
        name = self.name or self.task_id
        return Task(**same, name=name, expected_result=expected, source_type=source_type)


def text_task_id(text: str) -> str:
    """The id of a task that is only an instruction; it depends on the text alone."""
    words = re.sub(r"[\W_]+", "_", text.casefold()).strip("_")[:MAX_SLUG_CHARS].strip("_")
    return f"{words or 'task'}_{sha256(text.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _title(text: str) -> str:
    """The beginning of the text on one line, without control characters; may be empty."""
    words = " ".join(CONTROL.sub("", text).split())
    return words if len(words) <= MAX_TITLE_CHARS else f"{words[: MAX_TITLE_CHARS - 1]}…"


class _Row(NamedTuple):
    content: JsonValue
    line: int | None
    """Line number from 1; None in a JSON array. For a table, the last line of the row."""


def tasks_from_file(path: Path, where: str) -> list[Task]:
    """Read every task of the file, in order.

    Raises UsageError, which begins with `where` and names the offending line.

    A file whose name ends in .txt has one instruction per line, unless it begins like JSON; blank
    lines and lines that begin with # are skipped. The first line of a .csv or .tsv file names the
    fields. An empty cell means that the field is not given, a row of empty cells is skipped, and
    `;` separates the parts of `setup` and `tags`.
    """
    text = _read(path, where)
    suffix = path.suffix.lower()
    if suffix in DELIMITERS:
        rows = list(_table_rows(text, path, where))
    elif suffix == TEXT_SUFFIX and not BEGINS_AS_JSON.match(text):
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
            if len(names) == 1 and ";" in names[0]:
                message += "; its columns are separated by ';', save it with commas"
            raise UsageError(message)
        reader.fieldnames = names
        for row in reader:
            if _is_blank(row):
                continue
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


def _is_blank(row: dict[Any, Any]) -> bool:
    """Whether all cells of a row are empty, even beyond the columns, where Excel leaves some."""
    cells = [*row.get(None, ()), *(cell for name, cell in row.items() if name is not None)]
    return not any(cell and cell.strip() for cell in cells)


def _cell(name: str, cell: str) -> JsonValue:
    if name not in LIST_FIELDS:
        return cell
    return [part.strip() for part in cell.split(SEPARATOR) if part.strip()]


def _json_rows(text: str, path: Path, where: str) -> Iterator[_Row]:
    place = ""
    try:
        if text.lstrip().startswith("["):
            rows = read_strict(text)
            for content in rows if isinstance(rows, list) else [rows]:
                yield _Row(content, None)
            return
        # splitlines() would be wrong: JSON strings may contain U+2028 and U+0085.
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                place = f"line {number}: "
                yield _Row(read_strict(line), number)
    except RefusedJsonError as error:
        message = f"{where}: {path}: {place}{error}"
        raise UsageError(message) from error
    except ValueError as error:
        advice = (
            "if its lines are instructions, begin it with a line `# instructions`"
            if path.suffix.lower() == TEXT_SUFFIX
            else f"instructions, one a line, belong in a file whose name ends in {TEXT_SUFFIX}"
        )
        message = (
            f"{where}: {path} is neither a JSON array nor JSON lines: {place}{error}; {advice}"
        )
        raise UsageError(message) from error


def _task(row: _Row, place: str) -> Task:
    try:
        return CustomTask.model_validate_json(json.dumps(row.content)).task("file")
    except ValidationError as error:
        line = "" if row.line is None else f" (line {row.line})"
        message = f"{place}{explain_mistake(error, CustomTask)}{line}"
        raise UsageError(message) from error
