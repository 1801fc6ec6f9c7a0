"""A filled table, made of closed lists of words, about which drafts of entries are written."""

from random import Random
from typing import Final, NamedTuple


class TextColumn(NamedTuple):
    """A text column with few distinct values."""

    name: str
    values: tuple[str, ...]


class NumberColumn(NamedTuple):
    """A column of whole numbers."""

    name: str
    low: int
    high: int


class Theme(NamedTuple):
    """The subject of a table. Its first column is `name`, with unique texts."""

    table: str
    noun: str
    """What one row is, in words."""
    groups: tuple[TextColumn, TextColumn]
    numbers: tuple[NumberColumn, NumberColumn]
    """The first column's numbers are unique."""


CITIES = TextColumn("city", ("berlin", "cairo", "delhi", "lima", "oslo", "paris"))
COLOURS = TextColumn("colour", ("black", "blue", "green", "red", "white", "yellow"))
SIZES = TextColumn("size", ("large", "medium", "small", "tiny"))
GRADES = TextColumn("grade", ("average", "excellent", "good", "poor"))
REGIONS = TextColumn("region", ("center", "east", "north", "south", "west"))
SEASONS = TextColumn("season", ("autumn", "spring", "summer", "winter"))
STATES = TextColumn("state", ("active", "closed", "new", "open"))
AREAS = TextColumn("department", ("finance", "legal", "sales", "service", "support"))
KINDS = TextColumn("kind", ("basic", "classic", "modern", "special"))
MATERIALS = TextColumn("material", ("cotton", "glass", "metal", "stone", "wood"))
LANGUAGES = TextColumn("language", ("arabic", "english", "french", "hindi", "spanish"))
LEVELS = TextColumn("level", ("advanced", "beginner", "expert", "middle"))

PRICE = NumberColumn("price", 10, 99)
AGE = NumberColumn("age", 18, 67)
YEAR = NumberColumn("year", 1950, 2020)
SCORE = NumberColumn("score", 10, 99)
WEIGHT = NumberColumn("weight", 10, 99)
STOCK = NumberColumn("stock", 1, 30)
RATING = NumberColumn("rating", 1, 10)
VISITS = NumberColumn("visits", 1, 30)
HOURS = NumberColumn("hours", 1, 20)
POINTS = NumberColumn("points", 10, 99)

THEMES: Final = (
    Theme("employees", "employee", (AREAS, CITIES), (AGE, HOURS)),
    Theme("students", "student", (GRADES, CITIES), (SCORE, HOURS)),
    Theme("products", "product", (COLOURS, SIZES), (PRICE, STOCK)),
    Theme("orders", "order", (STATES, REGIONS), (PRICE, RATING)),
    Theme("books", "book", (LANGUAGES, KINDS), (YEAR, STOCK)),
    Theme("cars", "car", (COLOURS, KINDS), (YEAR, RATING)),
    Theme("hotels", "hotel", (CITIES, GRADES), (PRICE, RATING)),
    Theme("movies", "movie", (LANGUAGES, SEASONS), (YEAR, RATING)),
    Theme("players", "player", (LEVELS, REGIONS), (POINTS, RATING)),
    Theme("animals", "animal", (COLOURS, REGIONS), (WEIGHT, RATING)),
    Theme("courses", "course", (LEVELS, LANGUAGES), (SCORE, HOURS)),
    Theme("tickets", "ticket", (STATES, AREAS), (POINTS, HOURS)),
    Theme("houses", "house", (CITIES, MATERIALS), (YEAR, VISITS)),
    Theme("tools", "tool", (MATERIALS, SIZES), (WEIGHT, STOCK)),
    Theme("plants", "plant", (SEASONS, COLOURS), (WEIGHT, STOCK)),
    Theme("songs", "song", (LANGUAGES, KINDS), (YEAR, POINTS)),
    Theme("museums", "museum", (CITIES, KINDS), (YEAR, VISITS)),
    Theme("patients", "patient", (STATES, CITIES), (AGE, VISITS)),
    Theme("machines", "machine", (STATES, MATERIALS), (WEIGHT, HOURS)),
    Theme("clubs", "club", (REGIONS, LEVELS), (POINTS, VISITS)),
    Theme("shoes", "shoe", (MATERIALS, COLOURS), (PRICE, STOCK)),
    Theme("farms", "farm", (REGIONS, SIZES), (WEIGHT, VISITS)),
    Theme("shops", "shop", (CITIES, SIZES), (SCORE, VISITS)),
    Theme("trips", "trip", (SEASONS, REGIONS), (PRICE, RATING)),
)

