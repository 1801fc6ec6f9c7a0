"""One run of `tail`: reads the requested span, filters and prints records, and saves the cursor."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

from consumers.errors import MismatchError
from consumers.log.reader import LogReader, LogRecord, TopicPartition
from consumers.tail.cursor import Cursor
from consumers.tail.event_filter import DecodedRecord, EventFilter, decode
from consumers.tail.formats import Formatter
from consumers.tail.offsets import END, START, OffsetSpec, Span, resolve
from consumers.tail.output import Output
from consumers.tail.reading import read_bounded, read_newest_first, read_on
from consumers.tail.stop import Stop

logger = logging.getLogger(__name__)

WATCH_S = 0.2
"""Between checks for a log that does not exist yet."""
SAVE_EVERY = 500
"""Records between two saves of the cursor."""


@dataclass(frozen=True, slots=True)
class TailRequest:
    """The options of one run."""

    offset: OffsetSpec | None
    """None: from the beginning; with `follow` and without a cursor, from the end."""
    limit: int | None
    """Records to print: the last ones, or with `offset`, `follow` or a cursor the first ones."""
    follow: bool
    event_filter: EventFilter
    is_wanted: Callable[[TopicPartition], bool]
    """Whether --topic and --partition include a partition."""


class TailSession:
    """Prints records. A position advances past each record that was printed or filtered out.

    The cursor names what its reader got when the run ends by itself or by a signal. At least once:
    when the reader went away, or after SIGKILL, what was printed last may be printed again.
    """

    def __init__(
        self,
        reader: LogReader,
        request: TailRequest,
        render: Formatter,
        out: BinaryIO,
        cursor: Cursor | None,
        stop: Stop | None = None,
    ) -> None:
        """`stop`: handles the signals that end it; None: they are not handled."""
        self._reader = reader
        self._request = request
        self._render = render
        self._stop = stop or Stop()
        self._out = Output(out, self._stop)
        self._cursor = cursor
        self._positions: dict[TopicPartition, int] = {}
        self._num_printed = 0
        self._has_waited = False

    def run(self) -> int:
        """Print until the end or the limit, or for ever; returns the number of records printed."""
        partitions = self._wait_for_places()
        if not partitions:
            if self._cursor is not None:
                self._cursor.load(self._reader.log_id)
            return 0
        saved = self._cursor.load(self._reader.log_id) if self._cursor is not None else None
        if saved is not None:
            self._check_ends(partitions, saved)
        span = self._span(partitions, saved)
        self._positions = dict(span.starts)
        self._out.begin(span.starts)
        request = self._request
        try:
            if request.follow:
                self._follow(span)
            elif request.limit is not None and request.offset is None and self._cursor is None:
                self._print_last(request.limit, span)
            else:
                self._print_span(span)
            self._stop.hold()
            self._out.flush()
        finally:
            self._stop.hold()
            self._save()
        self._stop.release()
        return self._num_printed

    def _wait_for_places(self) -> list[TopicPartition]:
        while (
            not (
                partitions := [
                    tp for tp in self._reader.partitions() if self._request.is_wanted(tp)
                ]
            )
            and self._request.follow
        ):
            self._has_waited = True
            time.sleep(WATCH_S)
        return partitions

    def _check_ends(
        self, partitions: list[TopicPartition], saved: Mapping[TopicPartition, int]
    ) -> None:
        for tp, end in self._reader.end_offsets(partitions).items():
            if saved.get(tp, 0) > end:
                message = (
                    f"the cursor is at offset {saved[tp]} of {tp.topic}/{tp.partition}, which ends"
                    f" at {end}: the log was replaced by an older copy; name another file"
                )
                raise MismatchError(message)

    def _span(
        self, partitions: list[TopicPartition], saved: Mapping[TopicPartition, int] | None
    ) -> Span:
        if self._request.offset is not None:
            spec = self._request.offset
        else:
            # A log that appeared while we waited is new as a whole, and a new cursor must not skip
            # records from before its first use.
            from_now_on = self._request.follow and self._cursor is None and not self._has_waited
            spec = OffsetSpec(END if from_now_on else START, None)
        span = resolve(spec, self._reader, partitions)
        if saved is None:
            return span
        return Span({tp: saved.get(tp, start) for tp, start in span.starts.items()}, span.stops)

    def _print_span(self, span: Span) -> None:
        stops = self._stops(span)
        places = self._request.event_filter.places()
        self._print_all(read_bounded(self._reader, span.starts, stops, places))
        if self._is_full():
            return
        # Nothing wanted is between the last record that was read and the end.
        for tp, start in span.starts.items():
            self._out.skip(tp, max(start, stops[tp]))

    def _stops(self, span: Span) -> dict[TopicPartition, int]:
        ends = self._reader.end_offsets(list(span.starts))
        if span.stops is None:
            return ends
        return {tp: min(stop, ends[tp]) for tp, stop in span.stops.items()}

    def _follow(self, span: Span) -> None:
        unfinished = (
            None
            if span.stops is None
            else {tp for tp, start in span.starts.items() if start < span.stops[tp]}
        )
        problem = None
        for batch in read_on(self._reader, span.starts):
            if (self._reader.problem is None) != (problem is None):
                problem = self._reader.problem
                logger.warning(
                    "%s",
                    "the log answers again" if problem is None else f"{problem} Still waiting",
                )
            if span.stops is not None and unfinished is not None:
                stops = span.stops
                self._print_all(
                    record
                    for record in batch
                    if record.offset < stops[TopicPartition(record.topic, record.partition)]
                )
                unfinished = {tp for tp in unfinished if self._positions[tp] < stops[tp]}
            else:
                self._print_all(batch)
            if self._is_full() or unfinished == set():
                return

    def _print_all(self, records: Iterable[LogRecord]) -> None:
        num_since_save = 0
        for record in records:
            decoded = decode(record)
            self._stop.hold()
            if self._request.event_filter.apply(decoded):
                self._print(decoded)
            else:
                self._out.skip(TopicPartition(record.topic, record.partition), record.offset + 1)
            self._positions[TopicPartition(record.topic, record.partition)] = record.offset + 1
            num_since_save += 1
            if num_since_save >= SAVE_EVERY:
                self._out.flush()
                self._save()
                num_since_save = 0
            self._stop.release()
            if self._is_full():
                break
        self._stop.hold()
        self._out.flush()
        self._save()
        self._stop.release()

    def _print_last(self, count: int, span: Span) -> None:
        event_filter = self._request.event_filter
        records = read_newest_first(
            self._reader, span.starts, self._stops(span), event_filter.places()
        )
        wanted = filter(event_filter.apply, map(decode, records))
        for decoded in reversed(list(islice(wanted, count))):
            self._print(decoded)

    def _print(self, decoded: DecodedRecord) -> None:
        record = decoded.record
        content = self._render(decoded, self._num_printed)
        self._num_printed += 1
        self._out.print(content, TopicPartition(record.topic, record.partition), record.offset + 1)

    def _is_full(self) -> bool:
        return self._request.limit is not None and self._num_printed >= self._request.limit

    def _save(self) -> None:
        if self._cursor is not None:
            self._cursor.save(self._reader.log_id, self._out.printed())
