"""Processes that work beside a trainer whose log is Kafka.

`cua-train worker` runs rollouts of trainings on other hosts. The hidden `cua-train ship` is the
sending side of `cua-project ship` and `cua-project up`.
"""

import json
import logging
import os

import rich_click as click

from producer.commands.options import examples, option, switch, with_json, with_options
from producer.commands.stopping import exit_when_stopped
from producer.errors import UsageError
from schemas.installation import read_installation

logger = logging.getLogger(__name__)

EPILOG = examples(
    "$ export KAFKA_BOOTSTRAP_SERVERS=kafka:9092 CUA_BLOBS=s3://bucket/blobs",
    "$ cua-train worker --max-concurrent-rollouts 16",
)


@click.command(name="worker", epilog=EPILOG)
@with_options(
    option(
        "--max-concurrent-rollouts",
        "Rollouts that this worker runs at the same time.",
        click.IntRange(min=1),
        default=8,
    ),
)
@switch("--json as_json", "Print a line of JSON once the worker takes rollouts.", "Output")
def command(*, max_concurrent_rollouts: int, as_json: bool) -> None:
    """Run rollouts for trainings on other hosts, which have the setting rollouts_by workers.

    Up to 48 workers share the rollouts of all trainings that use the same Kafka. On the first
    Ctrl-C or SIGTERM a worker takes no more rollouts and finishes those under way. The rollouts of
    a killed worker are run again by others.
    """
    installation = read_installation(os.environ)
    if installation.kafka_bootstrap_servers is None:
        message = "a worker gets its rollouts from Kafka; set KAFKA_BOOTSTRAP_SERVERS"
        raise UsageError(message)
    from producer.emit import Emitter
    from producer.emit.emitter import now_utc
    from producer.workers.worker import Worker

    def on_ready() -> None:
        logger.info("taking rollouts, at most %d at once", max_concurrent_rollouts)
        if as_json:
            click.echo(json.dumps({"max_concurrent_rollouts": max_concurrent_rollouts}))

    # The emitter does not stop with the event: rollouts under way are still recorded and sent.
    with exit_when_stopped() as stop, Emitter.open(installation) as emitter:
        worker = Worker(
            emitter, installation, now_utc, max_rollouts=max_concurrent_rollouts, stop=stop
        )
        worker.run(on_ready)
        logger.info("ran %d rollouts", worker.num_ended)


@click.command(name="ship", hidden=True)
@switch("--follow", "Keep sending what later processes leave behind.")
@click.option(
    "--while-pid", type=int, hidden=True, help="With --follow: end with this parent process."
)
@with_json
def ship(*, follow: bool, while_pid: int | None, as_json: bool) -> None:
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
