"""`cua-project run`: keep the tables up to date with the log."""

import json
import logging
import os
from typing import TYPE_CHECKING

import rich_click as click

from consumers.commands.metrics_options import metrics_options
from consumers.errors import UnreachableError
from schemas.shutdown import shutdown_on_signals

if TYPE_CHECKING:
    from consumers.log.reader import LogReader
    from consumers.projection.loop import Report
    from consumers.status.gaps import WaitingStreams
    from schemas.installation import Installation

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
    "--json",
    "as_json",
    is_flag=True,
    help='Print {"events", "seconds", "positions", "parked", "waiting"} at the end.',
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

    A database or Kafka that is not up yet is waited for, and so is every later outage. --once
    waits for neither at its start: exit 5.

    Examples:
        cua-project run
        cua-project run --once --json
        cua-project run --metrics-port 9321
    """
    shutdown = shutdown_on_signals(abort=True)
    from consumers.database.location import resolve_database
    from consumers.database.readiness import naming_what_is_missing
    from consumers.database.silence import WATCH
    from consumers.fold.fold import reduce_gc_frequency
    from consumers.home import open_installation
    from consumers.metrics.pages import MetricsPages
    from consumers.metrics.probe import Probe
    from consumers.metrics.serve import serving
    from consumers.projection.activity import Activity
    from consumers.projection.loop import ONCE_LIMIT_S, ProjectionLoop, Report
    from consumers.projection.startup import wait_until_reachable
    from consumers.rebuild.parallel import Parallel
    from consumers.status.gaps import NO_GAPS, gaps_at_end

    installation = open_installation(os.environ)
    if once:
        WATCH.start(ONCE_LIMIT_S)
    activity = Activity(silence=WATCH.named)
    pages = MetricsPages(
        Probe(installation, lambda: resolve_database(os.environ, installation)), activity
    )

    def open_all() -> "tuple[str, LogReader]":
        try:
            return _open(installation)
        except UnreachableError as error:
            activity.failed(str(error))
            raise

    # What is waited for at the start is seen there too.
    with serving(pages, metrics_port, metrics_host):
        opened = open_all() if once else wait_until_reachable(open_all, shutdown.graceful)
        report = Report(0, 0.0, {})
        if opened is not None:
            url, reader = opened
            reduce_gc_frequency()
            try:
                projection = ProjectionLoop(
                    reader,
                    url,
                    adopt=adopt_log,
                    parallel=Parallel(installation, jobs).fill,
                    activity=activity,
                )
                with naming_what_is_missing(url):
                    report = (
                        projection.run_once(stop=shutdown.graceful)
                        if once
                        else projection.run_forever(shutdown.graceful)
                    )
            finally:
                reader.close()
    gaps = NO_GAPS if opened is None else gaps_at_end(opened[0])
    _print(report, gaps, as_json=as_json)


def _open(installation: "Installation") -> "tuple[str, LogReader]":
    """The database's URL, its tables ready, and the log. UnreachableError."""
    import psycopg2

    from consumers.database.location import is_embedded, resolve_database, unreachable
    from consumers.database.readiness import make_ready
    from consumers.log.open import open_reader

    embedded = is_embedded(os.environ)
    try:
        url = resolve_database(os.environ, installation)
    except UnreachableError as error:
        # The embedded server is ours to start: whatever keeps it from starting stays.
        raise UnreachableError(str(error), is_refusal=True) from None
    try:
        make_ready(url, embedded=embedded)
    except psycopg2.OperationalError as error:
        # A server that starts may end its first sessions again.
        raise unreachable(url, error) from None
    return url, open_reader(installation)


def _print(report: "Report", gaps: "WaitingStreams | None", *, as_json: bool) -> None:
    if as_json:
        positions = [
            {"topic": at.topic, "partition": at.partition, "position": offset}
            for at, offset in sorted(report.positions.items())
        ]
        summary = {
            "events": report.events,
            "seconds": round(report.seconds, 3),
            "positions": positions,
            "parked": report.parked,
            "waiting": None if gaps is None else gaps.total,
        }
        click.echo(json.dumps(summary))
    else:
        parked = f", parked {report.parked:,} records" if report.parked else ""
        applied = f"{report.events:,}"
        logger.info("applied %s events in %.1f s%s", applied, report.seconds, parked)
    if gaps is not None and gaps.total:
        logger.warning("%s; see `cua-project status --check`", gaps.describe())
