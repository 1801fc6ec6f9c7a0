"""`cua-project positions`: how far the tables have read the log, and where a training is in it."""

import json
import os
from typing import TYPE_CHECKING
from uuid import UUID

import rich_click as click

from consumers.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from consumers.projection.training_places import PartitionPlaces


@click.command()
@click.option("--training", metavar="NAME", help="Where records of this training may be.")
@click.option("--training-id", type=click.UUID, metavar="ID", help="The same by the training's id.")
@click.option("--json", "as_json", is_flag=True, help="Print one object.")
def command(*, training: str | None, training_id: UUID | None, as_json: bool) -> None:
    """Show how far the tables have read each partition, and where a training's records may be.

    Offsets are first to last. A trainer that looks for a training in Kafka asks this, so that it
    need not read the whole log; what the tables have not read it reads itself. Never makes or
    migrates a database; exits 3 where there are no tables.

    Examples:
        cua-project positions
        cua-project positions --training demo
        cua-project positions --json | jq .log_id
    """
    if training is not None and training_id is not None:
        message = "--training and --training-id name the same thing; give one"
        raise UsageError(message)
    import psycopg2

    from consumers.database.location import is_embedded, resolve_database
    from consumers.home import open_installation
    from consumers.projection.training_places import read_training_places

    if training is not None:
        from consumers.tail.trainings import normalize_name
        from schemas.ids import training_id as id_of

        training_id = id_of(normalize_name(training))
    installation = open_installation(os.environ)
    if is_embedded(os.environ) and not installation.database_dir.is_dir():
        message = "there is no database yet; `cua-project up` or `cua-project run` makes one"
        raise NotFoundError(message)
    url = resolve_database(os.environ, installation)
    try:
        places = read_training_places(url, training_id)
    except (psycopg2.errors.UndefinedTable, psycopg2.errors.UndefinedColumn):
        _refuse_tables(url)
        raise
    if as_json:
        report = {
            "log_id": places.log_id,
            "epoch": places.epoch,
            "sequence": places.sequence,
            "partitions": [one._asdict() for one in places.partitions],
        }
        click.echo(json.dumps(report))
        return
    from consumers.console import Column, print_table

    is_about_one = training_id is not None
    found = [Column("offsets to look at")] if is_about_one else []
    print_table(
        [
            Column("partition"),
            Column("indexed from", is_number=True),
            Column("next offset", is_number=True),
            *found,
        ],
        [_row(one, is_about_one=is_about_one) for one in places.partitions],
    )


def _refuse_tables(url: str) -> None:
    """Say what is wrong with tables that cannot be read. NotFoundError, MismatchError."""
    # Imports SQLAlchemy, which an answer does without.
    from consumers.database.connection import connected
    from consumers.database.migrate import look
    from consumers.database.revision import Age
    from consumers.database.shape import find_problems, require_whole

    revision = look(url)
    revision.refuse()
    if revision.age in {Age.EMPTY, Age.OLDER}:
        message = "the database has no tables of this version; run `cua-project migrate`"
        raise NotFoundError(message)
    with connected(url, "check") as connection, connection.cursor() as cursor:
        require_whole(find_problems(cursor))


def _row(one: "PartitionPlaces", *, is_about_one: bool) -> list[str]:
    start, stop = one.indexed
    cells = [f"{one.topic}/{one.partition}", str(start), str(stop)]
    if is_about_one:
        cells.append(", ".join(f"{first}-{end - 1}" for first, end in one.found) or "none")
    return cells
