"""Whether an archive is one of the log as it is now, not of one that was restored since."""

from pathlib import Path

from consumers.archive.manifest import Manifest
from consumers.errors import MismatchError
from consumers.log.reader import LastRecord, LogReader, TopicPartition
from consumers.log.replaced import first_replaced


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
    last = {
        TopicPartition(file.topic, file.partition): LastRecord(
            file.next_offset, file.last_appended_at
        )
        for file in manifest.files
    }
    if (one := first_replaced(last, log)) is not None:
        message = (
            f"the archive {folder} has offset {one.offset} of {one.partition} as appended at"
            f" {one.read_time}, but what the log has there was appended at {one.found_time}: the"
            " log was restored from an older state, and has grown since. Name another archive"
        )
        raise MismatchError(message)
