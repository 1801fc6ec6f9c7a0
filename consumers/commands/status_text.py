"""The status for people: four lines, then the trainings."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

import rich_click as click

from consumers.console import Cell, Column, format_age, format_bytes, print_table, sanitize
from consumers.log.held_streams import HeldStream
from consumers.status import DiskUse, ProjectionStatus, TrainingStatus

NUM_FINISHED = 10
"""Finished trainings that are listed without --all."""
NUM_UNFINISHED = 50
"""Trainings that are not finished, or parked, and listed without --all."""
NUM_PARKED = 5
"""Parked streams without a training that are named."""
FINISHED = ("completed", "failed", "cancelled")
STYLES = {
    "completed": "green",
    "failed": "red",
    "cancelled": "yellow",
    "paused": "yellow",
    "parked": "bold red",
}


def print_status(status: ProjectionStatus, *, show_all: bool) -> None:
    """Log, projector, tables, disk, and every training."""
    click.echo(f"log        {status.log_kind}, {len(status.partitions)} partitions")
    click.echo(f"projector  {sanitize(_projector(status))}")
    click.echo(f"tables     {_tables(status)}")
    if status.disk is not None:
        click.echo(f"disk       {_disk(status.disk)}")
    if unowned := status.parked.unowned[:NUM_PARKED]:
        more = status.parked.num_unowned - len(unowned)
        rest = f" and {more:,} more" if more else ""
        click.echo(f"parked     {sanitize(', '.join(unowned))}{rest}")
    if number := status.waiting.num_records:
        click.echo(f"not sent   {number:,} events wait in this home's spool (`cua-project ship`)")
    if status.held_in_spool:
        click.echo(f"not sent   {sanitize(_held_in_spool(status.held_in_spool))}")
    if status.leaked_devices:
        click.echo(f"leaked     {_leaked(status)}")
    click.echo()
    if not status.trainings and status.lag_events:
        click.echo("no training in the tables yet; `cua-project run --once` applies the events")
        return
    _print_trainings(status.trainings, show_all=show_all)


def _projector(status: ProjectionStatus) -> str:
    projector, now = status.projector, datetime.now(UTC)
    if projector.holder is None:
        text = "none is running"
    else:
        text = projector.holder
        if projector.since is not None:
            text += f", since {projector.since[:19].replace('T', ' ')} UTC"
    if projector.last_error:
        text += f"; last error {_ago(projector.last_error_at, now)}: {projector.last_error}"
    return text


def _ago(time: str | None, now: datetime) -> str:
    if time is None:
        return "at an unknown time"
    return format_age(max(0.0, (now - datetime.fromisoformat(time)).total_seconds()))


def _tables(status: ProjectionStatus) -> str:
    lag = f"{status.lag_events:,} events behind" if status.lag_events else "up to date"
    if oldest_s := status.lag_seconds:
        lag += f", the oldest appended {format_age(oldest_s)}"
    unapplied = status.unapplied
    if status.needs_rebuild:
        lag = "filled by another version of cua-train; run `cua-project rebuild`"
    notes = [
        f"{unapplied.parked:,} parked records"
        + (" (see `cua-project parked list`)" if unapplied.parked else "")
    ]
    notes += [f"{unapplied.dropped:,} dropped streams"] if unapplied.dropped else []
    notes += [f"{unapplied.gaps:,} gaps"] if unapplied.gaps else []
    notes += [f"{unapplied.fenced:,} fenced records"] if unapplied.fenced else []
    notes += [f"{unapplied.foreign:,} foreign records"] if unapplied.foreign else []
    notes += [f"{unapplied.duplicates:,} duplicates"] if unapplied.duplicates else []
    return f"{lag}; {', '.join(notes)}"


def _held_in_spool(unapplied: Sequence[HeldStream]) -> str:
    texts = [
        f"{item.stream} ({item.num_records:,} records of this home, since a record of"
        f" {format_bytes(item.size_bytes)}, larger than topic {item.topic} takes)"
        for item in unapplied[:NUM_PARKED]
    ]
    rest = len(unapplied) - len(texts)
    return ", ".join(texts) + (f" and {rest} more" if rest else "")


def _leaked(status: ProjectionStatus) -> str:
    """Trainings first; what is left are evaluations by hand."""
    counts = {
        training.run_name: training.leaked_devices
        for training in status.trainings
        if training.leaked_devices
    }
    counts["evaluations"] = (status.leaked_devices or 0) - sum(counts.values())
    of = ", ".join(f"{sanitize(name)} {number:,}" for name, number in counts.items() if number)
    total = status.leaked_devices
    devices = "1 device was" if total == 1 else f"{total:,} devices were"
    return f"{devices} not released and may still run: {of}"


def _disk(disk: DiskUse) -> str:
    parts = {
        "log": disk.log_bytes,
        "spool": disk.spool_bytes,
        "blobs": disk.blobs_bytes,
        "database": disk.database_bytes,
    }
    texts = [
        f"{name} {'about ' if name == 'blobs' and disk.blobs_estimated else ''}{format_bytes(size)}"
        for name, size in parts.items()
        if size is not None
    ]
    if disk.free_bytes is not None:
        texts.append(f"free {format_bytes(disk.free_bytes)}")
    return ", ".join(texts)


def _print_trainings(trainings: Sequence[TrainingStatus], *, show_all: bool) -> None:
    if not trainings:
        click.echo("no training yet; `cua-train run` starts one")
        return
    num_hidden = sum(training.hidden and not training.parked for training in trainings)
    if not show_all:
        trainings = [training for training in trainings if not training.hidden or training.parked]
    # A parked training is listed first, whatever its status: its row no longer follows the log.
    urgent = [
        training for training in trainings if training.status not in FINISHED or training.parked
    ]
    finished = [
        training for training in trainings if training.status in FINISHED and not training.parked
    ]
    listed = urgent if show_all else urgent[:NUM_UNFINISHED]
    listed_finished = finished if show_all else finished[:NUM_FINISHED]
    trainings_listed = (*listed, *listed_finished)
    columns = {
        "training": Column("training"),
        "name": Column("name"),
        "tags": Column("tags"),
        "status": Column("status"),
        "progress": Column("progress", is_number=True),
        "heartbeat": Column("heartbeat", is_number=True),
        "parked": Column("parked since"),
    }
    if all(training.status == "completed" for training in trainings_listed):
        del columns["progress"]
    if not any(training.display_name for training in trainings_listed):
        del columns["name"]
    if not any(training.tags for training in trainings_listed):
        del columns["tags"]
    if not any(training.parked for training in trainings_listed):
        del columns["parked"]
    rows = [_cells(training) for training in trainings_listed]
    if rows:
        print_table(list(columns.values()), [[row[name] for name in columns] for row in rows])
    if rest := [*urgent[len(listed) :], *finished[len(listed_finished) :]]:
        counts = Counter(training.status for training in rest)
        by_status = ", ".join(f"{count} {status}" for status, count in counts.most_common())
        click.echo(f"{len(rest)} more not shown ({by_status}); --all lists them")
    if num_hidden and not show_all:
        click.echo(f"{num_hidden} hidden; --all lists them")


def _cells(training: TrainingStatus) -> dict[str, Cell | str]:
    age_s = training.heartbeat_age_s
    text = training.status
    if text == "initializing" and training.status_message:
        text += f": {training.status_message}"  # what it waits for
    status = Cell(text, STYLES.get(training.status, "cyan"))
    if training.stale:
        status = Cell(f"{training.status}, stale", "bold red")
    return {
        "training": training.run_name,
        "name": training.display_name or "",
        "tags": ", ".join(training.tags),
        "status": status,
        "progress": "" if training.status == "completed" else f"{training.progress_percent:.0f} %",
        "heartbeat": "never" if age_s is None else format_age(age_s),
        "parked": Cell((training.parked_since or "")[:19].replace("T", " "), "bold red"),
    }
