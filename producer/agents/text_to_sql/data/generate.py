"""Synthetic text-to-SQL data generated from a seed, in BIRD's layout.

    FOLDER/train.json  FOLDER/train_databases/library_0/library_0.sqlite
    FOLDER/dev.json    FOLDER/dev_databases/...

A record has BIRD's fields and `cocte`, the gold in CoCTE form. For any seeds, the two splits share
no database, no form of a gold (`gold_form`) and no question.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Final, Literal, NamedTuple

from producer.agents.text_to_sql.data.domains import (
    DOMAINS,
    LARGEST,
    POOLS,
    SMALLEST,
    Pool,
    Schema,
    draw_schema,
)
from producer.agents.text_to_sql.data.templates import TEMPLATES, BirdDifficulty, Draft
from producer.agents.text_to_sql.data.wrong_answers import is_telling, row_set
from producer.seeds import derived_seed
from producer.sql_data.gold_form import gold_form, is_held_out_form

Row = tuple[int | str, ...]
NUM_PARENTS = (10, 14)
"""Minimum and maximum number of makers and of people. Some are referred to by no row."""
NUM_THINGS = (24, 36)
NUM_USES = (30, 60)
SHARE_REFERRED = 0.8


def create_statements(schema: Schema) -> list[str]:
    """One CREATE TABLE statement per table, each after the tables that it refers to."""
    maker, thing, use, person = schema.maker, schema.thing, schema.use, schema.person
    parents = [item for item in (maker, person) if item is not None]
    statements = [
        f"CREATE TABLE {parent.table} (id INTEGER PRIMARY KEY, {parent.label} TEXT,"
        f" {parent.category} TEXT)"
        for parent in parents
    ]
    numbers = ", ".join(f"{name} INTEGER" for name in thing.numbers)
    statements.insert(
        1,
        f"CREATE TABLE {thing.table} (id INTEGER PRIMARY KEY, {thing.label} TEXT,"
        f" {thing.category} TEXT, {numbers}, {maker.table}_id INTEGER,"
        f" FOREIGN KEY ({maker.table}_id) REFERENCES {maker.table} (id))",
    )
    if use is not None:
        others = [thing.table] if person is None else [thing.table, person.table]
        columns = ", ".join(f"{table}_id INTEGER" for table in others)
        keys = ", ".join(f"FOREIGN KEY ({table}_id) REFERENCES {table} (id)" for table in others)
        statements.append(
            f"CREATE TABLE {use.table} (id INTEGER PRIMARY KEY, {columns},"
            f" {use.number} INTEGER, {keys})"
        )
    return statements


def draw_rows(schema: Schema, random: Random) -> dict[str, list[Row]]:
    """Draw the rows of every table, in the order of `schema.tables`."""
    rows = {
        schema.maker.table: _parents(random, "person", schema.maker.pool),
        schema.thing.table: [],
    }
    makers = _referred(random, len(rows[schema.maker.table]))
    num_things = random.randint(*NUM_THINGS)
    titles = random.sample(POOLS["title"], num_things)
    first, second = (random.sample(range(SMALLEST, LARGEST + 1), num_things) for _ in range(2))
    for at, title in enumerate(titles):
        category = random.choice(POOLS[schema.thing.pool])
        rows[schema.thing.table].append(
            (at + 1, title, category, first[at], second[at], random.choice(makers))
        )
    people: Sequence[int] = ()
    if schema.person is not None:
        rows[schema.person.table] = _parents(random, "person", schema.person.pool)
        people = _referred(random, len(rows[schema.person.table]))
    if schema.use is not None:
        things = _referred(random, num_things)
        rows[schema.use.table] = [
            (
                at + 1,
                random.choice(things),
                *((random.choice(people),) if people else ()),
                random.randint(SMALLEST, LARGEST),
            )
            for at in range(random.randint(*NUM_USES))
        ]
    return rows


def fill(connection: sqlite3.Connection, schema: Schema, rows: dict[str, list[Row]]) -> None:
    """Create the tables and insert their rows, in one transaction."""
    with connection:
        for statement in create_statements(schema):
            connection.execute(statement)
        for table, own in rows.items():
            marks = ", ".join("?" * len(own[0]))
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", own)


def write_database(path: Path, schema: Schema, rows: dict[str, list[Row]]) -> None:
    """Write the database file. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    try:
        fill(connection, schema, rows)
    finally:
        connection.close()


def _parents(random: Random, labels: Pool, categories: Pool) -> list[Row]:
    names = random.sample(POOLS[labels], random.randint(*NUM_PARENTS))
    return [(at + 1, name, random.choice(POOLS[categories])) for at, name in enumerate(names)]


def _referred(random: Random, count: int) -> list[int]:
    """Choose the ids that rows may refer to: not all of them, so that some have no references."""
    return sorted(random.sample(range(1, count + 1), max(1, int(count * SHARE_REFERRED))))


