"""`cua-project database`: where the tables are, for psql and notebooks.

`database stop` ends the embedded server.
"""

import json
import os

import click

from schemas.installation import read_installation


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help='Print {"url", "embedded"}.')
@click.pass_context
def command(context: click.Context, *, as_json: bool) -> None:
    """Print the database's URL; the embedded database is started if it does not run.

    psql "$(cua-project database)"
    """
    if context.invoked_subcommand is not None:
        return
    from consumers.database.location import is_embedded, libpq_url, resolve_database

    url = libpq_url(resolve_database(os.environ))
    click.echo(json.dumps({"url": url, "embedded": is_embedded(os.environ)}) if as_json else url)


@command.command()
def stop() -> None:
    """End the embedded database; its data stays, and the next command that needs it starts it again."""
    from consumers.embedded_postgres.postgres import stop_running

    stopped = stop_running(read_installation(os.environ).database_dir)
    click.echo(
        "stopped the embedded database" if stopped else "the embedded database was not running",
        err=True,
    )
