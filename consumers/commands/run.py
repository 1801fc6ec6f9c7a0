"""`cua-project run`: keep the tables up to date with the log."""

import json
import os
import signal
import threading

import click


@click.command()
@click.option("--once", is_flag=True, help="Stop at the end that the log has now.")
@click.option(
    "--adopt-log",
    is_flag=True,
    help="Go on with another log that contains the old one's history (after a move to Kafka).",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Processes that catch up when the way is long.",
)
@click.option(
    "--json", "as_json", is_flag=True, help='Report {"events", "seconds", "positions"} at the end.'
)
def command(*, once: bool, adopt_log: bool, jobs: int, as_json: bool) -> None:
    """Read the log and write the tables, exactly once, until interrupted.

    Several may run: one works, the others wait for its place.
    """
    from consumers.database.location import is_embedded, resolve_database
    from consumers.database.readiness import make_ready
    from consumers.fold.garbage_collection import reduce_gc_frequency
    from consumers.log.open import open_reader
    from consumers.projection.loop import ProjectionLoop
    from consumers.projection.parallel import Parallel
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
        parallel = Parallel(installation, jobs)
        projection = ProjectionLoop(
            reader,
            url,
            say=lambda text: click.echo(text, err=True),
            adopt=adopt_log,
            parallel=parallel,
        )
        report = projection.run_once(stop=stop) if once else projection.run_forever(stop)
    finally:
        reader.close()
    if as_json:
        positions = [
            {"topic": place.topic, "partition": place.partition, "position": at}
            for place, at in sorted(report.positions.items())
        ]
        click.echo(
            json.dumps(
                {
                    "events": report.events,
                    "seconds": round(report.seconds, 3),
                    "positions": positions,
                }
            )
        )
    else:
        click.echo(f"applied {report.events} events in {report.seconds:.1f} s", err=True)
