"""Reads another project's file by a table of its fields.

Unknown fields and fields without effect are noted with a reason. A value that cannot be honoured is
a problem.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite, nan
from pathlib import Path
from typing import Any, Final, NamedTuple

from producer.field_errors import without_secrets

UNUSABLE: Final = "cannot be honoured; use one of {names}"
NO_CHOICE: Final = "is not one of {names}"

NUM_NAMED: Final = 3
"""Maximum fields that a summary names."""

Convert = Callable[[Any], Any]
"""Converts the file's value to ours, or to None for no setting. Raises ValueError if it cannot be
honoured."""


class Noted(NamedTuple):
    """A converted value with a remark about it."""

    value: Any
    remark: str


class Told(NamedTuple):
    """A converted value with a remark that is always shown."""

    value: Any
    remark: str


PLACEHOLDER: Final = re.compile(
    r"""
    (?:\.{0,2}/)?(?:your|path[/_ -]to|change[_ -]?me|todo|fixme|tbd|xxx+)(?:[/_ :-].*)?
    | .*/your[_ -](?:user[_ -]?)?name(?:/.*)?
    | .*<[^<>/]+>.*
    | \.\.\.|…
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Matches placeholders in published files that users should replace by their own values."""


def own_folder(value: Any) -> Any:
    """Convert a folder. A placeholder is reported and left out."""
    if PLACEHOLDER.fullmatch(str(value)) and not Path(str(value)).exists():
        return Told(None, f"{value!r} is a placeholder, ignored; name a folder of your own")
    return value


@dataclass(frozen=True, slots=True)
class Row:
    """How to read one field."""

    ours: str = ""
    """Name of our field; empty if there is none."""
    convert: Convert | None = None
    when: str = ""
    """Name of the condition under which the field has an effect; empty for always."""
    default: Any = None
    """The other project's default, used if the condition holds."""
    why: str = ""
    """Why the field has no effect; empty if it is honoured."""


Table = dict[str, Row]
"""Maps a dotted name to its row. A name that ends in `.` covers all fields below it without a
row."""


def same(ours: str, convert: Convert | None = None, *, when: str = "", default: Any = None) -> Row:
    """A row for a field whose value is used unchanged or converted."""
    return Row(ours, convert, when, default)


def one_of(ours: str, values: dict[Any, Any], problem: str = UNUSABLE, **more: Any) -> Row:
    """A row that maps the file's values to ours; None means no setting."""
    return same(ours, chosen(values, problem), **more)


def only(*values: Any, instead: str) -> Row:
    """A row that accepts only values that match our behaviour; `instead` advises about others."""
    return one_of("", dict.fromkeys(values), f"cannot be honoured: {instead}")


def switch() -> Row:
    """A row for a field that only controls conditions of the format."""
    return Row()


def without_effect(sections: dict[str, dict[str, str]]) -> Table:
    """Rows of ignored fields, from section -> reason -> space-separated names."""
    return {
        f"{section}{name}": Row(why=why)
        for section, reasons in sections.items()
        for why, names in reasons.items()
        for name in names.split()
    }


def chosen(values: dict[Any, Any], problem: str = UNUSABLE) -> Convert:
    """A conversion by lookup.

    `problem` describes other values; {names} stands for the known ones.
    """

    def convert(value: Any) -> Any:
        for known, meaning in values.items():
            if value == known:
                return meaning
        message = f"{without_secrets(value)!r} {problem.format(names=', '.join(map(str, values)))}"
        raise ValueError(message)

    return convert


def number(value: Any) -> float:
    """Parse a finite number, possibly given as text."""
    try:
        read = nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        read = nan
    if not isfinite(read):
        message = f"{without_secrets(value)!r} cannot be honoured; use a number"
        raise ValueError(message)
    return read


def count(value: Any) -> int:
    """Parse an integer of at least 1, possibly given as text."""
    try:
        read = number(value)
    except ValueError:
        read = 0.0
    if read < 1 or not read.is_integer():
        message = f"{without_secrets(value)!r} is not an integer of at least 1"
        raise ValueError(message)
    return int(read)


