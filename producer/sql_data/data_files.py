"""Files of a data set: Parquet, and JSON read strictly so that the log stores it without loss.

A repeated key would hide one of its values; NaN and infinity are not JSON; no database can store a
NUL in a text, and no log half a surrogate pair.
"""

import math
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from producer.errors import UsageError
from producer.json_text import read_strict
from schemas.distribution import install_command


def read_strict_file(file: Path) -> JsonValue:
    """Read a JSON file. Raises ValueError with the reason if it is not valid JSON."""
    try:
        return read_strict(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        message = str(error.strerror)
    except UnicodeDecodeError:
        message = "not a text in UTF-8"
    raise ValueError(message)


def check_storable(value: JsonValue, where: str) -> None:
    """Raise ValueError, prefixed with `where`, for a text or number that cannot be stored."""
    waiting = [(where, value)]
    while waiting:
        place, content = waiting.pop()
        match content:
            case str():
                _check_text(content, place)
            case float() if not math.isfinite(content):
                message = f"{place}: {content} is no number that JSON has"
                raise ValueError(message)
            case dict():
                for name, inner in content.items():
                    _check_text(name, place)
                    waiting.append((f"{place}.{name}", inner))
            case list():
                waiting += [(f"{place}[{number}]", inner) for number, inner in enumerate(content)]
            case _:
                pass


def _check_text(text: str, place: str) -> None:
    if "\0" in text:
        message = f"{place}: {text[:60]!r} has a NUL, which no database stores in a text"
        raise ValueError(message)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            message = f"{place}: {text[:60]!r} is no valid Unicode: {error.reason}"
            raise ValueError(message) from error


def parquet_rows(file: Path) -> list[dict[str, Any]]:
    """All rows. Raises UsageError that names the file, also if pyarrow is not installed."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        message = f"{file}: Parquet needs pyarrow; run {install_command('parquet')}"
        raise UsageError(message) from error
    try:
        rows: list[dict[str, Any]] = parquet.read_table(file).to_pylist()
    except (OSError, ArrowException) as error:
        message = f"{file}: it is no Parquet file: {error}"
        raise UsageError(message) from error
    return rows
