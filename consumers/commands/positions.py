"""`cua-project positions`: how far the tables have read the log, and where a training is in it."""

import os
from typing import TYPE_CHECKING
from uuid import UUID

import rich_click as click

from consumers.errors import UsageError

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
    migrates a database, and reads a newer version's too; exits 3 where there are no tables.

    Examples:
        cua-project positions
        cua-project positions --training demo
        cua-project positions --json | jq .log_id
    """
    if training is not None and training_id is not None:
        message = "--training and --training-id name the same thing; give one"
        raise UsageError(message)
    from consumers.projection.places_answer import as_json as to_json
    from consumers.projection.places_answer import find_places

    if training is not None:
        from consumers.tail.trainings import normalize_name
        from schemas.ids import training_id as id_of

        training_id = id_of(normalize_name(training))
    places = find_places(os.environ, training_id)
    if as_json:
        click.echo(to_json(places))
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
        [_row(partition, is_about_one=is_about_one) for partition in places.partitions],
    )


def _row(one: "PartitionPlaces", *, is_about_one: bool) -> list[str]:
    start, stop = one.indexed
    cells = [f"{one.topic}/{one.partition}", str(start), str(stop)]
    if is_about_one:
        cells.append(", ".join(f"{first}-{end - 1}" for first, end in one.found) or "none")
    return cells
