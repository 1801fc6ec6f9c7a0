"""Finds the file of a question's database by its name and its content's hash."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from producer.agents.text_to_sql.data.layouts import (
    DATA_SPLITS,
    DataSplit,
    database_file,
    question_files,
)
from producer.sql_execution.sqlite import FileState, file_state

SOURCE_TYPE = "text_to_sql"


class DataFolder(NamedTuple):
    """One split of a data set that a task source names."""

    folder: Path
    split: DataSplit


def data_folders(*sources: JsonValue) -> tuple[DataFolder, ...]:
    """The data sets that task sources name. Sources of other types are skipped."""
    found: dict[DataFolder, None] = {}
    for source in sources:
        for item in source if isinstance(source, list) else [source]:
            if isinstance(item, dict) and item.get("source_type") == SOURCE_TYPE:
                split = item.get("split") or "train"
                if split in DATA_SPLITS and isinstance(item.get("path"), str):
                    found[DataFolder(Path(str(item["path"])), split)] = None
    return tuple(found)


def find_database(folders: Sequence[DataFolder], db_id: str, sha256: str | None) -> Path | None:
    """The database file with this content; None if no folder has it.

    Raises UsageError.
    """
    for folder, split in folders:
        for file in question_files(folder, split):
            path = database_file(file, split, db_id)
            if path is not None and sha256 in {None, database_sha256(path)}:
                return path
    return None


def database_sha256(path: Path) -> str:
    """Hex sha256 of the file, cached until the file changes. Raises OSError."""
    return _sha256(path, file_state(path))


@lru_cache(maxsize=1024)
def _sha256(path: Path, _state: FileState) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
