"""Folds the next batch while the last one commits: Python and PostgreSQL use a core each.

As safe as one batch after the other: a commit starts after the one before it has succeeded, and its
compare-and-set expects exactly the positions that that one left.
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

import psycopg2

from consumers.database.connection import Connection
from consumers.fold.parse import ParsedRecord
from consumers.projection.savepoints import is_refused
from consumers.projection.schema import PreparedBatch, ProjectedSchema
from consumers.projection.write import UnwritableError


class Pipeline:
    """At most one batch in flight. Not thread-safe; a context manager.

    `send` and `settle` raise the error of the batch in flight (SupersededError, psycopg2's errors):
    `abandon` it then, and load the schema again. `close` abandons it too.
    """

    def __init__(self, schema: ProjectedSchema, lookups: Connection) -> None:
        """`lookups`: a second connection, in autocommit, to load streams during a commit."""
        self._schema = schema
        self._lookups = lookups
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

    def send(self, parsed_records: Sequence[ParsedRecord]) -> None:
        """Fold records and start to commit them, after everything sent before."""
        try:
            prepared = self._schema.fold(parsed_records, self._lookups)
            if not self.settle():
                # It was folded on top of a batch that was folded again.
                prepared = self._schema.fold(parsed_records, self._lookups)
        except UnwritableError:
            self.settle()
            self._schema.apply_in_parts(parsed_records)
            return
        self._in_flight = (prepared, self._executor.submit(self._schema.commit, prepared))

    def settle(self) -> bool:
        """Wait until everything sent is committed.

        False when it had to be folded again, to park records that the database refuses.
        """
        if self._in_flight is None:
            return True
        prepared, future = self._in_flight
        self._in_flight = None
        try:
            future.result()
        except (psycopg2.Error, UnwritableError) as error:
            if not is_refused(error):
                raise
            self._schema.apply_in_parts(prepared.parsed_records)
            return False
        self._schema.settle(prepared)
        return True

    def abandon(self) -> None:
        """Wait until nothing is in flight, ignoring its error."""
        if self._in_flight is not None:
            self._in_flight[1].exception()
            self._in_flight = None

    def close(self) -> None:
        """Abandon, and end the thread. Idempotent."""
        self.abandon()
        self._executor.shutdown()
