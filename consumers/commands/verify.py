"""`cua-project verify`: compare the tables with the log."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from consumers.console import Column, print_table, sanitize

if TYPE_CHECKING:
    from consumers.rebuild.verify import Verification


@click.command()
@click.option(
    "--archive",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Archive that has the beginning of the log, made by `archive`.",
)
@click.option(
    "--json", "as_json", is_flag=True, help='Print {"equal", "events", "tables", "differences"}.'
)
def command(*, archive: Path | None, as_json: bool) -> None:
    """Compare every table with a replay of the log to the same positions; exit 4 when they differ.

    Reads one snapshot of the live tables while projectors go on; needs disk space for a second copy
    of them. Waits while Kafka is away.

    Examples:
        cua-project verify
        cua-project verify --json | jq .differences
    """
    from consumers.archive.open import open_with_archive
    from consumers.database.location import is_embedded, resolve_database
    from consumers.database.readiness import make_ready
    from consumers.database.shape import describe_texts
    from consumers.errors import MismatchError
    from consumers.fold.fold import reduce_gc_frequency
    from consumers.home import open_installation
    from consumers.progress import ReplayProgress
    from consumers.rebuild.verify import verify

    installation = open_installation(os.environ)
    url = resolve_database(os.environ, installation)
    make_ready(url, embedded=is_embedded(os.environ), mends=True)
    reduce_gc_frequency()
    reader = open_with_archive(installation, archive)
    try:
        with ReplayProgress() as progress:
            result = verify(reader, url, progress=progress)
    finally:
        reader.close()
    if as_json:
        report = {
            "equal": result.equal,
            "events": result.events,
            "tables": {name: table._asdict() for name, table in result.tables.items()},
            "differences": [difference._asdict() for difference in result.differences],
            "has_more": result.has_more,
            "retryable": result.retryable,
            "missing": result.missing,
            "log_problem": result.log_problem,
            "waiting": result.waiting.total,
        }
        click.echo(json.dumps(report))
    else:
        _print(result)
    if result.missing:
        raise MismatchError(describe_texts(result.missing))
    if result.log_problem is not None:
        raise MismatchError(result.log_problem)
    if not result.equal:
        message = (
            "the tables differ from the log; `cua-project rebuild` corrects the rows that differ"
        )
        raise MismatchError(message)


def _print(result: "Verification") -> None:
    print_table(
        [Column("table"), Column("rows", is_number=True), Column("hash")],
        [[name, f"{table.rows:,}", table.hash] for name, table in result.tables.items()],
    )
    for text in result.missing:
        click.echo(sanitize(text))
    for found in result.differences:
        if found.replayed is None and found.live in result.missing:
            continue
        where = found.table if found.column is None else f"{found.table}.{found.column}"
        click.echo(
            sanitize(
                f"{where} of {found.key}: {found.live} in the tables, {found.replayed} in the log"
            )
        )
    if result.has_more:
        click.echo("... and more differences")
    for stream in result.retryable:
        click.echo(f"{stream} was parked by an older version; `cua-project run` tries it again")
    if result.waiting.total:
        click.echo(
            sanitize(
                f"{result.waiting.describe()}, so that what follows is in neither; see `cua-project"
                " status --check`"
            )
        )
    click.echo(f"{'equal' if result.equal else 'different'} after {result.events:,} events")
