"""The closed lists of words that generated entries are made of."""

from typing import Final, NamedTuple


class TextColumn(NamedTuple):
    """A column of few values."""

    name: str
    values: tuple[str, ...]


class NumberColumn(NamedTuple):
    """A column of whole numbers."""

    name: str
    low: int
    high: int


class Theme(NamedTuple):
    """What a table is about. Its first column is `name`, a text that no two rows share."""

    table: str
    noun: str
    """One row, in words."""
    groups: tuple[TextColumn, TextColumn]
    numbers: tuple[NumberColumn, NumberColumn]
    """No two rows share the first one's number."""


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