BirdSplit = Literal["train", "dev"]
SPLITS: Final[tuple[BirdSplit, ...]] = ("train", "dev")
FORMS_HELD_OUT: Final = 3
"""One in this many gold forms is asked only in `dev`, all others only in `train`."""
MAX_TRIES: Final = 60
"""Maximum drafts per template and database."""
MAX_SCHEMAS: Final = 60
"""Maximum schemas drawn for one database before it is left without questions."""


class GoldsDifferError(RuntimeError):
    """A template's two golds give different rows, which is a bug of ours."""


@dataclass(frozen=True, slots=True)
class SyntheticSize:
    """How much data is generated."""

    num_train_databases: int = 24
    num_dev_databases: int = 8
    questions_per_template: int = 2
    """Questions per template and database."""
    templates: tuple[str, ...] = ()
    """Names of the templates to use; empty for all."""
    most_tables: int = 4
    """Maximum tables per database, 2 to 4."""


class SyntheticDatabase(NamedTuple):
    """One database and its questions."""

    db_id: str
    schema: Schema
    rows: dict[str, list[Row]]
    drafts: tuple[tuple[Draft, BirdDifficulty], ...]


class Written(NamedTuple):
    """What `write_synthetic` wrote for one split."""

    num_databases: int
    num_questions: int
    by_difficulty: dict[str, int]


def synthetic_databases(
    seed: int, split: BirdSplit, size: SyntheticSize
) -> Iterator[SyntheticDatabase]:
    """The databases of a split, in order. No two databases have the same content, in either split.

    A schema for which the split has no question is drawn again.
    """
    count = size.num_train_databases if split == "train" else size.num_dev_databases
    for at in range(count):
        random = Random(derived_seed(seed, "text_to_sql", split, at))  # noqa: S311  # not for secrets
        for _ in range(MAX_SCHEMAS):
            schema = draw_schema(DOMAINS[at % len(DOMAINS)], random, size.most_tables)
            rows = draw_rows(schema, random)
            if drafts := tuple(_drafts(schema, rows, random, size, split)):
                break
        yield SyntheticDatabase(f"{schema.domain}_{split}_{at}", schema, rows, drafts)


def write_synthetic(
    folder: Path, seed: int, size: SyntheticSize | None = None
) -> dict[BirdSplit, Written]:
    """Write both splits, replacing files of the same names. Raises OSError."""
    written: dict[BirdSplit, Written] = {}
    for split in SPLITS:
        records: list[dict[str, str | int]] = []
        databases = list(synthetic_databases(seed, split, size or SyntheticSize()))
        for database in databases:
            path = folder / f"{split}_databases" / database.db_id / f"{database.db_id}.sqlite"
            write_database(path, database.schema, database.rows)
            records += [
                _record(len(records) + at, database.db_id, draft, difficulty)
                for at, (draft, difficulty) in enumerate(database.drafts)
            ]
        text = json.dumps(records, indent=1, ensure_ascii=False)
        (folder / f"{split}.json").write_text(text + "\n", encoding="utf-8")
        levels = [str(record["difficulty"]) for record in records]
        written[split] = Written(
            len(databases),
            len(records),
            {level: levels.count(level) for level in sorted({*levels})},
        )
    return written


def _drafts(
    schema: Schema,
    rows: dict[str, list[Row]],
    random: Random,
    size: SyntheticSize,
    split: BirdSplit,
) -> Iterator[tuple[Draft, BirdDifficulty]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        fill(connection, schema, rows)
        for template in TEMPLATES:
            is_used = not size.templates or template.name in size.templates
            if is_used and template.num_tables <= len(schema.tables):
                draws = (template.draw(schema, random) for _ in range(MAX_TRIES))
                own = (draft for draft in draws if _split_of(draft) == split)
                telling = _telling(connection, template.name, own)
                for draft in islice(telling, size.questions_per_template):
                    yield draft, template.difficulty


def _split_of(draft: Draft) -> BirdSplit:
    is_held_out = is_held_out_form(gold_form(draft.sql, "sqlite"), FORMS_HELD_OUT)
    return "dev" if is_held_out else "train"


def _telling(
    connection: sqlite3.Connection, template: str, drafts: Iterable[Draft]
) -> Iterator[Draft]:
    """Distinct questions whose gold has other rows than each common wrong answer."""
    asked: set[str] = set()
    for draft in drafts:
        if draft.question in asked or not is_telling(connection, draft.sql):
            continue
        if row_set(connection, draft.cocte) != row_set(connection, draft.sql):
            message = f"{template}: {draft.sql} and {draft.cocte} give different rows"
            raise GoldsDifferError(message)
        asked.add(draft.question)
        yield draft


def _record(
    question_id: int, db_id: str, draft: Draft, difficulty: BirdDifficulty
) -> dict[str, str | int]:
    return {
        "question_id": question_id,
        "db_id": db_id,
        "question": draft.question,
        "evidence": draft.evidence,
        "SQL": draft.sql,
        "difficulty": difficulty,
        "cocte": draft.cocte,
    }
