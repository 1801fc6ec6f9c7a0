"""Folds the next batch while the last one commits: Python and PostgreSQL use a core each.

As safe as one batch after the other: a commit starts after the one before it has succeeded, and its
compare-and-set expects exactly the positions that that one left.
"""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Self

import psycopg2
from psycopg2.errors import LockNotAvailable

from consumers.database.connection import Connection
from consumers.fold.parse import ParsedRecord
from consumers.log.reader import TopicPartition
from consumers.projection.savepoints import is_refused
from consumers.projection.schema import PreparedBatch, ProjectedSchema
from consumers.projection.write import UnwritableError

BEAT_S = 1.0
"""While a commit takes longer, `while_waiting` is called this often."""


def _nothing() -> None:
    pass


class InTurn:
    """As a Pipeline, of one session: each batch is committed before the next is folded."""

    def __init__(self, schema: ProjectedSchema) -> None:
        self._schema = schema

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is in flight."""

    def send(
        self,
        parsed_records: Sequence[ParsedRecord],
        read_to: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """Fold records and commit them. `read_to`: as `ProjectedSchema.fold`."""
        self._schema.apply(parsed_records, read_to)

    def settle(self) -> bool:
        """True: everything sent is committed."""
        return True


class Pipeline:
    """At most one batch in flight. Not thread-safe; a context manager.

    `send` and `settle` raise the error of the batch in flight (SupersededError, psycopg2's errors)
    or of `while_waiting`: `abandon` it then, and load the schema again. `close` abandons it too. A
    commit that waits too long for another session's lock is tried again.
    """

    def __init__(
        self,
        schema: ProjectedSchema,
        lookups: Connection,
        while_waiting: Callable[[], None] = _nothing,
    ) -> None:
        """`lookups`: a second connection, in autocommit, to load streams during a commit.

        `while_waiting` keeps a long commit from looking like a dead process.
        """
        self._schema = schema
        self._lookups = lookups
        self._while_waiting = while_waiting
        self._given_up = threading.Event()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="commit")
        self._in_flight: tuple[PreparedBatch, Future[None]] | None = None

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

    def send(
        self,
        parsed_records: Sequence[ParsedRecord],
        read_to: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """Fold records and start to commit them, after everything sent before.

        `read_to`: as `ProjectedSchema.fold`.
        """
        rest = self._send(parsed_records, read_to)
        while rest:
            rest = self._send(rest, read_to)

    def _send(
        self,
        parsed_records: Sequence[ParsedRecord],
        read_to: Mapping[TopicPartition, int] | None,
    ) -> Sequence[ParsedRecord]:
        """What is left to send."""
        try:
            prepared = self._schema.fold(parsed_records, self._lookups, read_to)
            if not self.settle():
                # It was folded on top of a batch that was folded again.
                prepared = self._schema.fold(parsed_records, self._lookups, read_to)
        except UnwritableError:
            self.settle()
            self._schema.apply_in_parts(parsed_records, self._while_waiting)
            return ()
        self._given_up = threading.Event()
        self._start(prepared, self._commit, prepared, self._given_up)
        if prepared.decided:
            self.settle()
        return prepared.rest

    def _start(
        self, prepared: PreparedBatch, work: Callable[..., None], *arguments: object
    ) -> None:
        self._in_flight = (prepared, self._executor.submit(work, *arguments))

    def _commit(self, prepared: PreparedBatch, given_up: threading.Event) -> None:
        while True:
            try:
                self._schema.commit(prepared)
            except LockNotAvailable:
                # Everything was rolled back, and the positions are where they were.
                if given_up.is_set():
                    raise
            else:
                return

    def settle(self) -> bool:
        """Wait until everything sent is committed.

        False when it had to be folded again, to park records that the database refuses.
        """
        if self._in_flight is None:
            return True
        prepared, _ = self._in_flight
        try:
            self._wait()
        except (psycopg2.Error, UnwritableError) as error:
            if not is_refused(error):
                raise
            self._start(prepared, self._schema.apply_in_parts, prepared.parsed_records)
            self._wait()
            return False
        self._schema.settle(prepared)
        return True

    def _wait(self) -> None:
        """Until nothing is in flight."""
        assert self._in_flight is not None  # noqa: S101  # the callers'
        _, future = self._in_flight
        while not wait([future], BEAT_S).done:
            self._while_waiting()
        self._in_flight = None
        future.result()

    def abandon(self) -> None:
        """End what is in flight, ignoring its error; it is committed or not."""
        if self._in_flight is None:
            return
        _, future = self._in_flight
        self._in_flight = None
        self._given_up.set()
        if not wait([future], 0).done:
            # It may wait for a lock.
            with contextlib.suppress(psycopg2.Error):
                self._schema.connection.cancel()
        future.exception()

    def close(self) -> None:
        """Abandon, and end the thread. Idempotent."""
        self.abandon()
        self._executor.shutdown()
