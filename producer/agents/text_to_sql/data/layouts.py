"""Reads data sets in the published layouts of BIRD, Spider and verl.

    BIRD    dev.json  dev_databases/ID/ID.sqlite  dev_databases/ID/database_description/TABLE.csv
            train.json  train_databases/...   (also in a folder `train` or `dev_20240627`)
            {"question_id", "db_id", "question", "evidence", "SQL", "difficulty"}
    Spider  train_spider.json  train_others.json  dev.json  tables.json  database/ID/ID.sqlite
            test.json  test_database/...
            {"db_id", "question", "query", ...}
    verl    train.parquet  test.parquet  (or the path of one file; `verl_prompts`)

BIRD's train.json and Spider's files have neither `question_id` nor `difficulty`; a question's index
in its file is then its id. Every mistake raises a UsageError that names the file and the field.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast

from producer.agents.text_to_sql.data.verl_prompts import (
    ENDING,
    Place,
    prompt_database,
    prompt_record,
    prompt_rows,
)
from producer.errors import UsageError
from producer.sql_data.data_files import read_strict_file


@dataclass(frozen=True, slots=True)
class Question:
    """A question about one database, with its gold SQL."""

    question_id: int
    """Id that is unique within its file."""
    db_id: str
    """The data set's name for the database."""
    database: Path
    """The database file."""
    question: str
    evidence: str
    """A hint given with the question; empty if there is none."""
    sql: str
    """The gold SQL."""
    difficulty: str | None
    """The data set's difficulty; None if unrated."""
    cocte: str | None = None
    """The gold in CoCTE form; None if not given."""
    prompt: str | None = None
    """The complete prompt; None if it is built from the schema and the question."""


OF_A_FILE = ("correct the data",)
"""What to do about a file that cannot be read: no question of it can be left out."""
DataSplit = Literal["train", "dev", "test"]
DATA_SPLITS: Final[tuple[DataSplit, ...]] = ("train", "dev", "test")
SPIDER_FILES: Final[dict[DataSplit, tuple[str, ...]]] = {
    "train": ("train_spider.json", "train_others.json"),
    "dev": ("dev.json",),
    "test": ("test.json",),
}
MINI_DEV_FOLDER: Final = "MINIDEV"
MINI_DEV_FILES: Final[dict[DataSplit, tuple[str, ...]]] = {"dev": ("mini_dev_sqlite.json",)}
"""File names of BIRD's published mini-dev set."""
BIRD_GOLD, SPIDER_GOLD = "SQL", "query"
"""Field with the gold SQL, which distinguishes the two layouts."""
SUFFIXES: Final = (".sqlite", ".db")
FILE_NAME_BYTES: Final = 240
"""Maximum length of a database's name. With a suffix, longer names fit no file system."""


def read_questions(
    folder: Path, split: DataSplit, left_out: list[str] | None = None
) -> list[Question]:
    """Read the questions of a split. Raises UsageError.

    If `left_out` is given, invalid records are skipped and their problems appended to it.
    """
    files = question_files(folder, split)
    questions: list[Question] = []
    num_records, seen = 0, set[int]()
    for file in files:
        is_verl = file.suffix == ENDING
        records: Sequence[object] = prompt_rows(file) if is_verl else _records(file)
        gold = BIRD_GOLD if is_verl or not records else _gold_field(file, records)
        for index, record in enumerate(records):
            try:
                found = _question(Place(file, index), record, gold, split, num_records)
                _refuse_repeat(found, seen, files[0])
                questions.append(found)
            except UsageError as error:
                if left_out is None:
                    raise
                left_out.append(error.message)
            num_records += 1
    if not num_records:
        message = f"{' and '.join(map(str, files))}: no questions"
        raise UsageError(message, ways=OF_A_FILE)
    return questions


def question_files(folder: Path, split: DataSplit) -> tuple[Path, ...]:
    """The files of a split.

    Raises UsageError for another layout and if the folder is missing.
    """
    folder = folder.expanduser()
    if folder.suffix == ENDING and folder.is_file():
        return (folder,)
    if not folder.is_dir():
        wrong = "is a file; give its folder" if folder.exists() else "there is no such folder"
        message = f"{folder}: {wrong}"
        raise UsageError(message)
    spider = tuple(folder / name for name in SPIDER_FILES[split] if (folder / name).is_file())
    if spider:
        return spider
    unpacked = sorted(folder.glob(f"{split}_*[0-9]"))
    for place in (folder, folder / split, *unpacked, folder / MINI_DEV_FOLDER):
        for name in (f"{split}.json", f"{split}{ENDING}", *MINI_DEV_FILES.get(split, ())):
            if (place / name).is_file():
                return (place / name,)
    has = [name for name in DATA_SPLITS if name != split and _has_split(folder, name)]
    message = (
        f"{folder}: split {split!r} has no file here: expected {split}.json (BIRD) or"
        f" {' or '.join(SPIDER_FILES[split])} (Spider)"
        + (f"; the folder has {', '.join(has)}" if has else "")
    )
    raise UsageError(message)


