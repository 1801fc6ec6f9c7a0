"""Bounds what a consumer of kafka-python decodes: a batch's size, and the bytes of one poll.

kafka-python bounds a poll by the number of records alone, whose sizes others choose, and ends in an
error at a batch that it cannot decode. Imports no kafka.
"""

from collections.abc import Iterator
from itertools import dropwhile
from typing import Any

from schemas.kafka_batches import FORMAT, KafkaRecord, last_offset, read_batch

POLL_BYTES = 32 << 20
"""Keys and values that a poll returns, but for its last record: a batch at its largest."""


class Ration:
    """Bytes that may still be decoded in this poll."""

    def __init__(self) -> None:
        """Nothing yet: `renew` first."""
        self.left = 0

    def renew(self) -> None:
        """For the next poll."""
        self.left = POLL_BYTES


class _Rationed:
    """An iterator that pauses (StopIteration) while the ration is spent."""

    def __init__(self, records: Iterator[KafkaRecord], ration: Ration) -> None:
        self._records = records
        self._ration = ration

    def __iter__(self) -> "_Rationed":
        return self

    def __next__(self) -> KafkaRecord:
        ration = self._ration
        if ration.left <= 0:
            raise StopIteration
        record = next(self._records)
        ration.left -= len(record.key or b"") + len(record.value or b"")
        return record


def bound(consumer: Any) -> None:
    """Let this consumer's `poll` return KafkaRecords within the bounds.

    It overrides how kafka-python's fetcher decodes what it fetched, on this one object: none of its
    settings does that.
    """
    fetcher = consumer._fetcher
    ration = Ration()
    make, append, fetched = fetcher.PartitionRecords, fetcher._append, fetcher.fetched_records

    def partition_records(fetch_offset: int, at: Any, batches: Any, **settings: Any) -> Any:
        part = make(fetch_offset, at, batches, **settings)
        records = dropwhile(lambda record: record.offset < fetch_offset, _unpack(part, batches))
        part.record_iterator = _Rationed(records, ration)
        return part

    def append_within(drained: Any, part: Any, max_records: int, *settings: Any) -> int:
        taken = append(drained, part, max_records, *settings)
        # What is left to take is counted in records: none.
        return int(taken) if ration.left > 0 else max_records

    def fetched_within(*arguments: Any, **settings: Any) -> Any:
        ration.renew()
        return fetched(*arguments, **settings)

    fetcher.PartitionRecords = partition_records
    fetcher._append = append_within
    fetcher.fetched_records = fetched_within


def _unpack(part: Any, batches: Any) -> Iterator[KafkaRecord]:
    """The records of a fetched partition, keeping kafka-python's account of where it is."""
    while (batch := batches.next_batch()) is not None:
        if batch.magic >= FORMAT:
            part.leader_epoch = batch.leader_epoch
        if batch.magic < FORMAT or not batch.is_control_batch:
            for record in read_batch(batch):
                part.records_read += 1
                part.bytes_read += len(record.value or b"")
                part.next_fetch_offset = record.offset + 1
                yield record
        part.next_fetch_offset = last_offset(batch) + 1
    part.drain()
