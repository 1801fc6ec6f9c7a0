"""`cua-project verify`: compare the tables with the log."""

import json
import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from consumers.rebuild.verify import Verification


@click.command()
@click.option(
    "--json", "as_json", is_flag=True, help='Print {"equal", "events", "tables", "differences"}.'
)
def command(*, as_json: bool) -> None:
    """Compare every table with a replay of the log to the same positions; exit 4 when they differ.

    Reads one snapshot of the live tables while projectors go on; needs disk space for a second copy
    of them.
    """
    from consumers.database.location import is_embedded, resolve_database
    from consumers.database.readiness import make_ready
    from consumers.errors import MismatchError
    from consumers.fold.fold import reduce_gc_frequency
    from consumers.log.open import open_reader
    from consumers.rebuild.verify import verify
    from schemas.installation import read_installation

    url = resolve_database(os.environ)
    make_ready(url, embedded=is_embedded(os.environ))
    reduce_gc_frequency()
    reader = open_reader(read_installation(os.environ))
    try:
        result = verify(reader, url)
    finally:
        reader.close()
    if as_json:
        report = {
            "equal": result.equal,
            "events": result.events,
            "tables": {name: table._asdict() for name, table in result.tables.items()},
            "differences": [difference._asdict() for difference in result.differences],
            "has_more": result.has_more,
            "redrivable": result.redrivable,
        }
        click.echo(json.dumps(report))
    else:
        _print(result)
    if not result.equal:
        message = (
            "the tables differ from the log; `cua-project rebuild` replaces them with what the log"
            " gives"
        )
        raise MismatchError(message)


def _print(result: "Verification") -> None:
    for name, table in result.tables.items():
        click.echo(f"{name:15} {table.rows:10} rows  {table.hash}")
    for found in result.differences:
        where = found.table if found.column is None else f"{found.table}.{found.column}"
        click.echo(
            f"{where} of {found.key}: {found.live} in the tables, {found.replayed} in the log"
        )
    if result.has_more:
        click.echo("... and more differences")
    for stream in result.redrivable:
        click.echo(f"{stream} was parked by an older version; `cua-project run` tries it again")
    click.echo(f"{'equal' if result.equal else 'different'} after {result.events} events")
