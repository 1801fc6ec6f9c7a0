"""A log in memory, as strict as a real one.

A test double of LogReader whose records the test arranges itself.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from consumers.log.reader import LastRecord, LogRecord, TopicPartition
from schemas.catalogue import topic_of
from schemas.home import home_partition, name_sizes

BEGAN = datetime(2026, 3, 1, tzinfo=UTC)


class MemoryLog:
    """Partitions of records; appending gives offsets and times that never fall."""

    def __init__(self, log_id: str = "memory", num_partitions: int = 3) -> None:
        sizes = dict.fromkeys(("cua.training", "cua.rollouts"), num_partitions)
        self.log_id = log_id.partition(":")[0] + name_sizes(sizes)
        self.kind = "local"
        self.num_partitions = num_partitions
        self.records: list[LogRecord] = []
        """In the order of appending, all partitions."""
        self.first_kept: dict[TopicPartition, int] = {}
        """Where a partition begins, when its beginning was deleted."""
        self.began = BEGAN
        """Records are appended a millisecond after each other from then on."""

    def append(
        self,
        key: str | None,
        value: bytes,
        topic: str | None = None,
        partition: int | None = None,
    ) -> LogRecord:
        """One record; its topic and partition follow from the key, as far as it names a stream."""
        if topic is None:
            try:
                topic = topic_of(key or "", "cua.")
            except ValueError:
                topic = "cua.rollouts"
        if partition is None:
            partition = home_partition(key or "", self.num_partitions)
        last = next(
            (
                r.offset
                for r in reversed(self.records)
                if (r.topic, r.partition) == (topic, partition)
            ),
            -1,
        )
        offset = last + 1
        record = LogRecord(
            topic,
            partition,
            offset,
            key,
            value,
            self.began + timedelta(milliseconds=len(self.records)),
        )
        self.records.append(record)
        return record


class MemoryReader:
    """Reads a MemoryLog. `seek` must come before `poll`, and only to where the log is."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._wanted: dict[TopicPartition, int] | None = None
        self._next = 0
        self.is_closed = False

    @property
    def kind(self) -> str:
        """`local`."""
        return self._log.kind

    @property
    def log_id(self) -> str:
        """The log's name."""
        return self._log.log_id

    @property
    def problem(self) -> None:
        """Memory is always there."""
        return

    def partitions(self) -> list[TopicPartition]:
        """Every partition with a record."""
        return sorted(
            {TopicPartition(record.topic, record.partition) for record in self._log.records}
        )

    def beginning_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """As the test set them."""
        return {tp: self._log.first_kept.get(tp, 0) for tp in partitions}

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """After the last record."""
        found = dict.fromkeys(partitions, 0)
        for record in self._log.records:
            if (tp := TopicPartition(record.topic, record.partition)) in found:
                found[tp] = record.offset + 1
        return found

    def offsets_for_time(
        self, partitions: Sequence[TopicPartition], time: datetime
    ) -> dict[TopicPartition, int]:
        """First record at or after a time."""
        found = self.end_offsets(partitions)
        for record in reversed(self._log.records):
            if (
                record.appended_at >= time
                and (tp := TopicPartition(record.topic, record.partition)) in found
            ):
                found[tp] = record.offset
        return found

    def replaced(self, last: Mapping[TopicPartition, LastRecord]) -> dict[TopicPartition, datetime]:
        """Where another time is at the offset before."""
        times = {
            (record.topic, record.partition, record.offset): record.appended_at
            for record in self._log.records
        }
        found = {tp: times.get((*tp, one.next_offset - 1)) for tp, one in last.items()}
        return {tp: at for tp, at in found.items() if at not in {None, last[tp].appended_at} and at}

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        """From here on; never outside of the log."""
        ends = self.end_offsets(list(positions))
        assert all(
            self._log.first_kept.get(tp, 0) <= offset <= ends[tp]
            for tp, offset in positions.items()
        ), positions
        self._wanted = dict(positions)
        self._next = 0

    def positions(self) -> dict[TopicPartition, int]:
        """After what was returned."""
        return dict(self._wanted or {})

    def poll(self, max_records: int, timeout_s: float) -> list[LogRecord]:
        """What there is, at once; never before a seek."""
        assert self._wanted is not None, "poll before seek"
        assert max_records > 0
        assert timeout_s >= 0
        found: list[LogRecord] = []
        while self._next < len(self._log.records) and len(found) < max_records:
            record = self._log.records[self._next]
            self._next += 1
            tp = TopicPartition(record.topic, record.partition)
            if record.offset >= self._wanted.get(tp, record.offset + 1):
                self._wanted[tp] = record.offset + 1
                found.append(record)
        return found

    def close(self) -> None:
        """Remembered."""
        self.is_closed = True
