"""Folds the next batch while the last one is being committed, so that Python and PostgreSQL each have a core.

Order and safety are those of one batch after the other: a commit starts when the one before it has succeeded, and its
compare-and-set expects exactly what that one left.
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

import psycopg2

from consumers.database.connection import Connection
from consumers.fold.fold import ParsedRecord
from consumers.projection.schema import Prepared, ProjectedSchema, is_refused


class Pipeline:
    """At most one batch in flight.

    Not thread-safe; use as a context manager, or `close`, which abandons what is in flight.

    `send` and `settle` raise what the batch in flight ran into (SupersededError, psycopg2's
    errors): `abandon` it then, and load the schema again.
    """

    def __init__(self, schema: ProjectedSchema, lookups: Connection) -> None:
        """`lookups`: another connection, in autocommit, that finds streams while the schema's own is committing."""
        self._schema = schema
        self._lookups = lookups
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="commit")
        self._in_flight: tuple[Prepared, Future[None]] | None = None

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
        """Fold records, and have them committed after what was sent before.

        Returns while that goes on.
        """
        prepared = self._schema.fold(parsed_records, self._lookups)
        if not self.settle():
            # What it was folded on top of has turned out otherwise.
            prepared = self._schema.fold(parsed_records, self._lookups)
        self._in_flight = (prepared, self._executor.submit(self._schema.commit, prepared))

    def settle(self) -> bool:
        """Wait until everything sent is committed.

        False when some of it had to be folded again to park what the database refuses.
        """
        if self._in_flight is None:
            return True
        prepared, future = self._in_flight
        self._in_flight = None
        try:
            future.result()
        except psycopg2.Error as error:
            if not is_refused(error):
                raise
            self._schema.apply_in_parts(prepared.parsed_records)
            return False
        self._schema.settle(prepared)
        return True

    def abandon(self) -> None:
        """Wait until nothing is in flight, whatever became of it."""
        if self._in_flight is not None:
            self._in_flight[1].exception()
            self._in_flight = None

    def close(self) -> None:
        """End its thread; twice is once."""
        self.abandon()
        self._executor.shutdown()
