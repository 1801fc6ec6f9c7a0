"""Reads and writes the published layout of DB Bench.

`entry_dict.json` is an object that maps names to entries; Parquet has one row per entry. A field
that is an object or a list may be given as JSON text instead, as in the Parquet files. The folder
may be a data set of the Hugging Face hub, which is downloaded once into the hub's own cache.
"""

import ast
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from pydantic import JsonValue

from producer.agents.dbbench.data.column_types import column_type
from producer.agents.dbbench.data.skills import SKILLS, GoldUnreadableError, kind_of, skills_of
from producer.agents.dbbench.data.table import EMPTY, state_after, table_rows
from producer.durable import write_durably
from producer.errors import UnreachableError, UsageError
from producer.http_environment import HUB_URL, check_http_environment
from producer.json_text import read_strict
from producer.sql_data.data_files import check_storable, parquet_rows, read_strict_file
from producer.sql_execution import DatabaseFailedError, SqlRefusedError
from schemas.advice import did_you_mean
from schemas.bounds import check_key_text
from schemas.distribution import install_command
from schemas.entry import Column, EntryContent, TableInfo

HUB_NAME: Final = re.compile(r"\w[\w.-]*/\w[\w.-]*")
PATTERNS: Final = ("*db_bench*/*", "*db_bench*/**", "entry_dict.json")
"""Glob patterns of DB Bench's files among those of LifelongAgentBench's other systems."""


def is_hub_name(name: str) -> bool:
    """Whether the name has the form OWNER/NAME."""
    return HUB_NAME.fullmatch(name) is not None


def downloaded(name: str) -> Path:
    """Download to a folder. Raises UnreachableError, or UsageError without the hub's client."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        message = (
            f"{name}: data sets of the hub need huggingface_hub; run {install_command('train')}"
        )
        raise UsageError(message) from error
    check_http_environment(os.environ.get("HF_ENDPOINT") or HUB_URL)
    try:
        return Path(
            snapshot_download(repo_id=name, repo_type="dataset", allow_patterns=list(PATTERNS))
        )
    except Exception as error:  # the client also raises errors of its HTTP library
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        message = f"{name}: the hub's data set cannot be downloaded: {reason}"
        raise UnreachableError(message) from error


FILE_NAME: Final = "entry_dict.json"
ID_FIELDS: Final = ("sample_index", "entry_id", "id")
"""Columns that may hold a Parquet row's name. Without any of them, the row's number is its name."""
MD5_CHARACTERS: Final = 32
NAME_CHARACTERS: Final = 64
"""Maximum characters in the name of a table or a column: MySQL's limit."""
RESERVED: Final = "sqlite_"
"""Prefix that SQLite reserves for its own tables."""
MAX_NAMED: Final = 3
"""Maximum number of folders that a message names."""

READ_FIELDS: Final = frozenset({"instruction", "table_info", "answer_info", "skill_list"})

Fields = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class _Field:
    """A value in an entry, and its location for messages."""

    where: str
    value: JsonValue

    def refuse(self, what: str) -> NoReturn:
        """Raise ValueError, prefixed with the field."""
        message = f"{self.where}: {what}"
        raise ValueError(message)

    def need(self, what: str) -> NoReturn:
        """Raise ValueError that says what was expected and what was found."""
        self.refuse(f"{what} is needed, not {str(self.value)[:60]!r}")

    def text(self) -> str:
        """The value as a text that is not blank. Raises ValueError."""
        if not isinstance(self.value, str) or not self.value.strip():
            self.need("a text")
        return self.value

    def object(self) -> "_Field":
        """The value as an object, possibly given as JSON text. Raises ValueError."""
        found = self.parsed()
        if not isinstance(found.value, dict):
            found.need("an object")
        return found

    def items(self, what: str = "a list") -> "list[_Field]":
        """The items of a list, possibly given as JSON text. Raises ValueError."""
        found = self.parsed()
        if not isinstance(found.value, list):
            found.need(what)
        return [_Field(f"{self.where}[{at}]", item) for at, item in enumerate(found.value)]

    def get(self, name: str) -> "_Field":
        """A field of an object; its value is None if it is missing."""
        assert isinstance(self.value, dict)  # noqa: S101  # only called on the result of `object`
        return _Field(f"{self.where}.{name}", self.value.get(name))

    def parsed(self) -> "_Field":
        """The value, parsed if it is JSON text or a Python literal."""
        if not isinstance(self.value, str):
            return self
        try:
            value = read_strict(self.value)
        except (ValueError, RecursionError):
            try:
                value = read_strict(json.dumps(ast.literal_eval(self.value)))
            except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
                self.refuse(f"{self.value[:60]!r} is no JSON")
        check_storable(value, self.where)
        return _Field(self.where, value)


