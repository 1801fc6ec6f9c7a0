"""`cua-project status`: how far the tables are, what is held, how the trainings stand."""

import json
import os

import click


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Everything, as one object.")
def command(*, as_json: bool) -> None:
    """Show how far the tables are behind the log, what could not be applied, and every training."""
    from consumers.database.location import is_embedded, resolve_database
    from consumers.database.readiness import make_ready
    from consumers.log.open import open_reader
    from consumers.status import read_status
    from schemas.installation import read_installation

    url = resolve_database(os.environ)
    make_ready(url, embedded=is_embedded(os.environ))
    reader = open_reader(read_installation(os.environ))
    try:
        status = read_status(reader, url)
    finally:
        reader.close()
    if as_json:
        report = {
            "log": {
                "kind": status.log_kind,
                "partitions": [partition._asdict() for partition in status.partitions],
            },
            "lag_events": status.lag_events,
            **status.held._asdict(),
            "trainings": [training._asdict() for training in status.trainings],
        }
        click.echo(json.dumps(report))
        return
    held = status.held
    click.echo(
        f"log: {status.log_kind}, {len(status.partitions)} partitions, {status.lag_events} events"
        " behind"
    )
    click.echo(
        f"parked: {held.parked}  duplicates: {held.duplicates}  fenced: {held.fenced}  gaps:"
        f" {held.gaps}"
    )
    for training in status.trainings:
        heartbeat = (
            "no heartbeat"
            if training.heartbeat_age_s is None
            else f"heartbeat {training.heartbeat_age_s:.0f} s ago"
        )
        parked = "" if training.parked_since is None else f"  PARKED since {training.parked_since}"
        click.echo(
            f"{training.run_name:30} {training.status:12} {training.progress_percent:5.1f} % "
            f" {heartbeat}{parked}"
        )
