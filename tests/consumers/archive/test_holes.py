"""Offsets without a record (markers of transactions) are covered by the files around them."""

from datetime import datetime
from pathlib import Path
from typing import cast

from consumers.archive.write import archive, check_archive
from consumers.log.local import LocalLogReader
from consumers.log.reader import LastRecord, LogReader, LogRecord, TopicPartition
from tests.reference_fold.histories import Shape
from tests.support.logs import logged_events, write_local_log


class WithHoles:
    """A reader whose log has an offset without a record before and after each record."""

    def __init__(self, log: LocalLogReader, spread: int) -> None:
        self._log, self._spread = log, spread

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    def end_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {at: end * self._spread for at, end in self._log.end_offsets(partitions).items()}

    def seek(self, positions: dict[TopicPartition, int]) -> None:
        self._pending: list[LogRecord] = []
        self._at = dict(positions)
        self._log.seek({at: offset // self._spread for at, offset in positions.items()})

    def replaced(self, last: dict[TopicPartition, LastRecord]) -> dict[TopicPartition, datetime]:
        return self._log.replaced(
            {
                at: LastRecord((one.next_offset - 1) // self._spread + 1, one.appended_at)
                for at, one in last.items()
                if (one.next_offset - 1) % self._spread == 1
            }
        )

    def positions(self) -> dict[TopicPartition, int]:
        return dict(self._at)

    def poll(self, max_records: int, timeout_s: float) -> list[LogRecord]:
        """First the position moves over holes alone, then a record comes."""
        del max_records
        if not self._pending:
            self._pending = self._log.poll(1, timeout_s)
            for record in self._pending:
                at = TopicPartition(record.topic, record.partition)
                self._at[at] = record.offset * self._spread + 1
            if self._pending:
                return []
            ends = self.end_offsets(list(self._at))
            self._at = {at: ends[at] for at in self._at}
            return []
        record = self._pending.pop()
        at = TopicPartition(record.topic, record.partition)
        offset = record.offset * self._spread + 1
        self._at[at] = offset + 1
        return [record._replace(offset=offset)]


def test_offsets_without_a_record_leave_no_hole_between_files_and_none_at_the_end(
    tmp_path: Path,
) -> None:
    events = logged_events("a", "b", shape=Shape(steps=1, groups=2, group_size=2, turns=2))
    path, folder = tmp_path / "log.sqlite3", tmp_path / "archive"
    for part in (events[:40], events[40:41], events[41:90]):
        write_local_log(path, part)
        log = LocalLogReader(path, topic_prefix="cua.")
        reader = cast("LogReader", WithHoles(log, 3))
        archive(reader, folder)
        ends = reader.end_offsets(reader.partitions())
        log.close()
        manifest = check_archive(folder)
        assert manifest.ends() == {at: end for at, end in ends.items() if end}
    assert sum(file.num_records for file in manifest.files) == 90