def read_entries(path: Path) -> list[EntryContent]:
    """The entries of a folder or a file, in the file's order.

    Raises UsageError without such a file, and one that names file, entry and field.
    """
    entries: list[EntryContent] = []
    places: dict[str, Path] = {}
    for file in _files(path):
        for name, fields in _rows(file):
            try:
                check_storable(name, "its name")
                check_key_text("its name", name)
                entry = read_entry(name, fields)
            except ValueError as error:
                message = f"{file}: entry {name[:60]!r}: {error}"
                raise UsageError(message) from error
            if name in places:
                message = f"{file}: entry {name!r}: {places[name]} has one of this name already"
                raise UsageError(message)
            places[name] = file
            entries.append(entry)
    if not entries:
        message = f"{path}: there is no entry"
        raise UsageError(message)
    return entries


def _files(path: Path) -> list[Path]:
    path = path.expanduser()
    if path.is_file():
        return [path]
    found = sorted(path.rglob(FILE_NAME)) or sorted(path.rglob("*.parquet"))
    if not found:
        missing = (
            "no such file or folder" if not path.exists() else f"no {FILE_NAME} and no Parquet file"
        )
        message = (
            f"{path}: {missing}; give a file or folder of DB Bench's entries, which `cua-train data"
            " generate` makes"
        )
        raise UsageError(message)
    folders = sorted({file.parent for file in found})
    if len(folders) > 1:
        named = ", ".join(str(folder.relative_to(path)) for folder in folders[:MAX_NAMED])
        message = f"{path}: {len(folders)} folders have entries ({named} ...); give one of them"
        raise UsageError(message)
    return found


def _rows(file: Path) -> Iterator[tuple[str, Fields]]:
    """Yield the name and fields of each entry. Raises UsageError."""
    if file.suffix == ".parquet":
        yield from _parquet_rows(file)
        return
    try:
        content = read_strict_file(file)
    except ValueError as error:
        message = f"{file}: it is no JSON: {error}"
        raise UsageError(message) from error
    if isinstance(content, list):
        content = {str(index): fields for index, fields in enumerate(content)}
    if isinstance(content, dict):
        # A group holds a skill's entries, as in single_skill_tasks.json.
        groups = {name: group for name, group in content.items() if isinstance(group, list)}
        content = {name: one for name, one in content.items() if name not in groups}
        for skill, group in groups.items():
            content |= {f"{skill}_{index}": fields for index, fields in enumerate(group)}
    if not isinstance(content, dict):
        message = f"{file}: it is no object of entries by their names"
        raise UsageError(message)
    for name, fields in content.items():
        if not isinstance(fields, dict):
            message = f"{file}: entry {name!r}: it is no object"
            raise UsageError(message)
        yield name, fields


def _parquet_rows(file: Path) -> Iterator[tuple[str, Fields]]:
    for number, fields in enumerate(parquet_rows(file)):
        given = (fields[field] for field in ID_FIELDS if fields.get(field) is not None)
        yield str(next(given, number)), fields


def read_entry(name: str, fields: Fields) -> EntryContent:
    """Read one entry. Raises ValueError, prefixed with the field."""
    for field in READ_FIELDS & fields.keys():
        check_storable(fields[field], field)
    answer = _Field("answer_info", fields.get("answer_info")).object()
    sql = answer.get("sql").text().strip()
    try:
        kind, labels = kind_of(sql), skills_of(sql)
    except GoldUnreadableError as error:
        answer.get("sql").refuse(str(error))
    direct, md5 = _direct(answer.get("direct")), _md5(answer.get("md5"))
    table = _table(_Field("table_info", fields.get("table_info")).object())
    if kind != "select" and not direct and md5 is None:
        direct, md5 = None, _computed_md5(answer.get("md5"), table, sql)
    if (direct is None) is (md5 is None):
        answer.refuse("exactly one of direct and md5 is needed")
    if (kind == "select") is (direct is None):
        wanted = answer.get("direct" if kind == "select" else "md5")
        wanted.refuse(f"it is missing, although the SQL is {kind.upper()}")
    return EntryContent(
        kind="dbbench",
        entry_id=name,
        instruction=_Field("instruction", fields.get("instruction")).text(),
        table_info=table,
        answer_direct=direct,
        answer_md5=md5,
        sql=sql,
        skills=_skills(_Field("skill_list", fields.get("skill_list"))) or labels,
    )


def _direct(given: _Field) -> tuple[tuple[JsonValue, ...], ...] | None:
    if given.value == "" or (given := given.parsed()).value is None:
        return None
    rows = [_row_of_values(item) for item in given.items("a list of rows")]
    if len({len(row) for row in rows}) > 1:
        given.refuse("the rows have different numbers of values")
    return tuple(rows)


def _row_of_values(given: _Field) -> tuple[JsonValue, ...]:
    row = tuple(cell.value for cell in given.items("a row of values"))
    if any(isinstance(cell, list | dict) for cell in row):
        given.need("a row of values")
    return row


