"""Whether an archive is one of the log as it is now, not of one that was restored since."""

from datetime import UTC, datetime
from pathlib import Path

from consumers.archive.manifest import Manifest
from consumers.errors import MismatchError
from consumers.log.reader import LastRecord, LogReader, TopicPartition


def check_reach(manifest: Manifest, log: LogReader, folder: Path) -> None:
    """MismatchError when the log ends before the archive."""
    archived = manifest.ends()
    log_ends = log.end_offsets(log.partitions())
    for at, end in sorted(archived.items()):
        if end > log_ends.get(at, 0):
            message = (
                f"the archive {folder} has {at.topic}/{at.partition} up to offset {end}, but the"
                f" log ends at {log_ends.get(at, 0)}: the log was truncated, or restored from an"
                " older state. Name another archive"
            )
            raise MismatchError(message)


def check_last_records(manifest: Manifest, log: LogReader, folder: Path) -> None:
    """MismatchError when the log has others in the place of the last archived records.

    It was restored from an older state, and has grown since: its offsets mean other records.
    """
    partitions = set(log.partitions())
    last = {
        at: LastRecord(file.next_offset, file.last_appended_at)
        for file in manifest.files
        if (at := TopicPartition(file.topic, file.partition)) in partitions
    }
    for at, appended_at in sorted(log.replaced(last).items())[:1]:
        message = (
            f"the archive {folder} has offset {last[at].next_offset - 1} of"
            f" {at.topic}/{at.partition} as appended at {_text(last[at].appended_at)}, but what the"
            f" log has there was appended at {_text(appended_at)}: the log was restored from an"
            " older state, and has grown since. Name another archive"
        )
        raise MismatchError(message)


def _text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")
