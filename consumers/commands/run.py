"""`cua-project run`: keep the tables up to date with the log."""

import json
import logging
import os

import rich_click as click

from consumers.commands.metrics_options import metrics_options
from consumers.shutdown import shutdown_on_signals

logger = logging.getLogger(__name__)


@click.command()
@click.option("--once", is_flag=True, help="Stop at the log's current end.")
@click.option(
    "--adopt-log",
    is_flag=True,
    help="Continue on another log that contains the old one's history (after a move to Kafka).",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    default=2,
    show_default=True,
    help="Processes that catch up when far behind.",
)
@metrics_options
@click.option(
    "--json", "as_json", is_flag=True, help='Print {"events", "seconds", "positions"} at the end.'
)
def command(
    *,
    once: bool,
    adopt_log: bool,
    jobs: int,
    metrics_port: int | None,
    metrics_host: str,
    as_json: bool,
) -> None:
    """Project the log into the tables, exactly once, until interrupted.

    Of several projectors one works and the others wait for its lease. Ctrl-C (or SIGTERM) stops it
    after the events at hand; a second one aborts.

    Examples:
        cua-project run
        cua-project run --once --json
        cua-project run --metrics-port 9321
    """
    shutdown = shutdown_on_signals(abort=True)
    from consumers.database.location import is_embedded, resolve_database
    from consumers.database.readiness import make_ready, naming_what_is_missing, remove_debris
    from consumers.fold.fold import reduce_gc_frequency
    from consumers.home import open_installation
    from consumers.log.open import open_reader
    from consumers.metrics.pages import MetricsPages
    from consumers.metrics.probe import Probe
    from consumers.metrics.serve import serving
    from consumers.projection.activity import Activity
    from consumers.projection.drops_file import refresh_drops_file
    from consumers.projection.loop import ProjectionLoop
    from consumers.rebuild.parallel import Parallel

    installation = open_installation(os.environ)
    url = resolve_database(os.environ, installation)
    make_ready(url, embedded=is_embedded(os.environ))
    remove_debris(url)
    with naming_what_is_missing(url):
        refresh_drops_file(url, installation.operator_drops_path)
    reduce_gc_frequency()
    activity = Activity()
    pages = MetricsPages(Probe(installation, lambda: url), activity)
    reader = open_reader(installation)
    try:
        projection = ProjectionLoop(
            reader,
            url,
            adopt=adopt_log,
            parallel=Parallel(installation, jobs).fill,
            activity=activity,
        )
        with serving(pages, metrics_port, metrics_host), naming_what_is_missing(url):
            report = (
                projection.run_once(stop=shutdown.graceful)
                if once
                else projection.run_forever(shutdown.graceful)
            )
    finally:
        reader.close()
    if as_json:
        positions = [
            {"topic": at.topic, "partition": at.partition, "position": offset}
            for at, offset in sorted(report.positions.items())
        ]
        summary = {
            "events": report.events,
            "seconds": round(report.seconds, 3),
            "positions": positions,
        }
        click.echo(json.dumps(summary))
    else:
        logger.info("applied %s events in %.1f s", f"{report.events:,}", report.seconds)
