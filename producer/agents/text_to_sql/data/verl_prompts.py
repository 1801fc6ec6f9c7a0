"""verl's Parquet files of prompts, as records in BIRD's shape.

A row has `prompt` (messages), `reward_model.ground_truth` (the gold) and, in itself or in its
`extra_info`, `db_id`, `index`, `question` and the path of the database: `database`, `db_path` or
`database_path`, absolute or relative to the file. Without a path, the database is looked for where
BIRD or Spider would have it, next to the file.
"""

import contextlib
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from producer.errors import UsageError
from producer.sql_data.data_files import parquet_rows
from producer.sql_execution.sqlite import FileState, file_state

ENDING: Final = ".parquet"
DATABASE_FIELDS: Final = ("database", "db_path", "database_path")


class Place(NamedTuple):
    """The position of a record in a file."""

    file: Path
    number: int
    """Index of the record, from 0."""

    def refuse(self, field: str, what: str) -> NoReturn:
        """Raise a UsageError that names file, record and field."""
        message = f"{self.file}[{self.number}].{field}: {what}"
        raise UsageError(message)


def prompt_rows(file: Path) -> list[dict[str, Any]]:
    """The rows, unchanged. Raises UsageError for a file without rows."""
    rows = parquet_rows(file)
    if not rows:
        message = f"{file}: it has no rows; expected prompts"
        raise UsageError(message)
    return rows


def prompt_database(file: Path, db_id: str) -> Path | None:
    """The database file that the rows name for `db_id`; None if they name none that exists."""
    return _databases(file, file_state(file)).get(db_id)


@lru_cache(maxsize=16)
def _databases(file: Path, _state: FileState) -> dict[str, Path]:
    """For each database name, the first file that exists. Invalid rows are ignored."""
    found: dict[str, Path] = {}
    for number, row in enumerate(prompt_rows(file)):
        with contextlib.suppress(UsageError):
            record = _fields(Place(file, number), row)
            path = _path(file, record["database"])
            if path is not None and path.is_file():
                found.setdefault(record["db_id"], path)
    return found


def _path(file: Path, database: str | None) -> Path | None:
    return None if database is None else file.parent / Path(database).expanduser()


def prompt_record(place: Place, row: dict[str, Any]) -> dict[str, Any]:
    """Convert a row to a record.

    Raises UsageError that names file, row and field, also for a missing database.
    """
    record = _fields(place, row)
    path = _path(place.file, record["database"])
    if path is None:
        return record
    if not path.is_file():
        place.refuse("database", f"there is no file {path}")
    first = prompt_database(place.file, record["db_id"])
    if first != path:
        place.refuse("database", f"{record['db_id']!r} has two files, {first} and {path}")
    return record


def _fields(place: Place, row: dict[str, Any]) -> dict[str, Any]:
    extra = row.get("extra_info") or {}
    reward_model = row.get("reward_model") or {}
    for name, value in (("extra_info", extra), ("reward_model", reward_model)):
        if not isinstance(value, dict):
            place.refuse(name, "expected fields with values")

    def named(*names: str) -> Any:  # noqa: ANN401  # whatever a row holds
        """The first of these fields that the row or its extra_info has."""
        values = (place.get(name) for name in names for place in (row, extra))
        return next((value for value in values if value is not None), None)

    if not isinstance(reward_model.get("ground_truth"), str):
        field, found = "reward_model.ground_truth", reward_model.get("ground_truth")
        place.refuse(field, f"expected SQL; found {found!r}")
    database, db_id = named(*DATABASE_FIELDS), named("db_id")
    if database is not None and not isinstance(database, str):
        place.refuse("database", f"expected a path; found {database!r}")
    if db_id is None and database is None:
        what = f"expected the database: db_id, or its path as one of {', '.join(DATABASE_FIELDS)}"
        place.refuse("db_id", what)
    prompt = _prompt(place, row.get("prompt"))
    index = named("index", "question_id")
    return {
        "question_id": place.number if index is None else index,
        "db_id": db_id if db_id is not None else Path(str(database)).stem,
        "database": database,
        "question": named("question") or prompt,
        "SQL": reward_model["ground_truth"],
        "difficulty": named("difficulty"),
        "prompt": prompt,
    }


def _prompt(place: Place, given: object) -> str:
    """The messages' text, beginning with the system prompt if there is one."""
    if isinstance(given, str) and given.strip():
        return given
    messages = given if isinstance(given, list) else []
    roles = [message.get("role") if isinstance(message, dict) else None for message in messages]
    if roles not in (["user"], ["system", "user"]):
        what = f"expected a text, or messages of system and user; found roles {roles}"
        place.refuse("prompt", what)
    contents = [message.get("content") for message in messages]
    texts = [content for content in contents if isinstance(content, str)]
    if len(texts) < len(contents):
        other = next(content for content in contents if not isinstance(content, str))
        place.refuse("prompt", f"expected messages of text; found the content {other!r:.80}")
    return "\n\n".join(texts)
