"""The rows that a batch makes and changes, folded in memory so that each is written once."""

from collections.abc import Sequence

from consumers.fold.projectors.projector import Insert, Operation, Row, UnappliableError, Update


class Rows:
    """Operations of many events, merged per row.

    A change of a row of this batch goes into its insert.

    Not thread-safe. `add` takes an event's operations whole or, raising UnappliableError, not at
    all.
    """

    def __init__(self) -> None:
        self.inserts: dict[str, dict[str, Row]] = {}
        """Table -> id -> new row."""
        self.changes: dict[str, dict[str, Row]] = {}
        """Table -> id -> columns of an older row."""
        self.upserts: dict[str, dict[str, Row]] = {}
        """Table -> id -> content-addressed row."""

    @property
    def count(self) -> int:
        """Rows that will be written."""
        return sum(
            len(rows)
            for kind in (self.inserts, self.changes, self.upserts)
            for rows in kind.values()
        )

    def add(self, operations: Sequence[Operation]) -> None:
        """Merge one event's operations."""
        new: set[tuple[str, str]] = set()
        for operation in operations:
            if isinstance(operation, Insert):
                name = operation.table, str(operation.row["id"])
                if name in new or name[1] in self.inserts.get(name[0], ()):
                    message = f"expected a new {name[0]}, found {name[1]} made already"
                    raise UnappliableError(message)
                new.add(name)
        for operation in operations:
            if isinstance(operation, Insert):
                table, row = operation
                key = str(row["id"])
                self.inserts.setdefault(table, {})[key] = row
                if table in self.changes:
                    # Said before the row was there, and so of nothing: in another batch it would
                    # have changed nothing either.
                    self.changes[table].pop(key, None)
            elif isinstance(operation, Update):
                self._change(*operation)
            else:
                self._state(*operation)

    def _change(self, table: str, key: str, values: Row) -> None:
        new = self.inserts.get(table)
        if new is not None and (row := new.get(key)) is not None:
            row.update(values)
            return
        older = self.changes.setdefault(table, {})
        if (row := older.get(key)) is not None:
            row.update(values)
        else:
            older[key] = values

    def _state(self, table: str, row: Row) -> None:
        rows = self.upserts.setdefault(table, {})
        key = str(row["id"])
        if (known := rows.get(key)) is None:
            rows[key] = row
            return
        # RFC 3339 in UTC with microseconds sorts as the times do.
        known["created_at"] = min(str(known["created_at"]), str(row["created_at"]))
        if "updated_at" in row:
            known["updated_at"] = max(str(known["updated_at"]), str(row["updated_at"]))
