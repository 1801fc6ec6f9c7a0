"""Lag behind the log, held records, and every training, for `status` and the monitor."""

from datetime import UTC, datetime
from typing import NamedTuple

from consumers.database.connection import Cursor, connected
from consumers.log.reader import LogReader, TopicPartition
from consumers.projection.parked_trainings import parked_at_first_record
from consumers.projection.positions import check_log, load_positions, read_state
from consumers.tables import PROJECTION_VERSION, SCHEMA

FIRST_RECORD_S = 1.0
"""How long to wait for a partition's first unprojected record, to know its age."""


class PartitionStatus(NamedTuple):
    """One partition."""

    topic: str
    partition: int
    position: int
    """Next offset to read."""
    end: int
    lag_events: int
    lag_seconds: float
    """Age of the first unprojected record; 0 when there is none."""


class TrainingStatus(NamedTuple):
    """One training."""

    run_name: str
    status: str
    progress_percent: float
    heartbeat_age_s: float | None
    """None before the first heartbeat."""
    parked_since: str | None
    """Time of its first event that could not be applied; None: nothing is parked."""


class HeldCounts(NamedTuple):
    """Counts over all streams."""

    parked: int
    """Records."""
    duplicates: int
    fenced: int
    gaps: int
    """Streams that wait for a missing record."""


class ProjectionStatus(NamedTuple):
    """Log, held records and trainings."""

    log_kind: str
    partitions: list[PartitionStatus]
    held: HeldCounts
    trainings: list[TrainingStatus]
    needs_rebuild: bool
    """The tables were filled by another version of the projection; no projector continues them."""

    @property
    def lag_events(self) -> int:
        """Unprojected records."""
        return sum(partition.lag_events for partition in self.partitions)


def read_status(reader: LogReader, url: str, now: datetime | None = None) -> ProjectionStatus:
    """The current status. MismatchError when the tables were made from another log."""
    now = now or datetime.now(UTC)
    with connected(url, "status") as connection, connection, connection.cursor() as cursor:
        state = read_state(cursor, SCHEMA)
        check_log(state, reader)
        positions = load_positions(cursor, SCHEMA)
        held = count_held(cursor)
        trainings = load_trainings(cursor, now)
    ends = reader.end_offsets(reader.partitions())
    partitions = [
        _partition(reader, at, position=positions.get(at, 0), end=end, now=now)
        for at, end in ends.items()
    ]
    needs_rebuild = state.version != PROJECTION_VERSION
    return ProjectionStatus(reader.kind, partitions, held, trainings, needs_rebuild)


def _partition(
    reader: LogReader, at: TopicPartition, *, position: int, end: int, now: datetime
) -> PartitionStatus:
    lag = max(0, end - position)
    age_s = 0.0
    if lag:
        reader.seek({at: position})
        records = reader.poll(1, FIRST_RECORD_S)
        age_s = (now - records[0].appended_at).total_seconds() if records else 0.0
    return PartitionStatus(at.topic, at.partition, position, end, lag, max(0.0, age_s))


def count_held(cursor: Cursor) -> HeldCounts:
    """Records that are not in the rows."""
    cursor.execute(
        f"SELECT (SELECT count(*) FROM {SCHEMA}.held_record WHERE held_as = 'parked'), "
        f"(SELECT coalesce(sum(num_duplicates), 0)::bigint FROM {SCHEMA}.reader_position), "
        f"(SELECT count(*) FROM {SCHEMA}.held_record WHERE held_as = 'refused'), "
        f"(SELECT count(*) FROM {SCHEMA}.stream_position WHERE num_waiting > 0)"
    )
    row = cursor.fetchone()
    assert row is not None  # noqa: S101  # a SELECT of scalars has one row
    return HeldCounts(*row)


def load_trainings(cursor: Cursor, now: datetime) -> list[TrainingStatus]:
    """Every training, newest first; parked when any of its streams is."""
    cursor.execute(
        "WITH parked AS (SELECT substring(stream FROM position('/' IN stream) + 1)::uuid AS owner,"
        f" parked_since FROM {SCHEMA}.stream_position WHERE parked_since IS NOT NULL), owned AS"
        f" (SELECT id AS owner, id AS training_id FROM {SCHEMA}.training "
        + "".join(
            f'UNION ALL SELECT id, training_id FROM {SCHEMA}."{table}" WHERE id IN (SELECT owner'
            " FROM parked) "
            for table in ("rollout", "environment", "eval", "baseline")
        )
        + "), since AS (SELECT training_id, min(parked_since) AS parked_since FROM parked JOIN"
        " owned USING (owner) GROUP BY training_id) SELECT training.id::text, run_name, status,"
        f" progress_percent, last_heartbeat, since.parked_since FROM {SCHEMA}.training LEFT JOIN"
        " since ON since.training_id = training.id ORDER BY created_at DESC, run_name"
    )
    trainings = {
        training_id: TrainingStatus(
            run_name,
            status,
            progress,
            None if heartbeat is None else max(0.0, (now - heartbeat).total_seconds()),
            None if parked_since is None else parked_since.isoformat(),
        )
        for training_id, run_name, status, progress, heartbeat, parked_since in cursor.fetchall()
    }
    for parked in parked_at_first_record(cursor):
        since = parked.parked_since.isoformat()
        name = parked.run_name or f"training/{parked.training_id}"
        known = trainings.get(str(parked.training_id))
        if known is None:
            found = TrainingStatus(name, "parked", 0.0, None, since)
        else:
            found = known._replace(parked_since=min(since, known.parked_since or since))
        trainings[str(parked.training_id)] = found
    return list(trainings.values())
