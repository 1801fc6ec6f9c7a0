"""Reads the log from its beginning and gives a tracker what it does not have yet."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from uuid import UUID

from consumers.fold.ordered_events import OrderedEvents
from consumers.fold.parse import parse_record
from consumers.log.reader import LogReader, LogRecord, TopicPartition
from consumers.log.until import read_until
from consumers.trackers.logged import Logged
from consumers.trackers.measurements import (
    Change,
    Measured,
    RunBegan,
    RunEnded,
    TrainingMeasurements,
)
from consumers.trackers.tracker import TrackedRun, Tracker
from schemas.catalogue import stream_kind
from schemas.event import Event

logger = logging.getLogger(__name__)

BATCH = 2_000
POLL_S = 0.25
PARTITIONS_EVERY_S = 5.0
"""Between looks for partitions that a topic did not have."""


@dataclass(slots=True)
class Mirrored:
    """What this process gave the tracker."""

    runs: set[str] = field(default_factory=set)
    measurements: int = 0


class Mirror:
    """Keeps one tracker up to date with the log. Not thread-safe."""

    def __init__(
        self,
        reader: LogReader,
        topic: str,
        tracker: Tracker,
        logged: Logged,
        *,
        trainings: Collection[UUID] = (),
    ) -> None:
        """`topic`: of trainings; `trainings`: only these, or all."""
        self.mirrored = Mirrored()
        self._reader = reader
        self._topic = topic
        self._tracker = tracker
        self._logged = logged
        self._trainings = frozenset(trainings)
        self._marks = tuple(str(training).encode() for training in trainings)
        self._ordered = OrderedEvents(reader.log_id)
        self._measurements: dict[UUID, TrainingMeasurements] = {}
        self._began: dict[str, TrackedRun] = {}
        self._open: set[str] = set()
        self._ends: Counter[str] = Counter()

    def run(self, is_wanted: Callable[[], bool], *, follow: bool) -> Mirrored:
        """Up to the log's end; with `follow` on from there while `is_wanted`, then to its end."""
        positions: dict[TopicPartition, int] = {}
        while True:
            # Asked first: what was appended before the answer is read below.
            goes_on = follow and is_wanted()
            partitions = [at for at in self._reader.partitions() if at.topic == self._topic]
            new = [at for at in partitions if at not in positions]
            positions |= self._reader.beginning_offsets(new)
            ends = self._reader.end_offsets(partitions)
            if not goes_on:
                self._read_to(positions, ends)
                return self.mirrored
            self._read_on(positions, is_wanted)

    def _read_to(
        self, positions: dict[TopicPartition, int], ends: dict[TopicPartition, int]
    ) -> None:
        for records in read_until(self._reader, positions, ends, BATCH):
            self._take(records)
        positions |= self._reader.positions()

    def _read_on(self, positions: dict[TopicPartition, int], is_wanted: Callable[[], bool]) -> None:
        """What is appended, until it is time to look for new partitions."""
        until_s = time.monotonic() + PARTITIONS_EVERY_S
        if not positions:
            time.sleep(POLL_S)
            return
        self._reader.seek(positions)
        while time.monotonic() < until_s and is_wanted():
            self._take(self._reader.poll(BATCH, POLL_S))
        positions |= self._reader.positions()

    def _take(self, records: list[LogRecord]) -> None:
        for record in records:
            if self._marks and not any(mark in record.value for mark in self._marks):
                continue
            parsed = parse_record(record, self._reader.log_id)
            for event in self._ordered.take(parsed):
                for change in self._changes(event):
                    self._apply(change)

    def _changes(self, event: Event) -> list[Change]:
        envelope = event.envelope
        training_id = envelope.training_id
        if stream_kind(envelope.subject) == "training":
            training_id = UUID(envelope.subject.partition("/")[2])
        if training_id is None or (self._trainings and training_id not in self._trainings):
            return []
        return self._measurements.setdefault(training_id, TrainingMeasurements()).take(event)

    def _apply(self, change: Change) -> None:
        run, logged = change.run, self._logged
        match change:
            case RunBegan():
                self._began[run.key] = run
                if run.key in self._open:
                    self._tracker.begin(run)
            case Measured(measurement=measurement):
                if not logged.has(run.key, measurement.name):
                    self._open_run(run)
                    self._tracker.log(run, measurement)
                    logged.add(run.key, measurement.name)
                    self.mirrored.measurements += 1
            case RunEnded(outcome=outcome, message=message):
                self._ends[run.key] += 1
                name = f"end-{self._ends[run.key]}"
                if not logged.has(run.key, name):
                    self._open_run(run)
                    self._tracker.end(run, outcome, message)
                    self._open.discard(run.key)
                    logged.add(run.key, name)

    def _open_run(self, run: TrackedRun) -> None:
        """Open a run when there is something to say of it: old ones are not touched again."""
        if run.key not in self._open:
            self._tracker.begin(self._began.get(run.key, run))
            self._open.add(run.key)
            self.mirrored.runs.add(run.key)
            logger.info("mirroring %s", run.display_name)
