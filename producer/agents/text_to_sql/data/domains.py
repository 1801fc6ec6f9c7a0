"""What synthetic databases are about: four tables in the same four roles, in several domains.

A maker has made things, people have used them. Names of tables and columns are drawn for each
database, so that two databases of one domain have different schemas.
"""

from dataclasses import dataclass
from random import Random
from typing import Final

from producer.agents.text_to_sql.data.words import Pool


@dataclass(frozen=True, slots=True)
class Category:
    """A column of texts that repeat."""

    names: tuple[str, ...]
    """One is drawn."""
    pool: Pool


@dataclass(frozen=True, slots=True)
class Domain:
    """Words for the roles; one of each tuple is drawn for a database."""

    name: str
    maker: tuple[str, ...]
    maker_category: Category
    thing: tuple[str, ...]
    thing_category: Category
    thing_numbers: tuple[tuple[str, ...], tuple[str, ...]]
    """Two columns of numbers."""
    person: tuple[str, ...]
    person_category: Category
    use: tuple[str, ...]
    use_numbers: tuple[str, ...]


NUM_TABLES: Final = ((False, False), (True, False), (True, True), (True, True))
"""Whether there are uses and people: two, three and, as often as both, four tables."""
COUNTRY: Final = Category(("country", "home"), "country")
GENRE: Final = Category(("genre", "topic"), "genre")
COLOUR: Final = Category(("colour", "tint"), "colour")
MATERIAL: Final = Category(("material", "kind"), "material")
LEVEL: Final = Category(("level", "grade"), "level")
CITY: Final = Category(("city", "place"), "place")
PRICE, AGE, RATING = ("price", "cost"), ("age", "years"), ("rating", "score")
PAGES, HOURS = ("pages", "length"), ("hours", "duration")
WEIGHT, AMOUNT, DAYS = ("weight",), ("amount", "quantity"), ("days", "fee")

DOMAINS: Final = (
    Domain(
        name="library",
        maker=("author", "publisher"),
        maker_category=COUNTRY,
        thing=("book", "novel"),
        thing_category=GENRE,
        thing_numbers=(PRICE, PAGES),
        person=("reader",),
        person_category=CITY,
        use=("loan",),
        use_numbers=DAYS,
    ),
    Domain(
        name="shop",
        maker=("maker", "brand"),
        maker_category=COUNTRY,
        thing=("product", "item"),
        thing_category=COLOUR,
        thing_numbers=(PRICE, WEIGHT),
        person=("client", "buyer"),
        person_category=LEVEL,
        use=("purchase",),
        use_numbers=AMOUNT,
    ),
    Domain(
        name="school",
        maker=("teacher", "trainer"),
        maker_category=CITY,
        thing=("course", "lesson"),
        thing_category=GENRE,
        thing_numbers=(HOURS, RATING),
        person=("student",),
        person_category=LEVEL,
        use=("enrolment",),
        use_numbers=RATING,
    ),
    Domain(
        name="farm",
        maker=("farmer", "owner"),
        maker_category=COUNTRY,
        thing=("field", "crop"),
        thing_category=MATERIAL,
        thing_numbers=(WEIGHT, PRICE),
        person=("buyer", "client"),
        person_category=CITY,
        use=("harvest",),
        use_numbers=AMOUNT,
    ),
    Domain(
        name="cinema",
        maker=("director", "studio"),
        maker_category=COUNTRY,
        thing=("film", "movie"),
        thing_category=GENRE,
        thing_numbers=(HOURS, RATING),
        person=("guest",),
        person_category=CITY,
        use=("ticket",),
        use_numbers=PRICE,
    ),
    Domain(
        name="hospital",
        maker=("doctor", "nurse"),
        maker_category=LEVEL,
        thing=("clinic", "ward"),
        thing_category=COLOUR,
        thing_numbers=(AGE, RATING),
        person=("patient",),
        person_category=CITY,
        use=("visit",),
        use_numbers=DAYS,
    ),
)


@dataclass(frozen=True, slots=True)
class Maker:
    """The table that things refer to; also of people."""

    table: str
    label: str
    """Column of unique names."""
    category: str
    pool: Pool


@dataclass(frozen=True, slots=True)
class Thing:
    """The table that most questions ask about."""

    table: str
    label: str
    category: str
    pool: Pool
    numbers: tuple[str, str]
    """Columns of unique numbers."""


@dataclass(frozen=True, slots=True)
class Use:
    """The table between things and people."""

    table: str
    number: str


@dataclass(frozen=True, slots=True)
class Schema:
    """The names of one database; two, three or four tables."""

    domain: str
    maker: Maker
    thing: Thing
    use: Use | None
    """None: two tables."""
    person: Maker | None
    """None: two or three tables; uses then belong to things alone."""

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables, those that others refer to first."""
        others = [item.table for item in (self.person, self.use) if item is not None]
        return (self.maker.table, self.thing.table, *others)


def draw_schema(domain: Domain, random: Random, most_tables: int = 4) -> Schema:
    """Names of a database of the domain. The same generator state, the same names.

    `most_tables`: 2 to 4; what is beyond is left out of the schema.
    """
    has_use, has_person = random.choice(NUM_TABLES)
    has_use = has_use and most_tables > 2  # noqa: PLR2004  # makers and things
    has_person = has_person and most_tables > 3  # noqa: PLR2004  # and uses
    maker = Maker(
        random.choice(domain.maker),
        "name",
        random.choice(domain.maker_category.names),
        domain.maker_category.pool,
    )
    thing = Thing(
        random.choice(domain.thing),
        random.choice(("title", "label")),
        random.choice(domain.thing_category.names),
        domain.thing_category.pool,
        (random.choice(domain.thing_numbers[0]), random.choice(domain.thing_numbers[1])),
    )
    person = Maker(
        random.choice(domain.person),
        "name",
        random.choice(domain.person_category.names),
        domain.person_category.pool,
    )
    use = Use(random.choice(domain.use), random.choice(domain.use_numbers))
    return Schema(
        domain.name, maker, thing, use if has_use else None, person if has_person else None
    )
