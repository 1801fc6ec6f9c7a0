"""`cua-project up`: database, projector and monitor together, in the foreground."""

import json
import os
import signal

import click


@click.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), help="The monitor's port on loopback; without it 8321, or a free one when that is taken."
)
@click.option("--json", "as_json", is_flag=True, help='Print {"monitor", "database"} as the first line.')
@click.option("--while-pid", type=int, hidden=True, help="End, caught up, when the parent is no longer this process.")
def command(*, port: int | None, as_json: bool, while_pid: int | None) -> None:
    """Run everything that one machine needs to look at its trainings: database, projector, monitor.

    Ctrl-C or SIGTERM ends it once the tables have everything that the log has then; a second one ends it at once.
    """
    from consumers.services.one_machine import Addresses, OneMachine, Wishes
    from schemas.installation import read_installation

    wishes = Wishes()

    def on_signal(_number: int, _frame: object) -> None:
        (wishes.hurry if wishes.stop.is_set() else wishes.stop).set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)

    def announce(addresses: Addresses) -> None:
        if as_json:
            click.echo(json.dumps({"monitor": addresses.monitor, "database": addresses.database}))
        else:
            click.echo(f"monitor   {addresses.monitor}\ndatabase  {addresses.database}")

    machine = OneMachine(os.environ, read_installation(os.environ), lambda text: click.echo(text, err=True))
    machine.run(port, wishes, announce, lambda: while_pid is None or os.getppid() == while_pid)
