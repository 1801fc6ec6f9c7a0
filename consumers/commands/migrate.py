"""`cua-project migrate`: bring the database's tables to this version's."""

import json
import os

import rich_click as click


@click.command()
@click.option(
    "--to",
    "revision",
    default="head",
    show_default=True,
    metavar="REVISION",
    help="Upgrade or downgrade to this revision: head, base, -1, or an id.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Change nothing; exit 4 if the schema differs from the tables' definition.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help='Print {"before", "after"}, or with --check {"equal", "differences"}.',
)
def command(*, revision: str, check: bool, as_json: bool) -> None:
    """Create the tables, or bring them to this version's definition.

    No data is at risk: every row can be rebuilt from the log.

    Examples:
        cua-project migrate
        cua-project migrate --check
        cua-project migrate --to -1
    """
    from consumers.database.known_revisions import newest_revision
    from consumers.database.location import resolve_database
    from consumers.database.migrate import migrate, schema_differences
    from consumers.database.repeatable import mending_command
    from consumers.database.revision import Age, look
    from consumers.database.shape import describe, missing
    from consumers.errors import MismatchError
    from consumers.home import open_installation

    url = resolve_database(os.environ, open_installation(os.environ))
    if check:
        at = look(url)
        at.refuse()
        differences = schema_differences(url)
        if at.age is Age.OLDER:
            differences.insert(0, f"revision: {', '.join(at.found)} instead of {at.newest}")
        if as_json:
            click.echo(json.dumps({"equal": not differences, "differences": differences}))
        else:
            click.echo("\n".join(differences) or "the schema matches the tables' definition")
        if differences:
            count = "1 place" if len(differences) == 1 else f"{len(differences)} places"
            helps = mending_command(differences) if at.age is Age.CURRENT else "migrate"
            message = (
                f"the schema differs from the tables' definition in {count}; run `cua-project"
                f" {helps}`"
            )
            raise MismatchError(message)
        return
    before, after = migrate(url, revision)
    if as_json:
        click.echo(json.dumps({"before": before, "after": after}))
    else:
        was = "" if before == after else f" (before: {before or 'none'})"
        click.echo(f"at revision {after or 'none'}{was}")
    if after == newest_revision() and (problems := missing(url)):
        raise MismatchError(describe(problems))