FIRST_SYLLABLES: Final = ("ba", "de", "fi", "go", "ha", "ka", "le", "mi", "no", "ru", "so", "tu")
LAST_SYLLABLES: Final = ("bel", "dor", "kin", "lam", "mar", "nus", "rek", "ton")
NAMES: Final = tuple(first + last for first in FIRST_SYLLABLES for last in LAST_SYLLABLES)
"""Values of the column `name`: 96 words."""
ALIASES: Final = ("amount", "entry", "label", "result", "value")
TABLE_ALIASES: Final = ("a", "b", "t", "x")
OPERATORS: Final = {">": "greater than", "<": "less than", "=": "equal to"}
MAX_NUMBER: Final = 2020


Row = tuple[int | str, ...]


class Draft(NamedTuple):
    """An SQL statement and its instruction in words."""

    sql: str
    instruction: str


class Scene:
    """A filled table and a random generator for choices."""

    def __init__(self, theme: Theme, rows: tuple[Row, ...], random: Random) -> None:
        self.theme = theme
        self.rows = rows
        self.random = random
        self.columns = column_names(theme)

    @property
    def unique(self) -> NumberColumn:
        """The column with unique numbers."""
        return self.theme.numbers[0]

    @property
    def other(self) -> NumberColumn:
        """The number column whose values repeat."""
        return self.theme.numbers[1]

    def has_luck(self, chance: float = 0.5) -> bool:
        """True with this probability."""
        return self.random.random() < chance

    def group(self) -> TextColumn:
        """One of the text columns, whose values repeat."""
        return self.random.choice(self.theme.groups)

    def value(self, column: str) -> int | str:
        """A value that occurs in the column."""
        return self.random.choice(self.rows)[self.columns.index(column)]

    def condition(self, prefix: str = "") -> tuple[str, str]:
        """A condition on one column, as SQL and in words."""
        if self.has_luck():
            column = self.group().name
            value = self.value(column)
            return f"{prefix}{column} = '{value}'", f"the {column} is {value}"
        number = self.random.choice(self.theme.numbers).name
        sign = self.random.choice(("<", ">"))
        value = self.value(number)
        return f"{prefix}{number} {sign} {value}", f"the {number} is {OPERATORS[sign]} {value}"

    def different_conditions(self, count: int) -> list[tuple[str, str]]:
        """Conditions on `count` different columns."""
        found: dict[str, tuple[str, str]] = {}
        while len(found) < count:
            sql, words = self.condition()
            found.setdefault(sql.split()[0], (sql, words))
        return list(found.values())

    def direction(self) -> tuple[str, str]:
        """ASC or DESC, and its wording."""
        return self.random.choice(
            (("ASC", "from lowest to highest"), ("DESC", "from highest to lowest"))
        )

    def aggregate(self) -> tuple[str, str]:
        """An aggregate of the repeating number column, as SQL and in words."""
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
    """Column names in the table's order."""
    return (
        "name",
        *(group.name for group in theme.groups),
        *(number.name for number in theme.numbers),
    )


def fill(theme: Theme, random: Random, num_rows: int) -> tuple[Row, ...]:
    """Generate rows with unique names and unique first numbers."""
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
