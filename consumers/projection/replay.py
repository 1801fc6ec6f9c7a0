"""Fills a side schema from the log, to exact positions.

The live projection's own code, with larger batches and no lease.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import Self
from uuid import UUID

from consumers.database.connection import connect
from consumers.errors import CuaProjectError, UnreachableError
from consumers.fold.fold import EVERYTHING, ReplayFilter, parse_record
from consumers.log.reader import LogReader, TopicPartition
from consumers.projection.pipeline import Pipeline
from consumers.projection.positions import Positions, start_positions
from consumers.projection.schema import ProjectedSchema

BATCH_RECORDS = 20_000
POLL_S = 1.0
SILENCE_LIMIT_S = 60.0
"""A log that gives nothing for so long although it has more is taken for unreachable."""


def of_training(training: UUID) -> ReplayFilter:
    """The records of one training alone."""
    return ReplayFilter(
        wanted=lambda parsed: (
            parsed.envelope is not None and parsed.envelope.training_id == training
        )
    )


class Replay:
    """One side schema being filled. Not thread-safe; use as a context manager, or `close`."""

    def __init__(
        self, reader: LogReader, url: str, schema: str, replay_filter: ReplayFilter = EVERYTHING
    ) -> None:
        """The schema exists; it may be filled in part already."""
        self._reader = reader
        self._connection = connect(url, f"fill {schema}")
        self._lookups = connect(url, f"fill {schema}, lookups")
        self._lookups.autocommit = True
        self._target = ProjectedSchema(self._connection, schema, reader.log_id, replay_filter)
        self._target.load()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    @property
    def positions(self) -> Positions:
        """Up to where it is filled."""
        return self._target.positions

    @property
    def num_events(self) -> int:
        """Events applied so far."""
        return self._target.num_events

    def refresh(self) -> None:
        """Somebody else has filled it further."""
        self._target.load()

    def lag(self, until: Mapping[TopicPartition, int]) -> int:
        """Records between here and there."""
        return _lag(self.positions, until)

    def advance(self, until: Mapping[TopicPartition, int]) -> None:
        """Apply everything before these positions and nothing after.

        CuaProjectError when the log lacks its beginning.
        """
        starts = start_positions(self.positions, self._reader)
        behind = {
            place: starts[place]
            for place, end in until.items()
            if end > self.positions.get(place, 0)
        }
        if not behind:
            return
        self._reader.seek(behind)
        silence_s = 0.0
        with Pipeline(self._target, self._lookups) as pipeline:
            while (left := _lag(self._target.ahead, until)) > 0:
                records = self._reader.poll(BATCH_RECORDS, POLL_S)
                silence_s = 0.0 if records else silence_s + POLL_S
                if silence_s > SILENCE_LIMIT_S:
                    message = (
                        f"expected {left} more records, found none for {SILENCE_LIMIT_S:.0f} s; is"
                        " the log reachable?"
                    )
                    raise UnreachableError(message)
                wanted = [
                    record
                    for record in records
                    if record.offset < until[TopicPartition(record.topic, record.partition)]
                ]
                if wanted:
                    pipeline.send([parse_record(record) for record in wanted])
            pipeline.settle()

    def close(self) -> None:
        """Close its connections; twice is once."""
        self._connection.close()
        self._lookups.close()


def _lag(positions: Mapping[TopicPartition, int], until: Mapping[TopicPartition, int]) -> int:
    return sum(max(0, end - positions.get(place, 0)) for place, end in until.items())


def check_beginning(reader: LogReader) -> None:
    """CuaProjectError when the log's first records are gone.

    Tables made of the rest would not be the tables.
    """
    for place, first in sorted(reader.beginnings(reader.places()).items()):
        if first > 0:
            message = (
                f"expected the log from its first record, found {place.topic}/{place.partition} to"
                f" begin at offset {first}: records were deleted, and what remains gives other"
                " tables"
            )
            raise CuaProjectError(message)
