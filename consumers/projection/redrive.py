"""Operators' decisions about held records: try them again, give them up, take that back.

Each is one short transaction after the other, which running projectors notice. Trying again folds a
stream's parked records as if they had just been read, some thousands at a time; until the last of
them is tried the stream stays parked, so that an interrupted command can be started again.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple
from uuid import uuid4

import psycopg2
from psycopg2.errors import LockNotAvailable

from consumers.database.blockers import lock_holders
from consumers.database.connection import Connection, Cursor
from consumers.database.lease import end_sessions_of_dead_holder
from consumers.errors import LimitExceededError, NotFoundError, UsageError
from consumers.fold.apply import Write
from consumers.fold.fold import Fold
from consumers.fold.held import Coordinates, Held, waiting_envelope
from consumers.fold.operator_drops import Drop, load_drops, store_drop, value_hash
from consumers.fold.parse import parse_record, stream_of_key
from consumers.fold.projectors.registry import catalogue_hash
from consumers.fold.stream import Stream
from consumers.projection.held_filter import HeldFilter
from consumers.projection.held_records import (
    PART_RECORDS,
    HeldSummary,
    Place,
    count_held,
    count_parked,
    find_held,
    held_page,
    next_nameless,
    next_parked,
    since_of_next,
    summary_of,
)
from consumers.projection.lock_watch import LockWatch
from consumers.projection.positions import read_state
from consumers.projection.savepoints import is_refused, write_singly
from consumers.projection.stored import load_streams, lookups
from consumers.projection.write import UnwritableError, batch_commands, execute

__all__ = ["HeldSummary", "Operator", "Redriven"]

BATCH_RECORDS = 1_000
"""Per transaction: projectors are held up for some tenths of a second."""
LIMIT_S = 30.0
"""How long another session's lock is waited for."""
REBUILD_SESSION = "cua-project rebuild merge"
"""It holds up whoever changes the tables while a rebuild compares and corrects them."""
OPERATOR_SETTINGS = {"lock_timeout": "3s", "idle_in_transaction_session_timeout": "10s"}
"""For an operator's session: it tries again until LIMIT_S, and one that is stopped ends."""


class Redriven(NamedTuple):
    """The result of trying again."""

    streams: int
    """Tried."""
    events: int
    """Applied."""
    still_parked: int
    """Records of these streams that are parked again."""


class _Batch(NamedTuple):
    """The result of one transaction."""

    events: int
    unfinished: list[str]
    """Streams with parked records that were not tried yet."""
    last: Coordinates | None = None


Decision = Callable[[Cursor, Write | None], _Batch]


def _nothing() -> None:
    pass


