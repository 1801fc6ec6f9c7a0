"""`cua-project rebuild`: make the tables again from the log."""

import json
import os

import click


@click.command()
@click.option(
    "--check", is_flag=True, help="Only compare: exit 4 when the tables are not what the log says."
)
@click.option(
    "--rollback", is_flag=True, help="Put the tables that the last rebuild replaced back."
)
@click.option(
    "--run", "run_name", metavar="NAME", help="Only this training, into a schema of its own."
)
@click.option(
    "--until",
    metavar="T",
    help=(
        "Only what was appended before a time, or the positions topic/partition=offset,..., into"
        " its own schema."
    ),
)
@click.option("--into", "schema", metavar="SCHEMA", help="Name of that schema.")
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Processes that replay a long log.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help='Report {"events", "seconds", "equal", "swapped", "tables"}.',
)
def command(
    *,
    check: bool,
    rollback: bool,
    run_name: str | None,
    until: str | None,
    schema: str | None,
    jobs: int,
    as_json: bool,
) -> None:
    """Build every table from the log beside the live ones, compare, and swap.

    Readers and a running projector need not stop.

    The replaced tables stay as schema cua_previous until the next rebuild.
    """
    from consumers.database.location import resolve_database
    from consumers.errors import MismatchError, UsageError
    from consumers.fold.garbage_collection import reduce_gc_frequency
    from consumers.log.open import open_reader
    from consumers.projection.parallel import Parallel
    from consumers.rebuild.rebuild import format_positions, parse_until, rebuild, rebuild_into, undo
    from schemas.installation import read_installation

    is_partial = run_name is not None or until is not None
    if check + rollback + is_partial > 1 or (schema is not None and not is_partial):
        message = (
            "expected one of --check, --rollback, or --run/--until with --into; found them together"
        )
        raise UsageError(message)

    def say(text: str) -> None:
        click.echo(text, err=True)

    reduce_gc_frequency()
    url = resolve_database(os.environ)
    if rollback:
        undo(url, say)
        if as_json:
            click.echo(
                json.dumps(
                    {"events": 0, "seconds": 0.0, "equal": None, "swapped": True, "tables": {}}
                )
            )
        else:
            say(
                "the tables are those of before the last rebuild; a projector brings them up to"
                " date"
            )
        return
    installation = read_installation(os.environ)
    reader = open_reader(installation)
    try:
        if is_partial:
            end = None if until is None else parse_until(until, reader)
            name = schema or "cua_" + "_".join(
                word for word in ("run" if run_name else "", "until" if until else "") if word
            )
            result = rebuild_into(reader, url, name, run_name=run_name, until=end)
        else:
            result = rebuild(
                reader, url, check=check, say=say, parallel=Parallel(installation, jobs)
            )
    finally:
        reader.close()
    if as_json:
        report = result._asdict() | {
            "positions": format_positions(result.positions),
            "seconds": round(result.seconds, 3),
        }
        click.echo(json.dumps(report))
    else:
        say(f"{result.events} events, {sum(result.tables.values())} rows in {result.seconds:.1f} s")
        say(f"positions: {format_positions(result.positions)}")
        say(f"the tables are in the schema {result.schema}" if not check else "nothing was changed")
    if check and not result.equal:
        found = (
            f"differences in {', '.join(result.different)}"
            if result.different
            else "those of another log"
        )
        message = (
            f"expected the tables to be what the log says, found {found}; `cua-project verify`"
            " names the rows"
        )
        raise MismatchError(message)
