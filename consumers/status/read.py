"""The installation's status in one object, for `status`, its alerts and the metrics."""

from datetime import UTC, datetime
from typing import NamedTuple

from consumers.database.connection import connected
from consumers.log.held_streams import HeldStream, read_held
from consumers.log.reader import LogReader
from consumers.log.waiting import Waiting, read_waiting
from consumers.projection.positions import (
    check_log,
    check_records,
    load_last_records,
    load_positions,
    read_state,
)
from consumers.status.disk import DiskUse, measure_disk
from consumers.status.gaps import WaitingStreams, load_waiting
from consumers.status.lag import PartitionStatus, measure_lag
from consumers.status.parked import ParkedStreams, load_parked
from consumers.status.projector import ProjectorStatus, load_projector
from consumers.status.trainings import TrainingStatus, count_leaked, load_trainings
from consumers.status.unapplied import UnappliedCounts, count_unapplied
from consumers.tables import PROJECTION_VERSION, SCHEMA
from schemas.installation import Installation


class ProjectionStatus(NamedTuple):
    """Log, projector, records that are not applied, and trainings."""

    log_kind: str
    partitions: list[PartitionStatus]
    unapplied: UnappliedCounts
    trainings: list[TrainingStatus]
    needs_rebuild: bool
    """The tables were filled by another version of the projection; no projector continues them."""
    projector: ProjectorStatus
    parked: ParkedStreams
    num_events: int
    """Records applied, since the tables were last built."""
    held_in_spool: list[HeldStream]
    """Streams of this home that Kafka does not take further."""
    waiting: Waiting
    """Records of this home that Kafka does not have, those of held streams included."""
    disk: DiskUse | None
    """None: not asked for."""
    gaps: WaitingStreams
    """Streams that wait for records which the log does not have."""
    gap_seconds: float
    """Age of the oldest record that waits so; 0 when none does."""
    leaked_devices: int | None
    """Of all rollouts, evaluations by hand included; None: not asked for."""

    @property
    def lag_events(self) -> int:
        """Unprojected records."""
        return sum(partition.lag_events for partition in self.partitions)

    @property
    def lag_seconds(self) -> float:
        """Age of the oldest unprojected record; 0 when there is none."""
        return max((partition.lag_seconds for partition in self.partitions), default=0.0)


def read_status(
    reader: LogReader,
    url: str,
    *,
    installation: Installation | None = None,
    is_brief: bool = False,
) -> ProjectionStatus:
    """The current status; with `installation` what is held in its spool, and its disk use, too.

    `is_brief`: without what takes longer with the size: disk use and leaked devices.
    MismatchError when the tables were made from another log, or have records that it has not;
    UnreachableError.
    """
    now = datetime.now(UTC)
    with connected(url, "status") as connection, connection, connection.cursor() as cursor:
        state = read_state(cursor, SCHEMA)
        check_log(state, reader)
        # Positions before ends, so that no lag is negative.
        positions = load_positions(cursor, SCHEMA)
        check_records(positions, load_last_records(cursor, SCHEMA), reader)
        partitions = measure_lag(reader, positions, now)
        waiting = _waiting(installation, reader, now)
        # What waits in the spool is not in the tables either.
        lag_seconds = max([partition.lag_seconds for partition in partitions] + [waiting.seconds])
        parked = load_parked(cursor)
        leaked = None if is_brief else count_leaked(cursor)
        trainings = load_trainings(
            cursor,
            now,
            lag_seconds=lag_seconds,
            parked=parked,
            leaked=leaked,
            installation=installation,
        )
        cursor.execute(f"SELECT coalesce(sum(num_events), 0)::bigint FROM {SCHEMA}.reader_position")
        num_events = cursor.fetchone()[0]
        return ProjectionStatus(
            reader.kind,
            partitions,
            count_unapplied(cursor),
            trainings,
            state.version != PROJECTION_VERSION,
            load_projector(cursor),
            parked,
            num_events,
            _held_in_spool(installation, reader),
            waiting,
            measure_disk(installation, cursor) if installation and not is_brief else None,
            gaps := load_waiting(cursor),
            gaps.seconds(now),
            None if leaked is None else sum(leaked.values()),
        )


def _held_in_spool(installation: Installation | None, reader: LogReader) -> list[HeldStream]:
    if installation is None or reader.kind == "local":
        return []
    return read_held(installation.local_log_path, reader.log_id)


def _waiting(installation: Installation | None, reader: LogReader, now: datetime) -> Waiting:
    if installation is None or reader.kind == "local":
        return Waiting(0, 0.0)
    return read_waiting(installation.local_log_path, reader.log_id, now)
