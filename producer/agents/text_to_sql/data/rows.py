"""The file of a synthetic database: its tables and rows."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from random import Random

from producer.agents.text_to_sql.data.domains import Schema
from producer.agents.text_to_sql.data.words import LARGEST, POOLS, SMALLEST, Pool

Row = tuple[int | str, ...]
NUM_PARENTS = (10, 14)
"""Rows of makers and of people, least and most; some are referred to by no row."""
NUM_THINGS = (24, 36)
NUM_USES = (30, 60)
SHARE_REFERRED = 0.8


def create_statements(schema: Schema) -> list[str]:
    """One CREATE TABLE for each table, those that others refer to first."""
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
    """Rows of every table, in the order of `schema.tables`."""
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
    """Make the tables and their rows, in one transaction."""
    with connection:
        for statement in create_statements(schema):
            connection.execute(statement)
        for table, own in rows.items():
            marks = ", ".join("?" * len(own[0]))
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", own)


def write_database(path: Path, schema: Schema, rows: dict[str, list[Row]]) -> None:
    """The file. OSError."""
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
    """The ids that rows may refer to: not all, so that some have none."""
    return sorted(random.sample(range(1, count + 1), max(1, int(count * SHARE_REFERRED))))
