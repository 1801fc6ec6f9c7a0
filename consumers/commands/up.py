"""`cua-project up`: database, projector and monitor together, in the foreground."""

import json
import os
from pathlib import Path

import rich_click as click

from consumers.commands.metrics_options import metrics_options
from consumers.commands.monitor_options import listening, monitor_options
from schemas.shutdown import shutdown_on_signals


@click.command()
@monitor_options
@metrics_options
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help='Print {"monitor", "database"} as the first line.',
)
@click.option(
    "--while-pid",
    type=int,
    hidden=True,
    help="Catch up and stop once the parent process is not this one any more.",
)
def command(
    *,
    port: int | None,
    host: str,
    token_file: Path | None,
    metrics_port: int | None,
    metrics_host: str,
    as_json: bool,
    while_pid: int | None,
) -> None:
    """Run database, projector and monitor for the trainings of this machine.

    The monitor's server also has /metrics and /healthz.

    Ctrl-C (or SIGTERM) stops it after the tables have caught up with the log; a second one stops
    it at once.

    Examples:
        cua-project up
        cua-project up --port 9000 --json
    """
    shutdown = shutdown_on_signals()
    from consumers.home import open_installation
    from consumers.metrics.serve import serving
    from consumers.up import Addresses, OneMachine

    at = listening(port, host, token_file)

    def announce(addresses: Addresses) -> None:
        if as_json:
            click.echo(json.dumps(addresses._asdict()))
        else:
            click.echo(f"monitor   {addresses.monitor}\ndatabase  {addresses.database}")

    machine = OneMachine(os.environ, open_installation(os.environ))
    with serving(machine.metrics, metrics_port, metrics_host):
        machine.run(
            at,
            shutdown,
            announce,
            lambda: while_pid is None or os.getppid() == while_pid,
            # The trainer that started it sends its own events.
            ships=while_pid is None,
        )
