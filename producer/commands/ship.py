"""`cua-train ship`: the sending side of `cua-project ship` and `cua-project up`."""

import json
import logging
import os

import rich_click as click

from producer.commands.options import with_json
from producer.commands.stopping import stop_on_signals
from producer.errors import StopRequestedError
from schemas.installation import read_installation

logger = logging.getLogger(__name__)


@click.command(name="ship", hidden=True)
@click.option("--follow", is_flag=True, help="Go on with what later processes leave.")
@click.option(
    "--while-pid", type=int, hidden=True, help="With --follow: end with this parent process."
)
@with_json
def command(*, follow: bool, while_pid: int | None, as_json: bool) -> int:
    """Send what waits in this home's spool to Kafka."""
    from producer.log.ship_spool import keep_shipping, ship_spool

    stop = stop_on_signals()
    installation = read_installation(os.environ)
    if follow:
        keep_shipping(installation, stop, lambda: while_pid is None or os.getppid() == while_pid)
        return 0
    try:
        done = ship_spool(installation, stop)
    except StopRequestedError:
        logger.info("stopped; what is left stays in the spool")
        return 130
    if as_json:
        click.echo(json.dumps(done._asdict()))
    else:
        click.echo(f"sent {done.shipped:,} events, {done.left:,} left")
    return 0
