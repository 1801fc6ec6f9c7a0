"""Wrong projectors, made one by one, and whether comparing with the reference fold finds them.

A mutant changes what the projector of one event type writes to one table: two columns swapped, one
left out, or nothing written at all. It survives if every log gives the rows of the reference fold
nevertheless. `make mutants` prints how many do, and which.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

from consumers.fold.rows import Insert, Operation, Row, Update, Upsert
from consumers.projection.copying import json_text
from tests.reference_fold.comparison import plain_tables
from tests.reference_fold.cutting import cut_streams_at
from tests.reference_fold.equivalent_mutants import changes_no_row
from tests.reference_fold.histories import LoggedEvent, Shape, history
from tests.reference_fold.reference import fold
from tests.support.memory_tables import apply, effects

NUM_LOGS = 240
"""Four times the events of a training's stream, so that each is the last one of several logs."""
CUTS = 4
"""Logs that one history gives, each ending elsewhere."""
SHAPE = Shape(steps=1, groups=1, group_size=2, turns=2, tells_everything=True)
RowKey = tuple[str, str]


class Mutant(NamedTuple):
    """A wrong projector."""

    type: str
    """Of the event."""
    table: str
    columns: tuple[str, ...]
    """Two: swapped; one: left out; none: nothing is written."""

    def __str__(self) -> str:
        """For people."""
        what = {0: "nothing is written", 1: "{} is left out", 2: "{} and {} are swapped"}
        return f"{self.type}: {self.table}: {what[len(self.columns)].format(*self.columns)}"

    def apply(self, operation: Operation) -> Operation | None:
        """What the wrong projector writes instead."""
        if operation.table != self.table:
            return operation
        if not self.columns:
            return None
        row = dict(operation.values if isinstance(operation, Update) else operation.row)
        if len(self.columns) == 1:
            row.pop(self.columns[0], None)
        else:
            first, second = self.columns
            swapped = {first: row.get(second), second: row.get(first)}
            row |= {name: value for name, value in swapped.items() if name in row}
        if isinstance(operation, Update):
            return operation._replace(values=row)
        return operation._replace(row=row)


def _content(operation: Operation) -> str:
    return "values" if isinstance(operation, Update) else "row"


class Writes(NamedTuple):
    """What one log does to one row, and the row that the reference fold has."""

    key: str
    operations: list[tuple[str, Operation]]
    """(event type, operation), in order."""
    expected: object
    """As `_exact` gives it."""


Log = dict[tuple[str, str], list[Writes]]
"""(event type, table) -> the rows of this table to which a log writes at such an event."""


def make_logs(num_logs: int = NUM_LOGS, shape: Shape = SHAPE) -> list[Log]:
    """Logs of trainings whose streams end anywhere."""
    logs = []
    whole: list[LoggedEvent] = []
    for number in range(num_logs):
        if number % CUTS == 0:
            whole = history(f"run-{number}", number, shape)
        events = cut_streams_at(whole, number)
        writes: dict[RowKey, list[tuple[str, Operation]]] = defaultdict(list)
        for effect in effects(events):
            for operation in effect.operations:
                writes[_key(operation)].append((effect.type, operation))
        reference = fold((event.subject, event.value) for event in events)
        assert reference.count("parked") == reference.count("fenced") == 0
        tables = plain_tables(reference.tables)
        log: Log = defaultdict(list)
        for (table, key), operations in writes.items():
            row = Writes(key, operations, _exact(tables[table].get(key)))
            for type_ in {type_ for type_, _ in operations}:
                log[type_, table].append(row)
        logs.append(dict(log))
    return logs


def _key(operation: Operation) -> RowKey:
    match operation:
        case Update(table, key, _):
            return table, key
        case Insert(table, row) | Upsert(table, row):
            return table, str(row["id"])


def make_mutants(logs: list[Log]) -> list[Mutant]:
    """Every mutant of what the projectors wrote in these logs, equivalent ones included."""
    columns: dict[tuple[str, str], set[str]] = defaultdict(set)
    for log in logs:
        for (type_, table), rows in log.items():
            for _, operation in _of_type(type_, rows):
                row: Row = getattr(operation, _content(operation))
                columns[type_, table] |= row.keys()
    found = []
    for (type_, table), names in sorted(columns.items()):
        found.append(Mutant(type_, table, ()))
        found += [Mutant(type_, table, (name,)) for name in sorted(names - {"id"})]
        found += [Mutant(type_, table, pair) for pair in combinations(sorted(names), 2)]
    return found


def survives(mutant: Mutant, logs: list[Log]) -> bool:
    """Whether every row of every log is the reference's, in spite of the mutant."""
    return not any(_differs(mutant, log) for log in logs)


def _of_type(type_: str, rows: list[Writes]) -> Iterator[tuple[str, Operation]]:
    return (each for row in rows for each in row.operations if each[0] == type_)


def _differs(mutant: Mutant, log: Log) -> bool:
    for key, operations, expected in log.get((mutant.type, mutant.table), ()):
        tables: dict[str, dict[str, dict[str, Any]]] = {mutant.table: {}}
        for type_, operation in operations:
            mutated = mutant.apply(operation) if type_ == mutant.type else operation
            if mutated is not None:
                try:
                    apply(tables, [mutated])
                except (ValueError, TypeError, KeyError, AttributeError):
                    return True  # The database would refuse the value.
        if _exact(tables[mutant.table].get(key)) != expected:
            return True
    return False


def _exact(row: dict[str, Any] | None) -> object:
    """To Python false, 0 and 0.0 are equal; no column takes one for the other."""
    if row is None:
        return None
    return {name: (type(value), value) for name, value in row.items()}


def changes_nothing(mutant: Mutant, logs: list[Log]) -> bool:
    """Whether it writes what the right projector writes, in every event of every log."""
    return all(
        _alike(operation, mutant.apply(operation))
        for log in logs
        for _, operation in _of_type(mutant.type, log.get((mutant.type, mutant.table), []))
    )


def _alike(operation: Operation, other: Operation | None) -> bool:
    if other is None:
        return False
    before, after = (dict(getattr(each, _content(each))) for each in (operation, other))
    if not isinstance(operation, Update):
        # A new row has NULL where nothing is written.
        for row in (before, after):
            for name in [name for name, value in row.items() if value is None]:
                del row[name]
    return json_text(before) == json_text(after)


class Result(NamedTuple):
    """What became of the mutants."""

    num_mutants: int
    """Without the equivalent ones."""
    num_equivalent: int
    survivors: list[Mutant]


def run(logs: list[Log]) -> Result:
    """Try every mutant."""
    mutants = make_mutants(logs)
    real = [mutant for mutant in mutants if not changes_no_row(*mutant)]
    survivors = [mutant for mutant in real if survives(mutant, logs)]
    return Result(len(real), len(mutants) - len(real), survivors)


def report() -> Iterator[str]:
    """What `make mutants` prints."""
    began = time.monotonic()
    result = run(make_logs())
    yield from (f"survives: {mutant}" for mutant in result.survivors)
    yield (
        f"{len(result.survivors)} of {result.num_mutants:,} mutants survive {NUM_LOGS} logs in"
        f" {time.monotonic() - began:.0f} s; {result.num_equivalent} more write the same rows"
    )


if __name__ == "__main__":
    for line in report():
        sys.stdout.write(line + "\n")
