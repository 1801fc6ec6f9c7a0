"""Subjects of synthetic databases: four tables with the same four roles, in several domains.

Makers have made things, and people have used them. Names of tables and columns are drawn for each
database, so that two databases of one domain have different schemas. All words come from closed
pools, so that a small policy knows all of them.
"""

from collections.abc import Sequence
from random import Random
from typing import Final, Literal, NamedTuple

Pool = Literal["person", "title", "place", "country", "genre", "colour", "material", "level"]

VALUES: Final[dict[Pool, str]] = {
    "person": (
        "Ada Bela Carl Dora Emil Fina Gero Hana Ivan Jana Karl Lena Milo Nora Otto Pia Rolf Sara"
        " Timo Ulla Vera Wim Yara Zeno"
    ),
    "title": (
        "Acorn Beacon Canyon Dune Ember Fjord Grove Harbor Island Jungle Knoll Lagoon Meadow"
        " Nebula Orchard Prairie Quarry Ridge Summit Tundra Valley Willow Zephyr Anchor Bridge"
        " Castle Desert Engine Forest Garden Hollow Iron Jewel Kettle Lantern Marble Needle Ocean"
        " Pebble River"
    ),
    "place": "Arden Borley Calder Denby Elton Farley Garton Hexley Inver Kelso Ludlow Marden",
    "country": "Norway Chile Japan Kenya Canada Greece",
    "genre": "crime travel science history poetry comedy",
    "colour": "red blue green black white yellow",
    "material": "wood steel glass cotton paper clay",
    "level": "basic middle senior expert",
}
POOLS: Final[dict[Pool, tuple[str, ...]]] = {
    pool: tuple(words.split()) for pool, words in VALUES.items()
}
"""The words that a column's values are drawn from."""
SMALLEST, LARGEST = 1, 99
"""Range of the numbers in a column, inclusive."""


class Category(NamedTuple):
    """A text column whose values repeat."""

    names: str
    """Candidate names, separated by spaces; one is drawn."""
    pool: Pool


class Role(NamedTuple):
    """A table with a text column whose values repeat."""

    tables: str
    """Candidate names of the table, separated by spaces; one is drawn."""
    category: Category


class Domain(NamedTuple):
    """Names for the roles. Where several are given, one is drawn per database."""

    name: str
    maker: Role
    thing: Role
    thing_numbers: tuple[str, str]
    """Candidate names of the two number columns."""
    person: Role
    use: str
    use_number: str


NUM_TABLES: Final = ((False, False), (True, False), (True, True), (True, True))
"""(whether there are uses, whether there are people) choices, drawn uniformly: two, three or, twice
as often, four tables."""
COUNTRY: Final = Category("country home", "country")
GENRE: Final = Category("genre topic", "genre")
COLOUR: Final = Category("colour tint", "colour")
MATERIAL: Final = Category("material kind", "material")
LEVEL: Final = Category("level grade", "level")
CITY: Final = Category("city place", "place")
PRICE, AGE, RATING, PAGES = "price cost", "age years", "rating score", "pages length"
HOURS, WEIGHT, AMOUNT, DAYS = "hours duration", "weight", "amount quantity", "days fee"

DOMAINS: Final = (
    Domain(
        "library",
        Role("author publisher", COUNTRY),
        Role("book novel", GENRE),
        (PRICE, PAGES),
        Role("reader", CITY),
        "loan",
        DAYS,
    ),
    Domain(
        "shop",
        Role("maker brand", COUNTRY),
        Role("product item", COLOUR),
        (PRICE, WEIGHT),
        Role("client buyer", LEVEL),
        "purchase",
        AMOUNT,
    ),
    Domain(
        "school",
        Role("teacher trainer", CITY),
        Role("course lesson", GENRE),
        (HOURS, RATING),
        Role("student", LEVEL),
        "enrolment",
        RATING,
    ),
    Domain(
        "farm",
        Role("farmer owner", COUNTRY),
        Role("field crop", MATERIAL),
        (WEIGHT, PRICE),
        Role("buyer client", CITY),
        "harvest",
        AMOUNT,
    ),
    Domain(
        "cinema",
        Role("director studio", COUNTRY),
        Role("film movie", GENRE),
        (HOURS, RATING),
        Role("guest", CITY),
        "ticket",
        PRICE,
    ),
    Domain(
        "hospital",
        Role("doctor nurse", LEVEL),
        Role("clinic ward", COLOUR),
        (AGE, RATING),
        Role("patient", CITY),
        "visit",
        DAYS,
    ),
)


class Entity(NamedTuple):
    """A table of makers, things or people."""

    table: str
    label: str
    """The column of unique names."""
    category: str
    pool: Pool
    numbers: tuple[str, ...] = ()
    """Columns of unique numbers. Only things have them, two each."""


class Use(NamedTuple):
    """The table between things and people."""

    table: str
    number: str


class Schema(NamedTuple):
    """The names of one database with two, three or four tables."""

    domain: str
    maker: Entity
    """Table that things refer to."""
    thing: Entity
    """Table that most questions ask about."""
    use: Use | None
    """None if there are only two tables."""
    person: Entity | None
    """None if there are two or three tables; uses then refer to things alone."""

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables, each after the tables that it refers to."""
        others = [item.table for item in (self.person, self.use) if item is not None]
        return (self.maker.table, self.thing.table, *others)


def draw_schema(domain: Domain, random: Random, most_tables: int = 4) -> Schema:
    """Draw the names of a database of the domain, reproducibly from the generator's state.

    `most_tables` is 2 to 4; tables beyond it are left out of the schema.
    """

    def drawn(words: str) -> str:
        return random.choice(words.split())

    def entity(role: Role, labels: str = "name", numbers: Sequence[str] = ()) -> Entity:
        table, label = drawn(role.tables), drawn(labels) if " " in labels else labels
        category = drawn(role.category.names)
        return Entity(table, label, category, role.category.pool, tuple(map(drawn, numbers)))

    has_use, has_person = random.choice(NUM_TABLES)
    maker = entity(domain.maker)
    thing = entity(domain.thing, "title label", domain.thing_numbers)
    person = entity(domain.person)
    use = Use(drawn(domain.use), drawn(domain.use_number))
    return Schema(
        domain.name,
        maker,
        thing,
        use if has_use and most_tables > 2 else None,  # noqa: PLR2004  # makers and things
        person if has_person and most_tables > 3 else None,  # noqa: PLR2004  # and uses
    )
