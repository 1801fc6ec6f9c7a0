"""`cua-train ship`: the sending side of `cua-project ship` and `cua-project up`."""

import json
import os

import rich_click as click

from producer.commands.options import switch, with_json
from producer.commands.stopping import exit_when_stopped
from schemas.installation import read_installation


@click.command(name="ship", hidden=True)
@switch("--follow", "Keep sending what later processes leave behind.")
@click.option(
    "--while-pid", type=int, hidden=True, help="With --follow: end with this parent process."
)
@with_json
def command(*, follow: bool, while_pid: int | None, as_json: bool) -> None:
    """Send the events in this home's spool to Kafka."""
    from producer.log.ship_spool import keep_shipping, ship_spool

    installation = read_installation(os.environ)
    with exit_when_stopped(lambda: "unsent events stay in the spool") as stop:
        if follow:
            keep_shipping(installation, stop, lambda: while_pid in {None, os.getppid()})
            return
        done = ship_spool(installation, stop)
    if as_json:
        click.echo(json.dumps(done._asdict()))
    else:
        click.echo(f"sent {done.shipped:,} events, {done.left:,} left")
