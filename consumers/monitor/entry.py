"""An entry of a data set and an agent's result for it: table, gold, skills."""

import json
from collections.abc import Mapping, Sequence

from consumers.monitor.html import Html, Node, tag
from consumers.monitor.plain_text import excerpt, name
from consumers.monitor.sql_text import sql_block
from consumers.tables import Entry

MOST_ROWS = 100
"""Rows of a table that are shown; the tables have all of them."""


def entry_section(entry: Entry | None) -> Html:
    """The entry; a sentence while it is not projected."""
    if entry is None:
        return tag("aside", tag("p", "The entry is not recorded yet.", class_="faint"))
    columns, rows = _items(entry.columns_json), _items(entry.rows_json)
    answer = entry.answer_direct_json
    return tag(
        "aside",
        tag("h2", "Entry ", name(entry.entry_id)),
        tag("p", [_skill(item) for item in _items(entry.skills)], class_="skills"),
        _named("hint", entry.evidence),
        _named("database", entry.database),
        _named("difficulty", entry.difficulty),
        tag("h4", "gold SQL"),
        sql_block(entry.sql) if entry.sql is not None else tag("p", "unknown", class_="faint"),
        tag("h4", "gold answer"),
        _answer(entry, answer),
        (
            [
                tag("h4", "table ", name(entry.table_name)),
                _table([_heading(column) for column in columns], rows),
            ]
            if entry.table_name is not None
            else None
        ),
        class_="entry",
    )


def _answer(entry: Entry, answer: object) -> Node:
    if answer is not None:
        return _table([], _items(answer))
    if entry.answer_md5 is not None:
        return tag("p", "a table of the hash ", tag("code", entry.answer_md5))
    return tag("p", "the gold's rows", class_="faint")


def _named(what: str, value: str | None) -> Node:
    return tag("p", tag("span", f"{what} ", class_="faint"), excerpt(value)) if value else None


def _skill(skill: object) -> Html:
    return tag("span", name(str(skill)), class_="skill")


def _heading(column: object) -> str:
    if not isinstance(column, Mapping):
        return str(column)
    return f"{column.get('name')} {column.get('type')}"


def _table(headings: Sequence[str], rows: Sequence[object]) -> Node:
    body = [
        tag("tr", *(tag("td", _cell(item)) for item in _items(row))) for row in rows[:MOST_ROWS]
    ]
    head = (
        tag("thead", tag("tr", *(tag("th", name(heading)) for heading in headings)))
        if headings
        else None
    )
    more = len(rows) - MOST_ROWS
    return [
        tag("div", tag("table", head, tag("tbody", *body)), class_="scroll data")
        if body or head
        else tag("p", "no rows", class_="faint"),
        tag("p", f"{more:,} rows more", class_="faint") if more > 0 else None,
    ]


def _cell(value: object) -> Node:
    if value is None:
        return tag("span", "NULL", class_="faint")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return tag("span", name(text), class_="text")


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else []
