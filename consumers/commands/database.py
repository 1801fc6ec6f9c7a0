"""`cua-project database`: the database's URL; `database stop` stops the embedded one."""

import json
import logging
import os

import rich_click as click

from schemas.installation import DATABASE_VARIABLES

logger = logging.getLogger(__name__)


@click.group(invoke_without_command=True)
@click.option(
    "--json", "as_json", is_flag=True, help='Print {"url", "sqlalchemy_url", "embedded"}.'
)
@click.pass_context
def command(context: click.Context, *, as_json: bool) -> None:
    """Print the database's URL, password included.

    psql and SQLAlchemy both open it: 2.1 takes postgresql:// for psycopg 3, which is installed with
    cua-train. Starts the embedded database if it is not running.

    Examples:
        psql "$(cua-project database)"
        cua-project database --json
        cua-project database stop
    """
    if context.invoked_subcommand is not None:
        return
    from consumers.database.location import is_embedded, libpq_url, resolve_database
    from consumers.home import open_installation

    for_sqlalchemy = resolve_database(os.environ, open_installation(os.environ))
    url = libpq_url(for_sqlalchemy)
    if as_json:
        report = {
            "url": url,
            "sqlalchemy_url": for_sqlalchemy,
            "embedded": is_embedded(os.environ),
        }
        click.echo(json.dumps(report))
    else:
        click.echo(url)


@command.command()
def stop() -> None:
    """Stop the embedded database.

    Its data stays; the next command that needs the database starts it again. Refused where
    DATABASE_URL or POSTGRES_* names another one.
    """
    from consumers.embedded_postgres.postgres import stop_running
    from consumers.errors import UsageError
    from consumers.home import open_installation

    installation = open_installation(os.environ)
    if named := [name for name in DATABASE_VARIABLES if os.environ.get(name)]:
        message = (
            f"{', '.join(named)} in the environment selects your own database, which this command"
            f" does not stop; unset {' '.join(named)} to stop the embedded one of"
            f" {installation.home}"
        )
        raise UsageError(message)
    stopped = stop_running(installation.database_dir)
    logger.info(
        "stopped the embedded database" if stopped else "the embedded database is not running"
    )
