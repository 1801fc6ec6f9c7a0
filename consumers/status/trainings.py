"""Every training with its heartbeat, and whether it is stale or parked."""

from datetime import datetime, timedelta
from typing import NamedTuple

from consumers.database.connection import Cursor
from consumers.status.parked import ParkedStream
from consumers.tables import SCHEMA

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


def load_trainings(
    cursor: Cursor, now: datetime, *, lag_seconds: float, parked: list[ParkedStream]
) -> list[TrainingStatus]:
    """Every training, newest first; parked when any of its streams is.

    `lag_seconds`: the tables know nothing younger, so that silence is counted from there.
    """
    cursor.execute(
        "SELECT id::text, run_name, status, progress_percent, last_heartbeat,"
        f" greatest(last_heartbeat, updated_at) FROM {SCHEMA}.training ORDER BY created_at DESC,"
        " run_name"
    )
    rows = cursor.fetchall()
    since: dict[str | None, datetime] = {}
    for stream in reversed(parked):  # the oldest last, which stays
        since[stream.training_id] = stream.since
    known = {row[0] for row in rows}
    unborn = [
        TrainingStatus(
            stream.run_name or stream.stream,
            "parked",
            0.0,
            None,
            stream.since.isoformat(),
            parked=True,
        )
        for stream in parked
        if stream.stream.startswith("training/") and stream.training_id not in known
    ]
    silent_before = now - timedelta(seconds=STALE_AFTER_S + lag_seconds)
    return unborn + [
        TrainingStatus(
            run_name,
            status,
            progress,
            None if heartbeat is None else max(0.0, (now - heartbeat).total_seconds()),
            since[id_].isoformat() if id_ in since else None,
            stale=status in ALIVE and seen_at < silent_before,
            parked=id_ in since,
        )
        for id_, run_name, status, progress, heartbeat, seen_at in rows
    ]


def count_by_status(trainings: list[TrainingStatus]) -> dict[str, int]:
    """Status -> trainings."""
    counts: dict[str, int] = {}
    for training in trainings:
        counts[training.status] = counts.get(training.status, 0) + 1
    return counts
