"""`cua-project up`: database, projector and monitor together, in the foreground."""

import json
import os

import click

from consumers.shutdown import shutdown_on_signals


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="The monitor's port on loopback; without it 8321, or a free one when that is taken.",
)
@click.option(
    "--json", "as_json", is_flag=True, help='Print {"monitor", "database"} as the first line.'
)
@click.option(
    "--while-pid",
    type=int,
    hidden=True,
    help="End, caught up, when the parent is no longer this process.",
)
def command(*, port: int | None, as_json: bool, while_pid: int | None) -> None:
    """Run everything that one machine needs to look at its trainings: database, projector, monitor.

    Ctrl-C or SIGTERM ends it once the tables have everything that the log has then; a second one
    ends it at once.
    """
    shutdown = shutdown_on_signals()
    from consumers.up import Addresses, OneMachine
    from schemas.installation import read_installation

    def announce(addresses: Addresses) -> None:
        if as_json:
            click.echo(json.dumps({"monitor": addresses.monitor, "database": addresses.database}))
        else:
            click.echo(f"monitor   {addresses.monitor}\ndatabase  {addresses.database}")

    machine = OneMachine(
        os.environ, read_installation(os.environ), lambda text: click.echo(text, err=True)
    )
    machine.run(port, shutdown, announce, lambda: while_pid is None or os.getppid() == while_pid)
