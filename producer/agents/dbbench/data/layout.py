"""The published layout of DB Bench, read and written.

`entry_dict.json` is an object of entries by their names; Parquet has a row for each. A field that
is an object or a list may be given as JSON text instead, as the Parquet files do.
"""

import ast
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from producer.agents.dbbench.data.gold_sql import GoldUnreadableError, kind_of
from producer.agents.dbbench.data.skills import SKILLS, skills_of
from producer.agents.dbbench.data.table import column_type, table_rows
from producer.agents.dbbench.data.table_hash import EMPTY
from producer.durable import write_durably
from producer.errors import NotFoundError, UsageError, did_you_mean
from producer.sql_data.parquet import parquet_rows
from producer.sql_data.strict_json import check_storable, read_strict, read_strict_file
from schemas.entry import Column, EntryContent, TableInfo

FILE_NAME: Final = "entry_dict.json"
ID_FIELDS: Final = ("sample_index", "entry_id", "id")
"""A Parquet row's name; without any, its number."""
MD5_CHARACTERS: Final = 32
NAME_CHARACTERS: Final = 64
"""Of a table or a column, MySQL's limit."""
RESERVED: Final = "sqlite_"
"""No table of SQLite's may begin so."""
MAX_NAMED: Final = 3
"""Folders that a message names."""

READ_FIELDS: Final = frozenset({"instruction", "table_info", "answer_info", "skill_list"})

Fields = Mapping[str, JsonValue]


class _WrongFieldError(ValueError):
    """Led by the field."""


def read_entries(path: Path) -> list[EntryContent]:
    """The entries of a folder or a file, in its order.

    NotFoundError without such a file; UsageError that names the file, the entry and the field.
    """
    entries: list[EntryContent] = []
    places: dict[str, Path] = {}
    for file in _files(path):
        for name, fields in _rows(file):
            try:
                check_storable(name, "its name")
                entry = read_entry(name, fields)
            except ValueError as error:
                message = f"{file}: entry {name!r}: {error}"
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
        missing = "no such folder" if not path.exists() else f"no {FILE_NAME} and no Parquet file"
        message = f"{path}: {missing}; give a folder of DB Bench's layout"
        raise NotFoundError(message)
    folders = sorted({file.parent for file in found})
    if len(folders) > 1:
        named = ", ".join(str(folder.relative_to(path)) for folder in folders[:MAX_NAMED])
        message = f"{path}: {len(folders)} folders have entries ({named} ...); give one of them"
        raise UsageError(message)
    return found


def _rows(file: Path) -> Iterator[tuple[str, Fields]]:
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
        # A group is a skill's entries, as in single_skill_tasks.json.
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
    """One entry. ValueError, led by the field."""
    for field in READ_FIELDS & fields.keys():
        check_storable(fields[field], field)
    answer = _object(fields, "answer_info")
    sql = _text(answer, "sql", "answer_info.sql").strip()
    try:
        kind = kind_of(sql)
        labels = skills_of(sql)
    except GoldUnreadableError as error:
        message = f"answer_info.sql: {error}"
        raise _WrongFieldError(message) from error
    direct, md5 = _direct(answer), _md5(answer)
    if (direct is None) is (md5 is None):
        message = "answer_info: exactly one of direct and md5 is needed"
        raise _WrongFieldError(message)
    if (kind == "select") is (direct is None):
        wanted = "direct" if kind == "select" else "md5"
        message = f"answer_info.{wanted}: it is missing, although the SQL is {kind.upper()}"
        raise _WrongFieldError(message)
    return EntryContent(
        kind="dbbench",
        entry_id=name,
        instruction=_text(fields, "instruction", "instruction"),
        table_info=_table(fields),
        answer_direct=direct,
        answer_md5=md5,
        sql=sql,
        skills=_skills(fields, labels),
    )


def _json(value: JsonValue, field: str) -> JsonValue:
    """The value, or the value of its JSON text or Python literal."""
    if not isinstance(value, str):
        return value
    try:
        parsed = read_strict(value)
    except (ValueError, RecursionError):
        try:
            parsed = read_strict(json.dumps(ast.literal_eval(value)))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
            message = f"{field}: {value[:60]!r} is no JSON"
            raise _WrongFieldError(message) from error
    check_storable(parsed, field)
    return parsed


def _object(fields: Fields, field: str, where: str = "") -> Fields:
    value = _json(fields.get(field), where + field)
    if not isinstance(value, dict):
        message = f"{where}{field}: an object is needed, not {str(value)[:60]!r}"
        raise _WrongFieldError(message)
    return value


def _list(fields: Fields, field: str, where: str) -> list[JsonValue]:
    value = _json(fields.get(field), where)
    if not isinstance(value, list):
        message = f"{where}: a list is needed, not {str(value)[:60]!r}"
        raise _WrongFieldError(message)
    return value


