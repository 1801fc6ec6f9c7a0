"""A filled table to write drafts of entries about, and the choices that drafts make."""

from random import Random
from typing import NamedTuple

from producer.agents.dbbench.data.words import NAMES, OPERATORS, NumberColumn, TextColumn, Theme

Row = tuple[int | str, ...]


class Draft(NamedTuple):
    """SQL and what it does, in words."""

    sql: str
    instruction: str


class Scene:
    """A filled table and a source of choices."""

    def __init__(self, theme: Theme, rows: tuple[Row, ...], random: Random) -> None:
        self.theme = theme
        self.rows = rows
        self.random = random
        self.columns = column_names(theme)

    @property
    def unique(self) -> NumberColumn:
        """The number that no two rows share."""
        return self.theme.numbers[0]

    @property
    def other(self) -> NumberColumn:
        """The number that rows share."""
        return self.theme.numbers[1]

    def has_luck(self, chance: float = 0.5) -> bool:
        """True that often."""
        return self.random.random() < chance

    def group(self) -> TextColumn:
        """One of the texts that rows share."""
        return self.random.choice(self.theme.groups)

    def value(self, column: str) -> int | str:
        """A value that some row has."""
        return self.random.choice(self.rows)[self.columns.index(column)]

    def condition(self, prefix: str = "") -> tuple[str, str]:
        """A condition on one column as SQL and in words."""
        if self.has_luck():
            column = self.group().name
            value = self.value(column)
            return f"{prefix}{column} = '{value}'", f"the {column} is {value}"
        number = self.random.choice(self.theme.numbers).name
        sign = self.random.choice(("<", ">"))
        value = self.value(number)
        return f"{prefix}{number} {sign} {value}", f"the {number} is {OPERATORS[sign]} {value}"

    def different_conditions(self, count: int, prefix: str = "") -> list[tuple[str, str]]:
        """Conditions on as many columns."""
        found: dict[str, tuple[str, str]] = {}
        while len(found) < count:
            sql, words = self.condition(prefix)
            found.setdefault(sql.split()[0], (sql, words))
        return list(found.values())

    def direction(self) -> tuple[str, str]:
        """ASC or DESC, and in words."""
        return self.random.choice(
            (("ASC", "from lowest to highest"), ("DESC", "from highest to lowest"))
        )

    def aggregate(self) -> tuple[str, str]:
        """An aggregate of the number that rows share, and in words."""
        name = self.other.name
        return self.random.choice(
            (
                (f"SUM({name})", f"the sum of the {name}"),
                (f"MAX({name})", f"the highest {name}"),
                (f"MIN({name})", f"the lowest {name}"),
                ("COUNT(*)", f"the number of {self.theme.table}"),
            )
        )


def column_names(theme: Theme) -> tuple[str, ...]:
    """In the table's order."""
    return (
        "name",
        *(group.name for group in theme.groups),
        *(number.name for number in theme.numbers),
    )


def fill(theme: Theme, random: Random, num_rows: int) -> tuple[Row, ...]:
    """Rows; no two share a name or the first number."""
    names = random.sample(NAMES, num_rows)
    unique, other = theme.numbers
    numbers = random.sample(range(unique.low, unique.high + 1), num_rows)
    return tuple(
        (
            name,
            *(random.choice(group.values) for group in theme.groups),
            number,
            random.randint(other.low, other.high),
        )
        for name, number in zip(names, numbers, strict=True)
    )
