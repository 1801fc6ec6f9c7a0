"""`cua-project psql`: a shell on the tables."""

import os

import rich_click as click


class PassingOn(click.RichCommand):
    """A command that passes its arguments to another program; only --help alone is ours."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Every word as it is: psql has a -v and a -q, too."""
        if args in (["-h"], ["--help"]):
            return super().parse_args(ctx, args)
        ctx.params["arguments"] = tuple(args)
        return []


@click.command(cls=PassingOn)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")
def command(arguments: tuple[str, ...]) -> None:
    """Open psql on the database, with the tables in the search_path; ARGS are psql's own.

    Uses the system's psql, else the one of the embedded database. Starts the embedded database if
    it is not running.

    Examples:
        cua-project psql
        cua-project psql -c 'SELECT run_name, status FROM training'
        cua-project psql -f report.sql --csv
    """
    from consumers.commands.in_our_place import run_in_our_place
    from consumers.database.location import resolve_database
    from consumers.database.pooler import takes_options
    from consumers.database.shell import shell_command
    from consumers.home import open_installation

    url = resolve_database(os.environ, open_installation(os.environ))
    words, environ = shell_command(os.environ, url, arguments, sets_path=takes_options(url))
    run_in_our_place(words, environ)