class Operator:
    """Decisions about one schema's held records. Not thread-safe.

    Raises LimitExceededError when another session's lock is not released in time and the connection
    has a lock_timeout. What is committed by then, or by an interruption, stays: try again.
    """

    def __init__(
        self,
        connection: Connection,
        schema: str,
        *,
        watch: LockWatch | None = None,
        limit_s: float = LIMIT_S,
        batch_records: int = BATCH_RECORDS,
    ) -> None:
        """`watch` names in errors who holds a lock; without it psycopg2's error is raised."""
        self.connection = connection
        self._schema = schema
        self._watch = watch
        self._limit_s = limit_s
        self._batch_records = batch_records

    def resolve(self, wanted: HeldFilter) -> HeldFilter:
        """The filter with the streams of its training, as pages and bulk decisions need it."""
        with self.connection, self.connection.cursor() as cursor:
            return wanted.resolved(cursor, self._schema)

    def held_pages(
        self, wanted: HeldFilter, limit: int | None = None
    ) -> Iterator[list[HeldSummary]]:
        """What is held, by offset, some at a time, each in a transaction of its own."""
        after: Place | None = None
        left = limit
        while left is None or left > 0:
            size = PART_RECORDS if left is None else min(left, PART_RECORDS)
            with self.connection, self.connection.cursor() as cursor:
                page, after = held_page(cursor, self._schema, wanted, after, size)
            yield page
            if after is None:
                return
            left = None if left is None else left - len(page)

    def count_held(self, wanted: HeldFilter) -> int:
        """How many records are held."""
        with self.connection, self.connection.cursor() as cursor:
            return count_held(cursor, self._schema, wanted).records

    def show(self, record_id: str) -> tuple[HeldSummary, bytes]:
        """A held record and its value. NotFoundError, UsageError."""
        with self.connection, self.connection.cursor() as cursor:
            held = find_held(cursor, self._schema, record_id)
        return summary_of(record_id, held), held.record.value

    def redrive(
        self, streams: Sequence[str] | None = None, after_batch: Callable[[], None] = _nothing
    ) -> Redriven:
        """Try parked records again: of these streams, or all. `after_batch`: after each commit."""
        with self.connection, self.connection.cursor() as cursor:
            parked = count_parked(cursor, self._schema, streams)
        num_events = 0
        for names in _chunks(parked, self._batch_records):
            unfinished = names
            while unfinished:
                tried = unfinished

                def decide(cursor: Cursor, write: Write | None, names: list[str] = tried) -> _Batch:
                    return self._retry_streams(cursor, names, write)

                batch = self._decide(decide)
                num_events += batch.events
                unfinished = batch.unfinished
                after_batch()
        if streams is None:
            num_events += self.redrive_nameless(after_batch)
        with self.connection, self.connection.cursor() as cursor:
            left = count_parked(cursor, self._schema, list(parked))
        return Redriven(len(parked), num_events, sum(left.values()))

    def redrive_nameless(self, after_batch: Callable[[], None] = _nothing) -> int:
        """A record that named no stream when it was read may name one to newer code."""
        num_events, after = 0, None
        while True:

            def decide(
                cursor: Cursor, write: Write | None, after: Coordinates | None = after
            ) -> _Batch:
                records = next_nameless(cursor, self._schema, after, self._batch_records)
                batch = self._retry(cursor, records, {}, write)
                last = records[-1].coordinates if records else None
                return batch._replace(last=last)

            batch = self._decide(decide)
            num_events += batch.events
            if (after := batch.last) is None:
                return num_events
            after_batch()

    def redrive_if_newer(self, after_batch: Callable[[], None] = _nothing) -> bool:
        """Redrive if this code knows other events than the last; whether it did."""
        with self.connection, self.connection.cursor() as cursor:
            if read_state(cursor, self._schema).catalogue_hash == catalogue_hash():
                return False
        self.redrive(after_batch=after_batch)
        with self.connection, self.connection.cursor() as cursor:
            cursor.execute(
                f'UPDATE "{self._schema}".projection SET catalogue_hash = %s', (catalogue_hash(),)
            )
        return True

    def drop_record(
        self, record_id: str, *, rest: bool, made_by: str, reason: str | None
    ) -> Redriven:
        """Drop a parked record, or with `rest` its stream from it on, and redrive the stream.

        NotFoundError, UsageError.
        """
        stream: str | None = None

        def decide(cursor: Cursor, _: Write | None) -> _Batch:
            nonlocal stream
            held = find_held(cursor, self._schema, record_id)
            stream = held.stream
            if held.held_as != "parked":
                message = (
                    f"{record_id} is {held.held_as}, not parked; to give up the gap that a stream"
                    " waits for, run `cua-project parked drop STREAM --gap`"
                )
                raise UsageError(message)
            if rest and stream is None:
                message = f"{record_id} names no stream, so it has no rest; drop it without --rest"
                raise UsageError(message)
            drop = Drop("rest" if rest else "record", stream, value_hash(held.record.value), None)
            store_drop(cursor, drop, made_by=made_by, reason=reason)
            return _Batch(0, [])

        self._decide(decide)
        if stream is None:
            return Redriven(0, self.redrive_nameless(), 0)
        return self.redrive([stream])

    def drop_gap(self, stream_name: str, *, made_by: str, reason: str | None) -> Redriven:
        """Give up the records that a stream waits for. NotFoundError, UsageError."""

        def decide(cursor: Cursor, write: Write | None) -> _Batch:
            names = [] if stream_of_key(stream_name) is None else [stream_name]
            stream = load_streams(cursor, self._schema, names).get(stream_name)
            if stream is not None and stream.parked_since is not None:
                message = (
                    f"{stream_name} is parked; redrive or drop its parked record first, then the"
                    " gap"
                )
                raise UsageError(message)
            if stream is None or not stream.waiting:
                message = (
                    f"{stream_name} waits for no gap; `cua-project parked list --as waiting` shows"
                    " the streams that do"
                )
                raise NotFoundError(message)
            first = min(
                stream.waiting, key=lambda held: (waiting_envelope(held).point, held.record.offset)
            )
            drop = Drop("gap", stream_name, value_hash(first.record.value), stream.position.point)
            store_drop(cursor, drop, made_by=made_by, reason=reason)
            fold = self._fold(cursor, {stream_name: stream}, [stream_name], write)
            num_events = fold.release(stream)
            execute(cursor, batch_commands(self._schema, fold.batch))
            return _Batch(num_events, [])

        events = self._decide(decide).events
        with self.connection, self.connection.cursor() as cursor:
            left = count_parked(cursor, self._schema, [stream_name])
            return Redriven(1, events, left.get(stream_name, 0))

    def exclusively(self, change: Callable[[Cursor], None]) -> None:
        """Change positions or streams in one transaction, which running projectors notice."""

        def decide(cursor: Cursor, _: Write | None) -> _Batch:
            change(cursor)
            return _Batch(0, [])

        self._decide(decide)

    def _retry_streams(self, cursor: Cursor, names: list[str], write: Write | None) -> _Batch:
        """Try the first parked records of these streams."""
        records = next_parked(cursor, self._schema, names, self._batch_records)
        if not records:
            return _Batch(0, [])
        tried = sorted({held.stream for held in records if held.stream is not None})
        last = tried[-1]
        num_of_last = sum(held.stream == last for held in records)
        since = since_of_next(cursor, self._schema, last, num_of_last)
        known = load_streams(cursor, self._schema, tried)
        for name in tried:
            known[name].parked_since = None

        def put_aside() -> list[str]:
            """Streams to go on with; what is left of the last one stays parked meanwhile."""
            untried = [name for name in names if name > last]
            if since is None or known[last].parked_since is not None:
                return untried
            if not known[last].abandoned:
                known[last].parked_since = since
            return [last, *untried]

        return self._retry(cursor, records, known, write, put_aside)

    def _retry(
        self,
        cursor: Cursor,
        records: Sequence[Held],
        known: dict[str, Stream],
        write: Write | None,
        put_aside: Callable[[], list[str]] = list,
    ) -> _Batch:
        # A record that named no stream when it was read may name one to newer code.
        named = {parse_record(held.record).stream for held in records}
        others = sorted(name for name in named if name is not None and name not in known)
        known |= load_streams(cursor, self._schema, others)
        fold = self._fold(cursor, known, [*known, *others], write)
        num_events = fold.retry(records)
        unfinished = put_aside()
        execute(cursor, batch_commands(self._schema, fold.batch))
        return _Batch(num_events, unfinished)

    def _fold(
        self, cursor: Cursor, streams: dict[str, Stream], names: Sequence[str], write: Write | None
    ) -> Fold:
        """`names`: of every stream that a record may be of."""
        log_id = read_state(cursor, self._schema).log_id or ""
        return Fold(
            streams,
            log_id=log_id,
            drops=load_drops(cursor, names),
            write=write,
            lookups=lookups(cursor, self._schema),
        )

    def _decide(self, decision: Decision) -> _Batch:
        """Decide in one transaction; a second time event by event if the database refuses a row."""
        began = time.monotonic()
        singly = False
        while True:
            try:
                return self._locked(decision, singly=singly)
            except LockNotAvailable:
                if self._watch is None:
                    raise
                self._wait(self._watch, time.monotonic() - began)
            except (psycopg2.Error, UnwritableError) as error:
                if singly or not is_refused(error):
                    raise
                singly = True

    def _wait(self, watch: LockWatch, waited_s: float) -> None:
        """LimitExceededError when that was long enough."""
        if end_sessions_of_dead_holder(self.connection) or waited_s < self._limit_s:
            return
        with self.connection, self.connection.cursor() as cursor:
            holders = lock_holders(cursor, self._schema)
        holders = [holder for holder in holders if holder.locked]
        rebuild = next((one for one in holders if one.application == REBUILD_SESSION), None)
        if rebuild is not None:
            message = (
                f"gave up after {waited_s:.0f} s: a rebuild is correcting the tables (process"
                f" {rebuild.pid}); run the same command again when it has ended"
            )
            raise LimitExceededError(message) from None
        named = ", ".join(map(str, holders))
        reason = watch.reason or (
            f"waiting for {named}" if named else "another session holds a lock on the tables"
        )
        message = (
            f"gave up after {waited_s:.0f} s, {reason}; end its transaction, then run the same"
            " command again"
        )
        raise LimitExceededError(message) from None

    def _locked(self, decision: Decision, *, singly: bool) -> _Batch:
        with self.connection, self.connection.cursor() as cursor:
            # Blocks the projectors' compare-and-set; the new build id makes them load again.
            cursor.execute(f'LOCK TABLE "{self._schema}".reader_position IN EXCLUSIVE MODE')
            result = decision(cursor, write_singly(cursor, self._schema) if singly else None)
            cursor.execute(f'UPDATE "{self._schema}".projection SET build_id = %s', (str(uuid4()),))
            return result


def _chunks(parked: Mapping[str, int], max_records: int) -> Iterator[list[str]]:
    """Streams, so that a chunk has at most as many parked records, or is one stream."""
    chunk: list[str] = []
    size = 0
    for name, count in parked.items():
        if chunk and size + count > max_records:
            yield chunk
            chunk, size = [], 0
        chunk.append(name)
        size += count
    if chunk:
        yield chunk