def database_folders(file: Path, split: DataSplit) -> tuple[Path, ...]:
    """The folders that may hold a file's databases, BIRD's first."""
    names = [f"{split}_databases", "database"]
    if split == "test":
        names.insert(1, "test_database")
    return tuple(file.parent / name for name in names)


def database_file(file: Path, split: DataSplit, db_id: str) -> Path | None:
    """The file of a database; None if there is none."""
    if file.suffix == ENDING and (named := prompt_database(file, db_id)) is not None:
        return named
    for folder in database_folders(file, split):
        for suffix in SUFFIXES:
            path = folder / db_id / f"{db_id}{suffix}"
            if path.is_file():
                return path
    return None


def _has_split(folder: Path, split: DataSplit) -> bool:
    names = {*(f"{split}.json", f"{split}/{split}.json", f"{split}{ENDING}"), *SPIDER_FILES[split]}
    return any((folder / name).is_file() for name in names)


def _records(file: Path) -> list[object]:
    try:
        content = read_strict_file(file)
    except ValueError as error:
        message = f"{file}: cannot be read as JSON: {error}"
        raise UsageError(message, ways=OF_A_FILE) from error
    if not isinstance(content, list):
        message = f"{file}: expected a JSON array of questions; found {_shown(content)}"
        raise UsageError(message, ways=OF_A_FILE)
    return cast("list[object]", content)


def _gold_field(file: Path, records: Sequence[object]) -> str:
    objects = [record for record in records if isinstance(record, dict)]
    for field in (BIRD_GOLD, SPIDER_GOLD):
        if any(field in record for record in objects):
            return field
    for index, record in enumerate(records):
        if not isinstance(record, dict):
            message = f"{file}[{index}]: expected an object; found {_shown(record)}"
            raise UsageError(message, ways=OF_A_FILE)
    message = (
        f"{file}[0]: has no gold: expected {BIRD_GOLD} (BIRD) or {SPIDER_GOLD} (Spider) among its"
        f" fields {', '.join(sorted(objects[0]))}"
    )
    raise UsageError(message, ways=OF_A_FILE)


def _question(
    place: Place, record: object, gold: str, split: DataSplit, default_id: int
) -> Question:
    if not isinstance(record, dict):
        message = f"{place.file}[{place.number}]: expected an object; found {_shown(record)}"
        raise UsageError(message)
    is_verl = place.file.suffix == ENDING
    if is_verl:
        record = prompt_record(place, record)
    db_id = _text(place, record, "db_id")
    is_plain = db_id not in {".", ".."} and not any(mark in db_id for mark in "/\\:")
    if not is_plain or len(db_id.encode()) > FILE_NAME_BYTES:
        place.refuse("db_id", f"expected a plain name; found {_shown(db_id)}")
    database = database_file(place.file, split, db_id)
    if database is None:
        looked = " or ".join(str(folder) for folder in database_folders(place.file, split))
        place.refuse("db_id", f"database {db_id!r} has no file {db_id}.sqlite in {looked}")
    question_id = record.get("question_id", default_id)
    if not isinstance(question_id, int) or isinstance(question_id, bool) or question_id < 0:
        place.refuse("question_id", f"expected a number; found {_shown(question_id)}")
    return Question(
        question_id=question_id,
        db_id=db_id,
        database=database,
        question=_text(place, record, "question"),
        evidence=_optional_text(place, record, "evidence") or "",
        sql=_text(place, record, gold),
        difficulty=_optional_text(place, record, "difficulty"),
        cocte=_optional_text(place, record, "cocte"),
        prompt=_optional_text(place, record, "prompt") if is_verl else None,
    )


def _text(place: Place, record: dict[str, object], field: str) -> str:
    value = record.get(field)
    if not isinstance(value, str) or not value.strip():
        found = _shown(value) if field in record else "nothing"
        place.refuse(field, f"expected a text; found {found}")
    return _stored(place, field, value)


def _optional_text(place: Place, record: dict[str, object], field: str) -> str | None:
    value = record.get(field)
    if value is not None and not isinstance(value, str):
        place.refuse(field, f"expected a text; found {_shown(value)}")
    return value if value is None else _stored(place, field, value)


def _stored(place: Place, field: str, value: str) -> str:
    """Check that databases can hold the text: no NUL, and no unpaired surrogate from JSON."""
    if "\0" in value:
        place.refuse(field, "contains a NUL, which no database holds in a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        place.refuse(field, "contains text that is not valid Unicode")
    return value


def _refuse_repeat(question: Question, seen: set[int], file: Path) -> None:
    if question.question_id in seen:
        message = f"{file}: two questions have the question_id {question.question_id}"
        raise UsageError(message)
    seen.add(question.question_id)


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    text = text.encode(errors="backslashreplace").decode()  # an unpaired surrogate
    return text if len(text) <= 80 else f"{text[:77]}..."  # noqa: PLR2004  # of a line
