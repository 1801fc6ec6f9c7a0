"""Integers that fit their columns, checked event by event.

PostgreSQL refuses the others too, but only those that a batch still contains: an update that a
later event of the same batch overwrites would be applied or parked depending on where batches end.
"""

from collections.abc import Sequence

from sqlalchemy import BigInteger, Integer

from consumers.fold.rows import Operation, RemoveEvaluation, UnappliableError, Update
from consumers.tables import ROW_TABLES, StatusHistory

INTEGERS: dict[str, tuple[tuple[str, int], ...]] = {
    table.__tablename__: tuple(
        (column.name, 2**63 if isinstance(column.type, BigInteger) else 2**31)
        for column in table.__table__.columns
        if isinstance(column.type, Integer)
    )
    for table in ROW_TABLES
    if table is not StatusHistory
}
"""Table -> its integer columns; a value is at least -limit and less than limit. Those of
status_history, epoch and sequence, are checked in every envelope."""


class OutOfRangeError(UnappliableError):
    """The database would refuse the number."""


def check_ranges(operations: Sequence[Operation]) -> None:
    """OutOfRangeError for an integer that its column cannot store."""
    for operation in operations:
        if isinstance(operation, RemoveEvaluation):
            continue
        limits = INTEGERS.get(operation.table)
        if not limits:
            continue
        values = operation.values if isinstance(operation, Update) else operation.row
        for name, limit in limits:
            value = values.get(name)
            if isinstance(value, int) and not -limit <= value < limit:
                message = f"integer out of range for {operation.table}.{name}: {str(value)[:40]}"
                raise OutOfRangeError(message)
