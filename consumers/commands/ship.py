"""`cua-project ship`: send what trainers of this home left in its spool."""

import os

import rich_click as click


@click.command()
@click.option("--json", "as_json", is_flag=True, help='Print {"shipped", "left"}.')
def command(*, as_json: bool) -> None:
    """Send what trainers that have ended left in this home's spool to Kafka.

    `cua-project up` does so while it runs, and so does every trainer of the home. Exit 5 when
    Kafka is away: the events stay in the spool.

    Examples:
        cua-project ship
        cua-project ship --json
    """
    from consumers.commands.in_our_place import run_in_our_place
    from consumers.home import open_installation
    from consumers.shipping import ship_command

    open_installation(os.environ)
    # The trainers' side.
    run_in_our_place(ship_command(*["--json"] * as_json), os.environ)
