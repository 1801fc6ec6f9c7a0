"""Tables as plain values, so that the database and the reference fold compare with `==`."""

import json
import math
from datetime import UTC, datetime
from typing import Any

import psycopg2
from psycopg2.extras import RealDictCursor

from tests.reference_fold.reference import TABLES, Tables


def plain(value: object) -> object:  # noqa: PLR0911  # one case per kind of value
    """Times as text in UTC, NaN and infinities as text, no NUL, numbers as numbers."""
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat()
        case bool():
            return value
        case float() if not math.isfinite(value):
            return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
        case str():
            return value.replace("\x00", "\ufffd")
        case dict():
            return {plain(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return value


def plain_tables(tables: Tables) -> dict[str, dict[str, dict[str, Any]]]:
    """Every row with the columns that are not NULL."""
    return {
        table: {
            key: {name: plain(value) for name, value in row.items() if value is not None}
            for key, row in rows.items()
        }
        for table, rows in tables.items()
    }


def database_tables(url: str, schema: str = "cua") -> dict[str, dict[str, dict[str, Any]]]:
    """The same of a database."""
    found: Tables = {}
    connection = psycopg2.connect(url.replace("postgresql+psycopg2", "postgresql"))
    try:
        with connection.cursor(cursor_factory=RealDictCursor) as cursor:
            for table in TABLES:
                cursor.execute(f'SELECT * FROM "{schema}"."{table}"')
                found[table] = {row["id"]: dict(row) for row in cursor.fetchall()}
    finally:
        connection.close()
    return plain_tables(found)


def differences(
    expected: dict[str, dict[str, dict[str, Any]]], found: dict[str, dict[str, dict[str, Any]]]
) -> list[str]:
    """What differs, a line per column, for a test that fails."""
    lines = []
    for table, rows in expected.items():
        for key in sorted(rows.keys() | found[table].keys()):
            left, right = rows.get(key), found[table].get(key)
            if left is None or right is None:
                lines.append(
                    f"{table} {key}: expected {'no row' if left is None else 'a row'}, found the"
                    " opposite"
                )
                continue
            lines += [
                f"{table}.{name} {key}: expected {json.dumps(left.get(name))}, found"
                f" {json.dumps(right.get(name))}"
                for name in sorted(left.keys() | right.keys())
                if left.get(name) != right.get(name)
            ]
    return lines