def _md5(given: _Field) -> str | None:
    value = given.value
    if value is None or (isinstance(value, str) and value in {"", "null"}):
        return None
    if not isinstance(value, str):
        given.refuse(f"32 hex digits or {EMPTY!r} are needed")
    if value == EMPTY:
        return value
    digest = value.strip().lower()
    is_hash = len(digest) == MD5_CHARACTERS and set(digest) <= set("0123456789abcdef")
    # Agent-PEFT's own scripts write a placeholder instead of the hash.
    return digest if is_hash else None


def _computed_md5(given: _Field, table: TableInfo, sql: str) -> str:
    """Compute the hash of the table after the SQL, if an entry lacks it. Raises ValueError."""
    try:
        return state_after(table, sql)
    except (SqlRefusedError, DatabaseFailedError) as error:
        given.refuse(f"it is missing, and cannot be computed: {error}")


def _table(info: _Field) -> TableInfo:
    columns = [_column(item.object()) for item in info.get("column_info_list").items()]
    names = [column.name.lower() for column in columns]
    if not names or len(set(names)) < len(names):
        info.get("column_info_list").refuse("columns with different names are needed")
    name = _name(info.get("name"))
    if name.lower().startswith(RESERVED):
        what = f"{name!r}: SQLite keeps names with {RESERVED} for itself"
        info.get("name").refuse(what)
    rows = [tuple(cell.value for cell in row.items()) for row in info.get("row_list").items()]
    table = TableInfo(name=name, columns=tuple(columns), rows=tuple(rows))
    try:
        table_rows(table)
    except ValueError as error:
        message = f"table_info.{error}"
        raise ValueError(message) from error
    return table


def _column(given: _Field) -> Column:
    name, kind = given.get("name"), given.get("type")
    try:
        column_type(kind.text())
    except ValueError as error:
        kind.refuse(str(error))
    return Column(name=_name(name), type=kind.text())


def _name(given: _Field) -> str:
    name = given.text()
    if len(name) > NAME_CHARACTERS:
        given.refuse(f"it has {len(name)} characters; {NAME_CHARACTERS} are possible")
    return name


def _skills(given: _Field) -> tuple[str, ...]:
    """The skills given in the file; empty if there are none."""
    if given.value is None:
        return ()
    skills = [str(item.value) for item in given.items()]
    for skill in skills:
        if skill not in SKILLS:
            given.refuse(f"{skill!r} is no skill.{did_you_mean(skill, SKILLS)}")
    return tuple(sorted({*skills}))


def entry_fields(entry: EntryContent) -> dict[str, JsonValue]:
    """Convert an entry to the layout's fields."""
    table = entry.table_info
    assert table is not None  # noqa: S101  # entries of DB Bench have one
    direct = entry.answer_direct
    return {
        "instruction": entry.instruction,
        "table_info": {
            "name": table.name,
            "column_info_list": [
                {"name": column.name, "type": column.type} for column in table.columns
            ],
            "row_list": [list(row) for row in table.rows],
        },
        "answer_info": {
            "direct": None if direct is None else [list(row) for row in direct],
            "md5": entry.answer_md5,
            "sql": entry.sql,
        },
        "skill_list": list(entry.skills),
    }


def is_file_of_entries(file: Path) -> bool:
    """Whether the file has DB Bench's layout. Files with any other content are never replaced."""
    try:
        rows = [fields for _, fields in _rows(file)]
    except (UsageError, OSError):
        return False
    return bool(rows) and all({"table_info", "answer_info"} <= fields.keys() for fields in rows)


def write_single_skill_tasks(
    groups: Mapping[str, Iterable[EntryContent]], path: Path, *, overwrite: bool = False
) -> Path:
    """Write Agent-PEFT's single_skill_tasks.json: for each skill, the entries that need only it.

    Overwrites and raises as `write_entries` does.
    """
    content: dict[str, JsonValue] = {
        skill: [{**entry_fields(entry), "skill_list": [skill]} for entry in group]
        for skill, group in groups.items()
    }
    return _write(content, path, overwrite=overwrite)


def write_entries(
    entries: Iterable[EntryContent], folder: Path, *, overwrite: bool = False
) -> Path:
    """Write entry_dict.json into a folder, created if missing, or a .json file. Returns the file.

    Raises UsageError for a file that exists with other content, unless `overwrite`.
    """
    content: dict[str, JsonValue] = {entry.entry_id: entry_fields(entry) for entry in entries}
    path = folder if folder.suffix == ".json" else folder / FILE_NAME
    return _write(content, path, overwrite=overwrite)


def _write(content: dict[str, JsonValue], path: Path, *, overwrite: bool) -> Path:
    text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    if path.exists() and not overwrite:
        if path.read_bytes() == text.encode():
            return path
        message = f"{path} exists with other content"
        raise UsageError(message, ways=("choose another", "replace it with --overwrite"))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_durably(path, text)
    return path
