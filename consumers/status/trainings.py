"""Every training with its heartbeat, and whether it is stale or parked."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from consumers.database.connection import Cursor
from consumers.status.parked import ParkedStreams
from consumers.tables import SCHEMA
from schemas.installation import Installation
from schemas.lock_holders import is_held, is_held_by_stopped

STALE_AFTER_S = 60.0
"""Without a sign of life; heartbeats come every few seconds."""
ALIVE = ("pending", "initializing", "running")
"""Statuses in which a process is at work; a paused training has none."""


class TrainingStatus(NamedTuple):
    """One training."""

    run_name: str
    """Of a training without a row whose name cannot be read: its stream."""
    status: str
    """`parked` for a training of which not even the first event could be applied."""
    progress_percent: float
    heartbeat_age_s: float | None
    """None before the first heartbeat."""
    parked_since: str | None
    """Time of its first event that could not be applied; None: nothing is parked."""
    stale: bool = False
    """It should be at work, but gave no sign of life for a minute before the tables' time."""
    parked: bool = False
    """Some of its streams no longer follow the log."""
    status_message: str | None = None
    """Details of the status: what a training that has not begun waits for."""
    display_name: str | None = None
    """What it was renamed to; None: its name is shown."""
    tags: tuple[str, ...] = ()
    hidden: bool = False
    """It is listed only on request."""
    leaked_devices: int | None = 0
    """Devices of its rollouts that were not released and may still run; None: not counted."""


class _Row(NamedTuple):
    """What the tables say of a training."""

    id: str
    run_name: str
    status: str
    progress: float
    heartbeat: datetime | None
    seen_at: datetime
    status_message: str | None
    display_name: str | None
    tags: list[str]
    hidden: bool


def count_leaked(cursor: Cursor) -> dict[str | None, int]:
    """Training (None: of an evaluation by hand) -> devices that were not released."""
    cursor.execute(
        f"SELECT training_id::text, count(*) FROM {SCHEMA}.environment"
        " WHERE status = 'error' AND termination_time IS NULL GROUP BY training_id"
    )
    return dict(cursor.fetchall())


def is_trained_here(installation: Installation, run_name: str) -> bool:
    """Whether a process of this home that is not stopped has the training open."""
    lock = installation.runs_dir / run_name / "lock"
    return is_held(lock) and not is_held_by_stopped(lock)


def load_trainings(
    cursor: Cursor,
    now: datetime,
    *,
    lag_seconds: float,
    parked: ParkedStreams,
    leaked: Mapping[str | None, int] | None = None,
    installation: Installation | None = None,
) -> list[TrainingStatus]:
    """Every training, newest first; parked when any of its streams is.

    Before them the first trainings of which not even a row is there.
    `lag_seconds`: the tables know nothing younger, so that silence is counted from there.
    `leaked`: as `count_leaked`. `installation`: what is trained in it is not stale; a process that
    continues a training loads its policy for minutes before its first event.
    """
    cursor.execute(
        "SELECT training.id::text, run_name, status, progress_percent, last_heartbeat,"
        " greatest(last_heartbeat, updated_at), status_message, display_name,"
        f" coalesce(tags, '[]'), coalesce(hidden, false) FROM {SCHEMA}.training"
        " LEFT JOIN (SELECT DISTINCT ON (training_id) training_id, display_name, tags, hidden"
        f" FROM {SCHEMA}.annotation ORDER BY training_id, epoch DESC, sequence DESC) AS newest"
        " ON newest.training_id = training.id ORDER BY training.created_at DESC, run_name"
    )
    rows = [_Row(*row) for row in cursor.fetchall()]
    since = parked.since
    unborn = [
        TrainingStatus(
            stream.run_name or stream.stream,
            "parked",
            0.0,
            None,
            stream.since.isoformat(),
            parked=True,
        )
        for stream in parked.unborn
    ]
    silent_before = now - timedelta(seconds=STALE_AFTER_S + lag_seconds)
    return unborn + [
        TrainingStatus(
            row.run_name,
            row.status,
            row.progress,
            None if row.heartbeat is None else max(0.0, (now - row.heartbeat).total_seconds()),
            since[row.id].isoformat() if row.id in since else None,
            stale=row.status in ALIVE
            and row.seen_at < silent_before
            and not (installation and is_trained_here(installation, row.run_name)),
            parked=row.id in since,
            status_message=row.status_message,
            display_name=row.display_name,
            tags=tuple(row.tags),
            hidden=row.hidden,
            leaked_devices=None if leaked is None else leaked.get(row.id, 0),
        )
        for row in rows
    ]


def count_by_status(trainings: list[TrainingStatus]) -> dict[str, int]:
    """Status -> trainings."""
    counts: dict[str, int] = {}
    for training in trainings:
        counts[training.status] = counts.get(training.status, 0) + 1
    return counts
