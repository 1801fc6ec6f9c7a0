"""A reader of the local log that counts what is read through it."""

from collections.abc import Iterator, Mapping

from consumers.log.local import LocalLogReader
from consumers.log.reader import LogRecord, TopicPartition
from schemas.local_index import Places


class CountingReader(LocalLogReader):
    """Counts every record that it gives, in whatever way it is asked."""

    num_records = 0

    def poll(self, max_records: int, timeout_s: float) -> list[LogRecord]:
        """As the reader's."""
        found = super().poll(max_records, timeout_s)
        self.num_records += len(found)
        return found

    def newest_first(
        self,
        starts: Mapping[TopicPartition, int],
        stops: Mapping[TopicPartition, int],
        places: Places | None = None,
    ) -> Iterator[LogRecord]:
        """As the reader's."""
        yield from self._counted(super().newest_first(starts, stops, places))

    def oldest_first(
        self,
        starts: Mapping[TopicPartition, int],
        stops: Mapping[TopicPartition, int],
        places: Places | None = None,
    ) -> Iterator[LogRecord]:
        """As the reader's."""
        yield from self._counted(super().oldest_first(starts, stops, places))

    def _counted(self, records: Iterator[LogRecord]) -> Iterator[LogRecord]:
        for record in records:
            self.num_records += 1
            yield record
