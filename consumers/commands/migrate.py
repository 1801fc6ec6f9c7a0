"""`cua-project migrate`: bring the database's tables to this version's."""

import json
import os

import click


@click.command()
@click.option(
    "--to",
    "revision",
    default="head",
    show_default=True,
    metavar="REV",
    help="Revision to upgrade or downgrade to.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Change nothing; exit 4 when the schema and the tables' definition differ.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help='Print {"before", "after"}, or with --check {"equal", "differences"}.',
)
def command(*, revision: str, check: bool, as_json: bool) -> None:
    """Make or change the tables; everything they say comes from the log."""
    from consumers.database.location import resolve_database
    from consumers.database.migrate import migrate, schema_differences
    from consumers.errors import MismatchError

    url = resolve_database(os.environ)
    if check:
        differences = schema_differences(url)
        if as_json:
            click.echo(json.dumps({"equal": not differences, "differences": differences}))
        if differences:
            found = "; ".join(differences[:5])
            message = (
                f"expected the schema as the tables are defined, found: {found}; run `cua-project"
                " migrate`"
            )
            raise MismatchError(message)
        if not as_json:
            click.echo("the schema is as the tables are defined")
        return
    before, after = migrate(url, revision)
    if as_json:
        click.echo(json.dumps({"before": before, "after": after}))
    else:
        click.echo(
            f"at revision {after or 'none'}"
            + ("" if before == after else f" (before: {before or 'none'})")
        )
