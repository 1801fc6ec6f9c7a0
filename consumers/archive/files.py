"""Records as Parquet files: one file has a run of one partition's records."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from consumers.archive.manifest import ArchivedFile, file_hash, sync_folder
from consumers.log.reader import LogRecord, TopicPartition

RECORDS = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("appended_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("key", pa.string()),
        pa.field("value", pa.binary(), nullable=False),
    ]
)
"""Columns of an archived record; topic and partition are the file's."""
READ_ROWS = 2_000
"""Per batch when reading: bounds memory, since a turn's value is some kilobytes."""


class FileWriter:
    """One partition's file while it is written. Not thread-safe.

    It has a temporary name until `finish`; a killed process leaves that, and the next run replaces
    it. OSError when the disk fails.
    """

    def __init__(self, folder: Path, at: TopicPartition, first_offset: int) -> None:
        self.at = at
        self._folder = folder
        self._first_offset = first_offset
        self._path = folder / at.topic / str(at.partition) / f"{first_offset:020d}.parquet"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._temporary = self._path.with_suffix(".partial")
        self._file = self._temporary.open("wb")
        self._parquet = pq.ParquetWriter(self._file, RECORDS, compression="zstd")
        self._rows: list[LogRecord] = []
        self.buffered_bytes = 0
        """Of values not yet handed to Parquet."""
        self.num_bytes = 0
        """Of all values."""
        self.num_records = 0
        self._last: LogRecord | None = None

    def add(self, record: LogRecord) -> None:
        """The partition's next record."""
        self._rows.append(record)
        self.buffered_bytes += len(record.value)
        self.num_bytes += len(record.value)
        self.num_records += 1
        self._last = record

    def write_buffered(self) -> None:
        """One row group of what was added since the last."""
        if not self._rows:
            return
        columns = {
            "offset": [row.offset for row in self._rows],
            "appended_at": [row.appended_at for row in self._rows],
            "key": [row.key for row in self._rows],
            "value": [row.value for row in self._rows],
        }
        self._parquet.write_table(pa.Table.from_pydict(columns, schema=RECORDS))
        self._rows = []
        self.buffered_bytes = 0

    def finish(self, next_offset: int) -> ArchivedFile:
        """Close and name the file, durable on return; its entry in the manifest.

        `next_offset`: up to where the log was read.
        """
        self.write_buffered()
        self._parquet.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._temporary.replace(self._path)
        sync_folder(self._path.parent)
        assert self._last is not None  # noqa: S101  # a file is opened for a record
        return ArchivedFile(
            path=self._path.relative_to(self._folder).as_posix(),
            topic=self.at.topic,
            partition=self.at.partition,
            first_offset=self._first_offset,
            next_offset=next_offset,
            num_records=self.num_records,
            last_appended_at=self._last.appended_at,
            num_bytes=self._path.stat().st_size,
            sha256=file_hash(self._path),
        )

    def discard(self) -> None:
        """Close and remove the unfinished file, also on a full disk. Idempotent."""
        try:
            self._parquet.close()
        except (OSError, ValueError):
            # Or its finaliser would try again, and print a traceback.
            self._parquet.is_open = False
        with contextlib.suppress(OSError):
            self._file.close()
        self._temporary.unlink(missing_ok=True)


def read_file(path: Path, at: TopicPartition, first_offset: int) -> Iterator[LogRecord]:
    """A file's records from an offset on."""
    with pq.ParquetFile(path) as parquet:
        for batch in parquet.iter_batches(READ_ROWS):
            columns = (batch.column(name).to_pylist() for name in RECORDS.names)
            for offset, appended_at, key, value in zip(*columns, strict=True):
                if offset >= first_offset:
                    yield LogRecord(*at, offset, key, value, appended_at)
