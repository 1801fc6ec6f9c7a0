"""Reads a file of another project by its table.

A field without effect is kept with the reason, one without a row as unknown; neither is an error. A
value that cannot be honoured is a problem.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from producer.foreign_files.rows import Noted, Row, Table

UNKNOWN: Final = "unknown, ignored"


def flattened(fields: Mapping[str, Any], table: Table, prefix: str = "") -> dict[str, Any]:
    """Dotted name -> value. A field with a row is whole; so is a section without fields."""
    flat: dict[str, Any] = {}
    for key, value in fields.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value and name not in table:
            flat |= flattened(value, table, f"{name}.")
        else:
            flat[name] = value
    return flat


@dataclass(slots=True)
class Reading:
    """What the fields of a file mean here."""

    given: dict[str, Any] = field(default_factory=dict)
    """Our fields."""
    names: dict[str, str] = field(default_factory=dict)
    """Our field -> the name that the file has for it."""
    left: dict[str, str] = field(default_factory=dict)
    """Name of a field that is not honoured as it is -> why."""
    problems: list[str] = field(default_factory=list)
    """Each begins with the name of its field."""

    @property
    def unknown(self) -> list[str]:
        """Names of the fields that have no row."""
        return [name for name, why in self.left.items() if why == UNKNOWN]

    @property
    def without_effect(self) -> dict[str, str]:
        """Name of a known field that is not honoured -> why."""
        return {name: why for name, why in self.left.items() if why != UNKNOWN}

    def read(
        self, flat: Mapping[str, Any], table: Table, unmet: Mapping[str, str] | None = None
    ) -> None:
        """Read fields by their rows. `unmet`: condition that does not hold -> why."""
        unmet = unmet or {}
        for name, value in flat.items():
            if value is None:
                continue
            row = _row(name, table)
            if row is not None:
                self._read_field(name, value, row, unmet)
            elif not any(known.startswith(f"{name}.") for known in table):
                self.left[name] = UNKNOWN
            elif value != {}:
                problem = f"{value!r} cannot be honoured; use an object of fields"
                self.problems.append(f"{name}: {problem}")
        for name, row in table.items():
            if row.default is not None and row.when not in unmet and flat.get(name) is None:
                self._read_field(name, row.default, row, unmet)

    def take(self, name: str, ours: str, value: object) -> None:
        """Keep a value for one of our fields; two that differ are a problem."""
        if ours in self.given and self.given[ours] != value:
            self.problems.append(f"{name}: contradicts {self.names[ours]}; give one of them")
            return
        self.given[ours] = value
        self.names[ours] = name

    def remarks(self) -> list[str]:
        """What is not honoured, a line for each reason."""
        names_of: dict[str, list[str]] = {}
        for name, why in self.without_effect.items():
            names_of.setdefault(why, []).append(name)
        lines = [
            f"without effect here: {', '.join(sorted(names))} ({why})"
            for why, names in names_of.items()
        ]
        if self.unknown:
            lines.append(f"these fields are not known and are ignored: {', '.join(self.unknown)}")
        return lines

    def _read_field(self, name: str, value: Any, row: Row, unmet: Mapping[str, str]) -> None:
        why = row.why or unmet.get(row.when)
        if why:
            self.left[name] = why
            return
        try:
            converted = value if row.convert is None else row.convert(value)
        except ValueError as error:
            self.problems.append(f"{name}: {error}")
            return
        if isinstance(converted, Noted):
            self.left[name] = converted.remark
            converted = converted.value
        if row.ours and converted is not None:
            self.take(name, row.ours, converted)


def _row(name: str, table: Table) -> Row | None:
    """The field's own row, or that of the nearest section it is in."""
    if name in table:
        return table[name]
    section = name
    while section:
        if f"{section}." in table:
            return table[f"{section}."]
        section = section.rpartition(".")[0]
    return None