def flattened(fields: Mapping[str, Any], table: Table, prefix: str = "") -> dict[str, Any]:
    """Map dotted names to values. Fields with a row and empty sections are not split."""
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
    """The settings read from a file, and notes about them."""

    given: dict[str, Any] = field(default_factory=dict)
    """Our fields with their values."""
    names: dict[str, str] = field(default_factory=dict)
    """Maps our field to its name in the file."""
    absent: set[str] = field(default_factory=set)
    """Names in `names` that are missing in the file, so that the other project's defaults apply."""
    without_effect: dict[str, str] = field(default_factory=dict)
    """Maps a known field that is not honoured as given to the reason."""
    told: list[str] = field(default_factory=list)
    """Remarks that are always shown, each beginning with its field."""
    unknown: list[str] = field(default_factory=list)
    """Fields without a row."""
    problems: list[str] = field(default_factory=list)
    """Values that cannot be honoured, each beginning with its field."""
    overridden: frozenset[str] = frozenset()
    """Our fields whose values in the file do not matter, because flags override them."""

    def read(
        self, flat: Mapping[str, Any], table: Table, unmet: Mapping[str, str] | None = None
    ) -> None:
        """Read fields by their rows. `unmet` maps conditions that do not hold to reasons."""
        unmet = unmet or {}
        for name, value in flat.items():
            if value is None:
                continue
            row = _row(name, table)
            if row is not None:
                self._read_field(name, value, row, unmet)
            elif not any(known.startswith(f"{name}.") for known in table):
                self.unknown.append(name)
            elif value != {}:
                problem = f"{without_secrets(value)!r} cannot be honoured; use an object of fields"
                self.problems.append(f"{name}: {problem}")
        for name, row in table.items():
            if row.default is not None and row.when not in unmet and flat.get(name) is None:
                self.absent.add(name)
                self._read_field(name, row.default, row, unmet)

    def take(self, name: str, ours: str, value: object) -> None:
        """Set one of our fields. Setting it to two different values is a problem."""
        is_other = ours in self.given and self.given[ours] != value
        if is_other and ours not in self.overridden:
            self.problems.append(f"{name}: contradicts {self.names[ours]}; give one of them")
            return
        self.given[ours] = value
        self.names[ours] = name

    def reasons(self) -> list[str]:
        """One line per reason why known fields are not honoured."""
        names_of: dict[str, list[str]] = {}
        for name, why in self.without_effect.items():
            names_of.setdefault(why, []).append(name)
        return [
            f"no effect here: {', '.join(names)} (reason: {why})" for why, names in names_of.items()
        ]

    def unknown_line(self) -> list[str]:
        """At most one line about fields without a row."""
        named = ", ".join(sorted({*self.unknown}))
        return [f"unknown fields, ignored: {named}"] if named else []

    def summary(self) -> list[str]:
        """At most one line about fields without effect; `reasons` lists them all."""
        names = sorted(self.without_effect)
        if not names:
            return []
        more = f" and {len(names) - NUM_NAMED} more" if len(names) > NUM_NAMED else ""
        shown = ", ".join(names[:NUM_NAMED])
        return [f"no effect here: {shown}{more}; --verbose lists all, with the reasons"]

    def _read_field(self, name: str, value: Any, row: Row, unmet: Mapping[str, str]) -> None:
        why = row.why or unmet.get(row.when)
        if why:
            self.without_effect[name] = why
            return
        try:
            converted = value if row.convert is None else row.convert(value)
        except ValueError as error:
            if row.ours not in self.overridden:
                self.problems.append(f"{name}: {error}")
            return
        if isinstance(converted, Told):
            self.told.append(f"{name}: {converted.remark}")
            converted = converted.value
        if isinstance(converted, Noted):
            self.without_effect[name] = converted.remark
            converted = converted.value
        if row.ours and converted is not None:
            self.take(name, row.ours, converted)


def _row(name: str, table: Table) -> Row | None:
    """The field's row, or the row of its nearest section."""
    if name in table:
        return table[name]
    section = name
    while section:
        if f"{section}." in table:
            return table[f"{section}."]
        section = section.rpartition(".")[0]
    return None
