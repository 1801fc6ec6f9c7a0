"""BIRD's descriptions of columns: `database_description/TABLE.csv` beside each database."""

import csv
import io
from pathlib import Path
from typing import Final

from producer.errors import UsageError

FOLDER: Final = "database_description"
NAME, MEANING = "original_column_name", "column_description"
MAX_BYTES: Final = 4_000_000


def read_descriptions(database: Path) -> dict[tuple[str, str], str]:
    """(table, column), both in lower case -> what the column means; empty without descriptions.

    BIRD's files are of several encodings and have empty cells. UsageError for a file without the
    columns, or too large.
    """
    found: dict[tuple[str, str], str] = {}
    for path in sorted((database.parent / FOLDER).glob("*.csv")):
        for row in _rows(path):
            name, meaning = (row.get(NAME) or "").strip(), (row.get(MEANING) or "").strip()
            if name and meaning and meaning.lower() != name.lower():
                found[path.stem.lower(), name.lower()] = meaning
    return found


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        content = path.read_bytes()
    except OSError as error:
        message = f"{path}: cannot be read: {error.strerror}"
        raise UsageError(message) from error
    if len(content) > MAX_BYTES or b"\0" in content:
        message = f"{path}: expected a CSV file of at most {MAX_BYTES:,} bytes"
        raise UsageError(message)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""))
        fields = reader.fieldnames or []
        rows = list(reader)
    except csv.Error as error:
        message = f"{path}: cannot be read as CSV: {error}"
        raise UsageError(message) from error
    if NAME not in fields or MEANING not in fields:
        message = f"{path}: expected the columns {NAME} and {MEANING}; found {', '.join(fields)}"
        raise UsageError(message)
    return rows
