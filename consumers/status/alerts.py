"""Reasons for an alert: tables behind, trainings stale, records parked."""

from collections.abc import Sequence
from datetime import timedelta

from consumers.console import format_age
from consumers.status.read import ProjectionStatus

NUM_NAMED = 5
"""Trainings or streams that one reason names."""


def alerts(status: ProjectionStatus, max_lag: timedelta) -> list[str]:
    """One sentence per reason; none when all is well."""
    found = []
    if status.needs_rebuild:
        found.append(
            "behind: the tables were filled by another version of cua-train; run `cua-project"
            " rebuild`"
        )
    if status.lag_events and status.lag_seconds > max_lag.total_seconds():
        found.append(
            f"behind: {status.lag_events:,} events, the oldest appended"
            f" {format_age(status.lag_seconds)}; {_projector(status)}"
        )
    if stale := [training.run_name for training in status.trainings if training.stale]:
        found.append(
            f"stale: no heartbeat from {_names(stale)}; if its process has died, run the same"
            " `cua-train run` command again; if it has ended without Kafka, run `cua-project ship`"
            " on its host"
        )
    if status.unapplied.parked:
        named = [training.run_name for training in status.trainings if training.parked]
        among = f", among them some of {_names(named)}" if named else ""
        found.append(
            f"parked: {status.unapplied.parked:,} records{among}; see `cua-project parked list`"
        )
    if gone := [partition for partition in status.partitions if partition.num_gone]:
        number = sum(partition.num_gone for partition in gone)
        found.append(
            f"gone: {number:,} records of {_names([f'{at.topic}/{at.partition}' for at in gone])}"
            " were deleted before they were projected; set the topics' retention to -1, and rebuild"
            " from an archive that has them: `cua-project rebuild --archive`"
        )
    if (gaps := status.gaps).total and status.gap_seconds > max_lag.total_seconds():
        found.append(
            f"waiting: {gaps.describe()}, the oldest appended {format_age(status.gap_seconds)};"
            f" `cua-project ship` on the"
            f" trainers' hosts sends what is left there, and `cua-project doctor` says whether"
            f" {' or '.join(gaps.topics)} is compacted or deletes records; `cua-project parked drop"
            " STREAM --gap` goes on without them"
        )
    held_records = sum(item.num_records for item in status.held_in_spool)
    late = max_lag.total_seconds()
    if (number := status.waiting.num_records - held_records) > 0 and status.waiting.seconds > late:
        found.append(
            f"not sent: {number:,} events wait in this home's spool, the oldest appended"
            f" {format_age(status.waiting.seconds)}; `cua-project ship` sends them, or a trainer or"
            " `cua-project up` of this home"
        )
    if held := status.held_in_spool:
        streams = _names([item.stream for item in held])
        topics = ", ".join(sorted({item.topic for item in held}))
        found.append(
            f"not sent: {held_records:,} records of {streams} wait in this"
            f" home's spool, because one is larger than the topic takes ({topics}); raise its"
            " max.message.bytes"
        )
    return found


def _projector(status: ProjectionStatus) -> str:
    projector = status.projector
    if projector.holder is None:
        return "no projector is running: start `cua-project run`"
    if projector.last_error:
        return f"{projector.holder} projects, its last error: {projector.last_error}"
    return f"{projector.holder} projects"


def _names(names: Sequence[str]) -> str:
    listed = ", ".join(names[:NUM_NAMED])
    rest = len(names) - NUM_NAMED
    return f"{listed} and {rest} more" if rest > 0 else listed
