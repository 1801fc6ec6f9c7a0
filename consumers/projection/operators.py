"""Records that are not applied, for operators: listed, shown, and the parked ones tried again.

Trying again is one short transaction after the other, which running projectors notice; until the
last record of a stream is tried it stays parked, so that an interrupted command can be started
again. What operators drop is not decided here but in the log (`decisions`).
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple
from uuid import uuid4

import psycopg2
from psycopg2.errors import LockNotAvailable

from consumers.database.blockers import lock_holders
from consumers.database.connection import Connection, Cursor
from consumers.errors import LimitExceededError
from consumers.fold.apply import Write
from consumers.fold.projectors.registry import catalogue_hash
from consumers.projection.lock_watch import LockWatch
from consumers.projection.positions import read_state
from consumers.projection.retry import BATCH_RECORDS, Retried, retry_part
from consumers.projection.savepoints import is_refused, write_singly
from consumers.projection.unapplied_filter import UnappliedFilter
from consumers.projection.unapplied_records import (
    PART_RECORDS,
    Place,
    UnappliedCount,
    UnappliedSummary,
    count_parked,
    count_unapplied,
    find_unapplied,
    streams_of,
    summary_of,
    unapplied_page,
)
from consumers.projection.write import UnwritableError

__all__ = ["Operator", "RetryResult", "UnappliedSummary"]

LIMIT_S = 30.0
"""How long another session's lock is waited for."""
REBUILD_SESSION = "cua-project rebuild merge"
"""It holds up whoever changes the tables while a rebuild compares and corrects them."""
OPERATOR_SETTINGS = {"lock_timeout": "3s", "idle_in_transaction_session_timeout": "10s"}
"""For an operator's session: it tries again until LIMIT_S, and one that is stopped ends."""


class RetryResult(NamedTuple):
    """The result of trying again."""

    streams: int
    """Tried."""
    events: int
    """Applied."""
    still_parked: int
    """Records of these streams that are parked again."""


Change = Callable[[Cursor, Write | None], Retried]


def _nothing() -> None:
    pass


class Operator:
    """What is not applied in one schema, for an operator. Not thread-safe.

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

    def resolve(self, wanted: UnappliedFilter) -> UnappliedFilter:
        """The filter with the streams of its training, as pages and bulk decisions need it."""
        with self.connection, self.connection.cursor() as cursor:
            return wanted.resolved(cursor, self._schema)

    def unapplied_pages(
        self, wanted: UnappliedFilter, limit: int | None = None
    ) -> Iterator[list[UnappliedSummary]]:
        """The records by offset, some at a time, each part in a transaction of its own."""
        after: Place | None = None
        left = limit
        while left is None or left > 0:
            size = PART_RECORDS if left is None else min(left, PART_RECORDS)
            with self.connection, self.connection.cursor() as cursor:
                page, after = unapplied_page(cursor, self._schema, wanted, after, size)
            yield page
            if after is None:
                return
            left = None if left is None else left - len(page)

    def count_unapplied(self, wanted: UnappliedFilter, condition: str = "true") -> UnappliedCount:
        """How many records are meant, of how many streams."""
        with self.connection, self.connection.cursor() as cursor:
            return count_unapplied(cursor, self._schema, wanted, condition)

    def show(self, record_id: str) -> tuple[UnappliedSummary, bytes]:
        """A record and its value. NotFoundError, UsageError."""
        with self.connection, self.connection.cursor() as cursor:
            unapplied = find_unapplied(cursor, self._schema, record_id)
        return summary_of(record_id, unapplied), unapplied.record.value

    def retry(
        self, streams: Sequence[str] | None = None, after_batch: Callable[[], None] = _nothing
    ) -> RetryResult:
        """Try parked records again: of these streams, or all. `after_batch`: after each commit."""
        with self.connection, self.connection.cursor() as cursor:
            parked = count_parked(cursor, self._schema, streams)
        num_events = 0
        for names in _chunks(parked, self._batch_records):
            unfinished = names
            while unfinished:
                tried = unfinished

                def change(
                    cursor: Cursor, write: Write | None, names: list[str] = tried
                ) -> Retried:
                    return retry_part(
                        cursor, self._schema, names, write, max_records=self._batch_records
                    )

                part = self._change(change)
                num_events += part.events
                unfinished = part.unfinished
                after_batch()
        with self.connection, self.connection.cursor() as cursor:
            left = count_parked(cursor, self._schema, list(parked))
        return RetryResult(len(parked), num_events, sum(left.values()))

    def retry_matching(self, wanted: UnappliedFilter) -> RetryResult:
        """Try again the streams that have a parked record which is meant."""
        with self.connection, self.connection.cursor() as cursor:
            streams = streams_of(cursor, self._schema, wanted._replace(state="parked"))
        return self.retry(streams) if streams else RetryResult(0, 0, 0)

    def retry_if_newer(self, after_batch: Callable[[], None] = _nothing) -> bool:
        """Retry everything if this code knows other events than the last; whether it did."""
        with self.connection, self.connection.cursor() as cursor:
            if read_state(cursor, self._schema).catalogue_hash == catalogue_hash():
                return False
        self.retry(after_batch=after_batch)
        with self.connection, self.connection.cursor() as cursor:
            cursor.execute(
                f'UPDATE "{self._schema}".projection SET catalogue_hash = %s', (catalogue_hash(),)
            )
        return True

    def _change(self, change: Change) -> Retried:
        """In one transaction; a second time event by event if the database refuses a row."""
        began = time.monotonic()
        singly = False
        while True:
            try:
                return self._locked(change, singly=singly)
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
        if waited_s < self._limit_s:
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

    def _locked(self, change: Change, *, singly: bool) -> Retried:
        with self.connection, self.connection.cursor() as cursor:
            # Blocks the projectors' compare-and-set; the new build id makes them load again.
            cursor.execute(f'LOCK TABLE "{self._schema}".reader_position IN EXCLUSIVE MODE')
            result = change(cursor, write_singly(cursor, self._schema) if singly else None)
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
