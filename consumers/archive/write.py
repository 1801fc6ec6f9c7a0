"""Copies the log into an archive: everything between the archive's end and the log's end now."""

import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from consumers.archive.belonging import check_last_records, check_reach
from consumers.archive.files import FileWriter
from consumers.archive.manifest import (
    NAME,
    ArchivedFile,
    Manifest,
    check_file,
    read_manifest,
    write_manifest,
)
from consumers.errors import CuaProjectError, MismatchError, UsageError
from consumers.log.reader import LogReader, TopicPartition
from consumers.log.until import read_until
from schemas.home import describe_growth

POLL_RECORDS = 2_000
ROW_GROUP_BYTES = 4 << 20
FILE_BYTES = 256 << 20
"""Of values, before compression; then the partition's next file begins."""
BUFFER_BYTES = 64 << 20
"""Of all partitions together."""


class ArchiveReport(NamedTuple):
    """What a run copied."""

    events: int
    """Records copied now."""
    files: int
    """Files written now."""
    seconds: float
    log_id: str
    positions: dict[TopicPartition, int]
    """Offset after the last archived record of every partition."""


def archive(reader: LogReader, folder: Path) -> ArchiveReport:
    """Create or extend the archive in `folder`.

    What a killed run has finished stays; the next run goes on from there. UsageError when the
    folder has other things in it; MismatchError when it is another log's archive, or the log was
    restored from an older state; CuaProjectError when the log has lost records that were not
    archived, or another run is writing.
    """
    began = time.monotonic()
    _check_folder(folder)
    try:
        with FileLock(folder / ".lock", timeout=0):
            writer = _ArchiveWriter(reader, folder, _open_manifest(reader, folder))
            with writer:
                num_records, num_files = writer.copy()
    except Timeout:
        message = f"another process is writing the archive {folder}; retry when it finishes"
        raise CuaProjectError(message) from None
    return ArchiveReport(
        num_records,
        num_files,
        time.monotonic() - began,
        writer.manifest.log_id,
        writer.manifest.ends(),
    )


def check_archive(folder: Path) -> Manifest:
    """Read every file of the archive and compare its hash. UsageError, MismatchError."""
    manifest = read_manifest(folder)
    for file in manifest.files:
        check_file(folder, file)
    return manifest


def _check_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        others = [path.name for path in folder.iterdir() if path.name != ".lock"]
    except OSError as error:
        message = f"the archive's folder {folder} cannot be used: {error.strerror}"
        raise UsageError(message) from None
    if others and NAME not in others and f"{NAME}.new" not in others:
        message = f"{folder} is not empty and no archive (it has {others[0]}); name a new folder"
        raise UsageError(message)


def _open_manifest(reader: LogReader, folder: Path) -> Manifest:
    log_id = reader.log_id
    manifest = read_manifest(folder) if (folder / NAME).exists() else Manifest(log_id="")
    if not manifest.log_id:
        # A new archive, or one of a log that was empty.
        manifest = Manifest(log_id=log_id)
        write_manifest(folder, manifest)
    if (problem := describe_growth(manifest.log_id, log_id)) is not None:
        raise MismatchError(problem)
    if manifest.log_id != log_id:
        message = (
            f"{folder} is the archive of the log {manifest.log_id}, but the configured log is"
            f" {log_id or 'still empty'}; name another folder for this log"
        )
        raise MismatchError(message)
    check_reach(manifest, reader, folder)
    check_last_records(manifest, reader, folder)
    return manifest


class _ArchiveWriter:
    """Copies partitions into their files. A context manager; leaves no unfinished file behind."""

    def __init__(self, reader: LogReader, folder: Path, manifest: Manifest) -> None:
        self.manifest = manifest
        self._reader = reader
        self._folder = folder
        self._files: dict[TopicPartition, FileWriter] = {}
        self._positions: dict[TopicPartition, int] = {}
        """Up to where the log was read."""
        self._archived: dict[TopicPartition, int] = {}
        """Up to where finished files have it; the next file begins there, holes included."""
        self._num_files = 0

    def __enter__(self) -> "_ArchiveWriter":
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as closers:
            for file in self._files.values():
                closers.callback(file.discard)

    def copy(self) -> tuple[int, int]:
        """Copy up to the log's end at the call; (records, files)."""
        partitions = self._reader.partitions()
        until = self._reader.end_offsets(partitions)
        self._positions = self._start(partitions)
        self._archived = dict(self._positions)
        num_records = 0
        for records in read_until(self._reader, self._positions, until, POLL_RECORDS):
            for record in records:
                at = TopicPartition(record.topic, record.partition)
                file = self._files.get(at)
                if file is None:
                    file = self._files[at] = FileWriter(self._folder, at, self._archived[at])
                file.add(record)
                num_records += 1
                self._positions[at] = record.offset + 1
                if file.num_bytes >= FILE_BYTES:
                    self._finish([at])
            for at, offset in self._reader.positions().items():
                # The last offsets may hold no record (transaction markers).
                self._positions[at] = max(self._positions[at], min(offset, until[at]))
            self._write_buffered()
        self._finish(list(self._files))
        self._extend_over_holes()
        return num_records, self._num_files

    def _extend_over_holes(self) -> None:
        """Offsets at a partition's end that hold no record belong to its last file."""
        extended = self.manifest.extended_to(self._positions)
        if extended != self.manifest:
            self.manifest = extended
            write_manifest(self._folder, self.manifest)

    def _start(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Where each partition's next file begins."""
        beginnings = self._reader.beginning_offsets(partitions)
        ends = self.manifest.ends()
        for at, end in ends.items():
            if beginnings.get(at, 0) > end:
                message = (
                    f"{at.topic}/{at.partition} begins at offset {beginnings[at]}, but the archive"
                    f" ends at {end}: records were deleted before they were archived. Start a new"
                    " archive in another folder"
                )
                raise CuaProjectError(message)
        return {at: ends.get(at, beginnings[at]) for at in partitions}

    def _write_buffered(self) -> None:
        """Write full row groups, and the largest ones while the buffers hold too much."""
        total = sum(file.buffered_bytes for file in self._files.values())
        by_size = sorted(self._files.values(), key=lambda file: -file.buffered_bytes)
        for file in by_size:
            if file.buffered_bytes < ROW_GROUP_BYTES and total <= BUFFER_BYTES:
                return
            total -= file.buffered_bytes
            file.write_buffered()

    def _finish(self, partitions: list[TopicPartition]) -> None:
        finished: list[ArchivedFile] = []
        for at in partitions:
            finished.append(self._files[at].finish(self._positions[at]))
            self._archived[at] = self._positions[at]
            del self._files[at]
        if finished:
            self._num_files += len(finished)
            self.manifest = self.manifest.extended(finished)
            write_manifest(self._folder, self.manifest)
