"""Writes events one at a time, each in a savepoint, to find those that the database refuses."""

from collections.abc import Sequence

import psycopg2

from consumers.database.connection import Cursor
from consumers.fold.apply import DatabaseRefusedError, Write
from consumers.fold.rows import Operation
from consumers.projection.write import execute, operation_commands

REFUSED_CLASSES = ("22", "23", "54")
"""SQLSTATE classes caused by the data, not by the server: data exception, integrity constraint
violation, program limit exceeded."""


def is_refused(error: psycopg2.Error) -> bool:
    """Whether the database refuses the data, rather than failing itself."""
    return error.pgcode is not None and error.pgcode[:2] in REFUSED_CLASSES


def write_singly(cursor: Cursor, schema: str) -> Write:
    """Writes one event's rows per call, in a savepoint of the cursor's transaction."""

    def write(operations: Sequence[Operation]) -> None:
        cursor.execute("SAVEPOINT event")
        try:
            execute(cursor, operation_commands(schema, operations))
        except psycopg2.Error as error:
            if not is_refused(error):
                raise
            cursor.execute("ROLLBACK TO SAVEPOINT event")
            detail = f": {error.diag.message_detail}" if error.diag.message_detail else ""
            message = f"{error.diag.message_primary}{detail}"
            raise DatabaseRefusedError(message) from None
        cursor.execute("RELEASE SAVEPOINT event")

    return write
