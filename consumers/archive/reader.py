"""An archive and the log behind it as one log: the beginning from files, the rest from the log."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path

from consumers.archive.belonging import check_last_records, check_reach
from consumers.archive.files import read_file
from consumers.archive.manifest import ArchivedFile, check_file, read_manifest
from consumers.errors import CuaProjectError, MismatchError
from consumers.log.reader import LastRecord, LogReader, LogRecord, TopicPartition


class ArchivedLogReader:
    """LogReader of a log whose beginning may only be in an archive. Not thread-safe.

    Archived offsets are read from the archive, later ones from the log. MismatchError when it is
    another log's archive, when the log was truncated or restored from an older state, when
    one of its files is missing or corrupt; CuaProjectError when neither has some offsets.
    """

    def __init__(self, log: LogReader, folder: Path) -> None:
        """Takes the log over: `close` closes it."""
        self._log = log
        self._folder = folder
        self._manifest = read_manifest(folder)
        if self._manifest.log_id not in {"", log.log_id}:
            message = (
                f"{folder} is the archive of the log {self._manifest.log_id}, but the configured"
                f" log is {log.log_id or 'still empty'}; name this log's archive"
            )
            raise MismatchError(message)
        self._ends = self._manifest.ends()
        self._archived: Iterator[LogRecord] | None = None
        self._then: dict[TopicPartition, int] = {}
        self._positions: dict[TopicPartition, int] = {}
        """While the archive is read."""
        self._checked: set[str] = set()
        check_reach(self._manifest, log, folder)
        check_last_records(self._manifest, log, folder)
        self._check_no_gap()

    def _check_no_gap(self) -> None:
        partitions = self._log.partitions()
        for at, first in self._log.beginning_offsets(partitions).items():
            if at in self._ends and self._ends[at] < first:
                message = (
                    f"the archive ends at offset {self._ends[at]} of {at.topic}/{at.partition}, but"
                    f" the log begins at {first}: the records between them were deleted before they"
                    " were archived"
                )
                raise CuaProjectError(message)

    @property
    def kind(self) -> str:
        """The log's."""
        return self._log.kind

    @property
    def log_id(self) -> str:
        """The log's, which is the archive's as well."""
        return self._log.log_id

    @property
    def problem(self) -> str | None:
        """The log's."""
        return self._log.problem

    def partitions(self) -> list[TopicPartition]:
        """The log's."""
        return self._log.partitions()

    def beginning_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """First offset that either has."""
        archived = self._manifest.beginnings()
        return {
            at: min(first, archived.get(at, first))
            for at, first in self._log.beginning_offsets(partitions).items()
        }

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The log's."""
        return self._log.end_offsets(partitions)

    def offsets_for_time(
        self, partitions: Sequence[TopicPartition], time: datetime
    ) -> dict[TopicPartition, int]:
        """First offset appended at or after `time`; the end if there is none."""
        found = self._log.offsets_for_time(partitions, time)
        for at in partitions:
            for file in self._manifest.files_of(at):
                if file.last_appended_at >= time:
                    found[at] = next(
                        record.offset
                        for record in self._read(file, 0)
                        if record.appended_at >= time
                    )
                    break
        return found

    def replaced(self, last: Mapping[TopicPartition, LastRecord]) -> dict[TopicPartition, datetime]:
        """The log's."""
        return self._log.replaced(last)

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions, from these offsets, and no others."""
        archived = {
            at: offset for at, offset in positions.items() if offset < self._ends.get(at, 0)
        }
        self._then = {
            at: self._ends[at] if at in archived else offset for at, offset in positions.items()
        }
        self._positions = dict(positions)
        if archived:
            self._archived = self._read_all(archived)
        else:
            self._archived = None
            self._log.seek(self._then)

    def positions(self) -> dict[TopicPartition, int]:
        """The next offsets to read; those of the log once the archive is read."""
        return self._log.positions() if self._archived is None else dict(self._positions)

    def poll(self, max_records: int, timeout_s: float) -> list[LogRecord]:
        """Up to `max_records` records; what is archived comes first."""
        if self._archived is not None:
            if records := list(islice(self._archived, max_records)):
                for record in records:
                    self._positions[TopicPartition(record.topic, record.partition)] = (
                        record.offset + 1
                    )
                return records
            self._archived = None
            self._log.seek(self._then)
        return self._log.poll(max_records, timeout_s)

    def _read_all(self, positions: Mapping[TopicPartition, int]) -> Iterator[LogRecord]:
        beginnings = self._manifest.beginnings()
        for at, offset in sorted(positions.items()):
            if offset < beginnings[at]:
                message = (
                    f"the archive of {at.topic}/{at.partition} begins at offset {beginnings[at]},"
                    f" not at {offset}: the records before it were deleted before they were"
                    " archived"
                )
                raise CuaProjectError(message)
            for file in self._manifest.files_of(at):
                if file.next_offset > offset:
                    yield from self._read(file, offset)

    def _read(self, file: ArchivedFile, first_offset: int) -> Iterator[LogRecord]:
        path = self._folder / file.path
        if file.path not in self._checked:
            path = check_file(self._folder, file)
            self._checked.add(file.path)
        return read_file(path, TopicPartition(file.topic, file.partition), first_offset)

    def close(self) -> None:
        """Release files and sockets. Idempotent."""
        self._archived = None
        self._log.close()
