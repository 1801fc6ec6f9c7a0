"""`cua-project run`: keep the tables up to date with the log."""

import json
import os
import signal
import threading

import click


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
@click.option(
    "--json", "as_json", is_flag=True, help='Print {"events", "seconds", "positions"} at the end.'
)
def command(*, once: bool, adopt_log: bool, jobs: int, as_json: bool) -> None:
    """Project the log into the tables, exactly once, until interrupted.

    Of several projectors one works and the others wait for its lease.
    """
    from consumers.database.location import is_embedded, resolve_database
    from consumers.database.readiness import make_ready
    from consumers.fold.fold import reduce_gc_frequency
    from consumers.log.open import open_reader
    from consumers.projection.loop import ProjectionLoop
    from consumers.rebuild.parallel import Parallel
    from schemas.installation import read_installation

    url = resolve_database(os.environ)
    make_ready(url, embedded=is_embedded(os.environ))
    reduce_gc_frequency()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    installation = read_installation(os.environ)
    reader = open_reader(installation)
    try:
        projection = ProjectionLoop(
            reader, url, adopt=adopt_log, parallel=Parallel(installation, jobs).fill
        )
        report = projection.run_once(stop=stop) if once else projection.run_forever(stop)
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
        click.echo(f"applied {report.events} events in {report.seconds:.1f} s", err=True)