def _text(fields: Fields, field: str, where: str) -> str:
    value = fields.get(field)
    if not isinstance(value, str) or not value.strip():
        message = f"{where}: a text is needed, not {str(value)[:60]!r}"
        raise _WrongFieldError(message)
    return value


def _direct(answer: Fields) -> tuple[tuple[JsonValue, ...], ...] | None:
    given = answer.get("direct")
    value = None if given is None or given == "" else _json(given, "answer_info.direct")
    if value is None:
        return None
    where = "answer_info.direct"
    if not isinstance(value, list):
        message = f"{where}: a list of rows is needed, not {str(value)[:60]!r}"
        raise _WrongFieldError(message)
    rows = []
    for number, given_row in enumerate(value):
        row = _json(given_row, f"{where}[{number}]")
        if not isinstance(row, list) or any(isinstance(cell, list | dict) for cell in row):
            message = f"{where}[{number}]: a row of values is needed, not {str(row)[:60]!r}"
            raise _WrongFieldError(message)
        rows.append(tuple(row))
    if len({len(row) for row in rows}) > 1:
        message = f"{where}: the rows have different numbers of values"
        raise _WrongFieldError(message)
    return tuple(rows)


def _md5(answer: Fields) -> str | None:
    value = answer.get("md5")
    if value is None or (isinstance(value, str) and value in {"", "null"}):
        return None
    is_hash = isinstance(value, str) and (
        value == EMPTY or (len(value) == MD5_CHARACTERS and set(value) <= set("0123456789abcdef"))
    )
    if not is_hash:
        message = f"answer_info.md5: 32 lower-case hex digits or {EMPTY!r} are needed"
        raise _WrongFieldError(message)
    return str(value)


def _table(fields: Fields) -> TableInfo:
    info = _object(fields, "table_info")
    columns = []
    given = _list(info, "column_info_list", "table_info.column_info_list")
    for number, one in enumerate(given):
        where = f"table_info.column_info_list[{number}]"
        column = _json(one, where)
        if not isinstance(column, dict):
            message = f"{where}: an object is needed"
            raise _WrongFieldError(message)
        name, kind = _text(column, "name", f"{where}.name"), _text(column, "type", f"{where}.type")
        try:
            column_type(kind)
        except ValueError as error:
            message = f"{where}.type: {error}"
            raise _WrongFieldError(message) from error
        columns.append(Column(name=name, type=kind))
        _check_name(name, f"{where}.name")
    names = [column.name.lower() for column in columns]
    if not names or len(set(names)) < len(names):
        message = "table_info.column_info_list: columns with different names are needed"
        raise _WrongFieldError(message)
    table_name = _text(info, "name", "table_info.name")
    _check_name(table_name, "table_info.name")
    if table_name.lower().startswith(RESERVED):
        message = f"table_info.name: {table_name!r}: SQLite keeps names with {RESERVED} for itself"
        raise _WrongFieldError(message)
    rows = []
    for number, one in enumerate(_list(info, "row_list", "table_info.row_list")):
        row = _json(one, f"table_info.row_list[{number}]")
        if not isinstance(row, list):
            message = f"table_info.row_list[{number}]: a list is needed"
            raise _WrongFieldError(message)
        rows.append(tuple(row))
    table = TableInfo(name=table_name, columns=tuple(columns), rows=tuple(rows))
    try:
        table_rows(table)
    except ValueError as error:
        message = f"table_info.{error}"
        raise _WrongFieldError(message) from error
    return table


def _check_name(name: str, where: str) -> None:
    if len(name) > NAME_CHARACTERS:
        message = f"{where}: it has {len(name)} characters; {NAME_CHARACTERS} are possible"
        raise _WrongFieldError(message)


def _skills(fields: Fields, labels: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the file; those of the syntax tree where it has none."""
    if fields.get("skill_list") is None:
        return labels
    given = _list(fields, "skill_list", "skill_list")
    for skill in given:
        if skill not in SKILLS:
            message = f"skill_list: {skill!r} is no skill.{did_you_mean(str(skill), SKILLS)}"
            raise _WrongFieldError(message)
    return tuple(sorted({str(skill) for skill in given})) or labels


def entry_fields(entry: EntryContent) -> dict[str, JsonValue]:
    """An entry as the layout has it."""
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


def write_single_skill_tasks(groups: Mapping[str, Iterable[EntryContent]], path: Path) -> Path:
    """Write Agent-PEFT's single_skill_tasks.json: skill -> entries, each of that skill alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        skill: [{**entry_fields(entry), "skill_list": [skill]} for entry in group]
        for skill, group in groups.items()
    }
    write_durably(path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    return path


def write_entries(entries: Iterable[EntryContent], folder: Path) -> Path:
    """Write entry_dict.json into a folder, made if need be, or a .json file; the file."""
    path = folder if folder.suffix == ".json" else folder / FILE_NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {entry.entry_id: entry_fields(entry) for entry in entries}
    write_durably(path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    return path
