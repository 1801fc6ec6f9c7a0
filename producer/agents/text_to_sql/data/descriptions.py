"""What the columns of a database mean, from BIRD's description files beside the database.

Descriptions are optional: an unusable file loses its descriptions and causes one warning, but never
an error.
"""

import csv
import io
import logging
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from producer.sql_execution.sqlite import FileState, file_state

logger = logging.getLogger(__name__)

FOLDER: Final = "database_description"
SUFFIX: Final = ".csv"
NAME, MEANING = "original_column_name", "column_description"
MAX_BYTES: Final = 4_000_000
UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
"""Byte order marks of the `Unicode text` that spreadsheets save."""


class _UnusableError(Exception):
    """Why a file has no usable descriptions. The message does not name the file."""


def read_descriptions(database: Path) -> dict[tuple[str, str], str]:
    """Map (table, column), both in lower case, to the column's meaning. May be empty.

    BIRD's files come in several encodings and have empty cells. A file that lacks the expected
    columns, is too large or is not CSV is skipped with one logged warning.
    """
    found: dict[tuple[str, str], str] = {}
    folder = database.parent / FOLDER
    try:
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        _warn_once(folder, str(error.strerror))
        return found
    for path in paths:
        if path.suffix.lower() == SUFFIX and not path.name.startswith("."):
            for name, meaning in _notes(path).items():
                found[path.stem.lower(), name] = meaning
    return found


def _notes(path: Path) -> MappingProxyType[str, str]:
    try:
        return _read(path, file_state(path))
    except OSError as error:
        _warn_once(path, str(error.strerror))
        return MappingProxyType({})


@lru_cache(maxsize=4096)
def _read(path: Path, _state: FileState) -> MappingProxyType[str, str]:
    """Maps a column in lower case to its meaning; empty if the file cannot be used."""
    try:
        rows = _rows(path)
    except (_UnusableError, OSError) as error:
        _warn_once(path, str(getattr(error, "strerror", None) or error))
        return MappingProxyType({})
    found = {}
    for row in rows:
        name, meaning = (row.get(NAME) or "").strip(), (row.get(MEANING) or "").strip()
        if name and meaning and meaning.lower() != name.lower():
            found[name.lower()] = meaning
    return MappingProxyType(found)


@lru_cache(maxsize=4096)
def _warn_once(path: Path, reason: str) -> None:
    logger.warning("%s: %s; the columns' descriptions in it are left out", path, reason)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        message = f"is larger than {MAX_BYTES:,} bytes"
        raise _UnusableError(message)
    reader = csv.reader(io.StringIO(_text(content), newline=""))
    try:
        header, *rows = [*reader] or [[]]
    except csv.Error as error:
        message = f"cannot be read as CSV: {error}"
        raise _UnusableError(message) from error
    fields = [field.strip().lower() for field in header]
    if missing := [name for name in (NAME, MEANING) if name not in fields]:
        found = ", ".join(header) or "nothing"
        message = f"expected the column {' and '.join(missing)}; found {found[:200]}"
        raise _UnusableError(message)
    return [dict(zip(fields, row, strict=False)) for row in rows]


def _text(content: bytes) -> str:
    try:
        text = content.decode("utf-16" if content.startswith(UTF_16) else "utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
    if "\0" in text:
        message = "is no text: it has NUL bytes"
        raise _UnusableError(message)
    return text
