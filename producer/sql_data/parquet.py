"""Reads the rows of a Parquet file."""

from pathlib import Path
from typing import Any

from producer.errors import UsageError
from schemas.distribution import install_command


def parquet_rows(file: Path) -> list[dict[str, Any]]:
    """All rows. UsageError that names the file, also where pyarrow is not installed."""
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
