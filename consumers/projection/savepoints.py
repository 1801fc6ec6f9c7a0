"""Writes events one at a time, each in a savepoint, to find those that the database refuses."""

from collections.abc import Sequence

import psycopg2

from consumers.database.connection import Cursor
from consumers.fold.apply import DatabaseRefusedError, Write
from consumers.fold.rows import Insert, Operation, UnappliableError
from consumers.projection.write import UnwritableError, execute, operation_commands

REFUSED_CLASSES = ("22", "23", "54", "09", "27", "38", "39", "44", "P0")
"""SQLSTATE classes caused by the data, not by the server: data exception, integrity constraint
violation, program limit exceeded; and what a trigger of yours on our tables raises."""

TAKEN = "23505"
"""SQLSTATE of a key that another row has."""


def is_refused(error: psycopg2.Error | UnwritableError) -> bool:
    """Whether the data cannot be stored, rather than the database failing itself."""
    if isinstance(error, UnwritableError):
        return True
    if error.pgcode is None:
        # Refused by the driver; a server that fails is an OperationalError or an InterfaceError.
        return isinstance(error, psycopg2.DataError)
    return error.pgcode[:2] in REFUSED_CLASSES


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
            row = _made_before(cursor, schema, operations) if error.pgcode == TAKEN else None
            if row is not None:
                # In the words of `Rows`, which finds two in one batch: batches change nothing.
                message = f"{row} is created a second time"
                raise UnappliableError(message) from None
            detail = f": {error.diag.message_detail}" if error.diag.message_detail else ""
            message = f"{error.diag.message_primary or error}{detail}"
            raise DatabaseRefusedError(message) from None
        except UnwritableError as error:
            cursor.execute("ROLLBACK TO SAVEPOINT event")
            raise DatabaseRefusedError(str(error)) from None
        cursor.execute("RELEASE SAVEPOINT event")

    return write


def _made_before(cursor: Cursor, schema: str, operations: Sequence[Operation]) -> str | None:
    """The first new row of these that is there already: its table and id."""
    for operation in operations:
        if isinstance(operation, Insert):
            table, key = operation.table, str(operation.row["id"])
            cursor.execute(f'SELECT 1 FROM "{schema}"."{table}" WHERE id = %s', (key,))
            if cursor.fetchone() is not None:
                return f"{table} {key}"
    return None
