"""`cua-project status`: the trainings, how far the tables lag, and what could not be applied."""

import json
import os
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import rich_click as click

from consumers.console import Cell, Column, format_age, print_table

if TYPE_CHECKING:
    from consumers.status import ProjectionStatus, TrainingStatus

NUM_FINISHED = 10
"""Finished trainings that are listed without --all."""
FINISHED = ("completed", "failed", "cancelled")
STYLES = {"completed": "green", "failed": "red", "cancelled": "yellow", "paused": "yellow"}


@click.command()
@click.option(
    "--all", "show_all", is_flag=True, help=f"List every finished training, not {NUM_FINISHED}."
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as one object.")
def command(*, show_all: bool, as_json: bool) -> None:
    """Show every training, how far the tables lag behind the log, and what could not be applied.

    Unfinished trainings come first, then the newest finished ones.

    Examples:
        cua-project status
        cua-project status --json | jq .lag_events
    """
    from consumers.database.location import is_embedded, resolve_database
    from consumers.database.readiness import make_ready, naming_what_is_missing
    from consumers.home import open_installation
    from consumers.log.open import open_reader
    from consumers.status import read_status

    installation = open_installation(os.environ)
    # The log first: without Kafka there is no need to start the embedded database.
    reader = open_reader(installation)
    try:
        url = resolve_database(os.environ, installation)
        make_ready(url, embedded=is_embedded(os.environ))
        with naming_what_is_missing(url):
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
            "needs_rebuild": status.needs_rebuild,
            **status.held._asdict(),
            "trainings": [training._asdict() for training in status.trainings],
        }
        click.echo(json.dumps(report))
        return
    click.echo(_summary(status))
    click.echo()
    if not status.trainings and status.lag_events:
        click.echo("no training in the tables yet; `cua-project run --once` applies the events")
        return
    _print_trainings(status.trainings, show_all=show_all)


def _summary(status: "ProjectionStatus") -> str:
    lag = f"{status.lag_events:,} events behind" if status.lag_events else "up to date"
    if oldest_s := max((partition.lag_seconds for partition in status.partitions), default=0.0):
        lag += f", the oldest appended {format_age(oldest_s)}"
    held = status.held
    if status.needs_rebuild:
        lag = "filled by another version of cua-train; run `cua-project rebuild`"
    notes = [
        f"{held.parked:,} parked records"
        + (" (see `cua-project parked list`)" if held.parked else "")
    ]
    notes += [f"{held.gaps:,} gaps"] if held.gaps else []
    notes += [f"{held.fenced:,} fenced records"] if held.fenced else []
    notes += [f"{held.duplicates:,} duplicates"] if held.duplicates else []
    return (
        f"log     {status.log_kind}, {len(status.partitions)} partitions\n"
        f"tables  {lag}; {', '.join(notes)}"
    )


def _print_trainings(trainings: Sequence["TrainingStatus"], *, show_all: bool) -> None:
    if not trainings:
        click.echo("no training yet; `cua-train run` starts one")
        return
    # A parked training is listed first, whatever its status: its row no longer follows the log.
    urgent = [
        training
        for training in trainings
        if training.status not in FINISHED or training.parked_since is not None
    ]
    finished = [
        training
        for training in trainings
        if training.status in FINISHED and training.parked_since is None
    ]
    listed = finished if show_all else finished[:NUM_FINISHED]
    shown = (*urgent, *listed)
    columns = {
        "training": Column("training"),
        "status": Column("status"),
        "progress": Column("progress", is_number=True),
        "heartbeat": Column("heartbeat", is_number=True),
        "parked": Column("parked since"),
    }
    if all(training.status == "completed" for training in shown):
        del columns["progress"]
    if all(training.parked_since is None for training in shown):
        del columns["parked"]
    rows = [_cells(training) for training in shown]
    print_table(list(columns.values()), [[row[name] for name in columns] for row in rows])
    if rest := finished[len(listed) :]:
        counts = Counter(training.status for training in rest)
        by_status = ", ".join(f"{count} {status}" for status, count in counts.most_common())
        click.echo(f"{len(rest)} more not shown ({by_status}); --all lists them")


def _cells(training: "TrainingStatus") -> dict[str, Cell | str]:
    age_s = training.heartbeat_age_s
    return {
        "training": training.run_name,
        "status": Cell(training.status, STYLES.get(training.status, "cyan")),
        "progress": "" if training.status == "completed" else f"{training.progress_percent:.0f} %",
        "heartbeat": "never" if age_s is None else format_age(age_s),
        "parked": Cell((training.parked_since or "")[:19].replace("T", " "), "bold red"),
    }
