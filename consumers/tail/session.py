"""One run of `tail`: what to read, in which order, through which filter, onto which stream, remembered where."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from consumers.log.reader import LogReader, LogRecord, TopicPartition
from consumers.tail.cursor import Cursor
from consumers.tail.machine import Formatter
from consumers.tail.offsets import END, START, OffsetSpec, Span, resolve
from consumers.tail.reading import read_bounded, read_on
from consumers.tail.selection import EventFilter, Seen

WATCH_S = 0.2
"""Between looks for a log that does not exist yet."""
FLUSH_EVERY = 500


@dataclass(frozen=True, slots=True)
class Tail:
    """What the user asked for."""

    offset: OffsetSpec | None
    """None: everything there is; when following, what comes from now on."""
    limit: int | None
    """Records shown: the last ones of what there is, or the first ones from `offset`, a cursor or
    now on."""
    follow: bool
    selection: EventFilter
    is_wanted: Callable[[TopicPartition], bool]
    """By --topic and --partition."""


class TailSession:
    """Shows records. Positions move when a record was shown or passed over, and are saved only after the output was flushed."""

    def __init__(
        self, reader: LogReader, tail: Tail, render: Formatter, out: BinaryIO, cursor: Cursor | None
    ) -> None:
        self._reader = reader
        self._tail = tail
        self._render = render
        self._out = out
        self._cursor = cursor
        self._positions: dict[TopicPartition, int] = {}
        self._num_shown = 0
        self._has_waited = False

    def run(self) -> int:
        """Until the end, the limit or for ever; how many records were shown."""
        places = self._wait_for_places()
        if not places:
            if self._cursor is not None:
                self._cursor.load(self._reader.log_id)
            return 0
        saved = self._cursor.load(self._reader.log_id) if self._cursor is not None else None
        span = self._span(places, saved)
        self._positions = dict(span.starts)
        tail = self._tail
        try:
            if tail.follow:
                self._follow(span)
            elif tail.limit is not None and tail.offset is None and self._cursor is None:
                self._show_last(tail.limit, self._bounded(span))
            else:
                self._show(self._bounded(span))
        finally:
            self._save()
        return self._num_shown

    def _wait_for_places(self) -> list[TopicPartition]:
        while (
            not (
                places := [place for place in self._reader.places() if self._tail.is_wanted(place)]
            )
            and self._tail.follow
        ):
            self._has_waited = True
            time.sleep(WATCH_S)
        return places

    def _span(
        self, places: list[TopicPartition], saved: Mapping[TopicPartition, int] | None
    ) -> Span:
        if self._tail.offset is not None:
            spec = self._tail.offset
        else:
            # A log that appeared while we waited for it began after us; a cursor must not skip what
            # came before its first use.
            from_now_on = self._tail.follow and self._cursor is None and not self._has_waited
            spec = OffsetSpec(END if from_now_on else START, None)
        span = resolve(spec, self._reader, places)
        if saved is None:
            return span
        return Span(
            {place: saved.get(place, start) for place, start in span.starts.items()}, span.stops
        )

    def _bounded(self, span: Span) -> Iterator[LogRecord]:
        ends = self._reader.ends(list(span.starts))
        stops = (
            ends
            if span.stops is None
            else {place: min(stop, ends[place]) for place, stop in span.stops.items()}
        )
        return read_bounded(self._reader, span.starts, stops)

    def _follow(self, span: Span) -> None:
        left = (
            None
            if span.stops is None
            else {place for place, start in span.starts.items() if start < span.stops[place]}
        )
        for batch in read_on(self._reader, span.starts):
            if span.stops is not None and left is not None:
                stops = span.stops
                self._show(
                    record
                    for record in batch
                    if record.offset < stops[TopicPartition(record.topic, record.partition)]
                )
                left = {place for place in left if self._positions[place] < stops[place]}
            else:
                self._show(batch)
            if self._is_full() or left == set():
                return

    def _show(self, records: Iterable[LogRecord]) -> None:
        num_since_save = 0
        for record in records:
            seen = self._tail.selection.see(record)
            if seen is not None:
                self._print(seen)
            self._positions[TopicPartition(record.topic, record.partition)] = record.offset + 1
            num_since_save += 1
            if num_since_save >= FLUSH_EVERY:
                self._save()
                num_since_save = 0
            if self._is_full():
                break
        self._save()

    def _show_last(self, count: int, records: Iterable[LogRecord]) -> None:
        last = deque(
            (seen for record in records if (seen := self._tail.selection.see(record)) is not None),
            maxlen=count,
        )
        for seen in last:
            self._print(seen)

    def _print(self, seen: Seen) -> None:
        self._out.write(self._render(seen, self._num_shown))
        self._num_shown += 1

    def _is_full(self) -> bool:
        return self._tail.limit is not None and self._num_shown >= self._tail.limit

    def _save(self) -> None:
        self._out.flush()
        if self._cursor is not None:
            self._cursor.save(self._reader.log_id, self._positions)
