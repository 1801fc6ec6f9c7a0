"""Closed pools of words: every name and value of a synthetic database comes from here.

A small policy has a token for each of them (`closed_vocabulary`).
"""

from typing import Final, Literal

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
TABLE_NAMES: Final = (
    "author book reader loan maker product client purchase teacher course student enrolment farmer"
    " field buyer harvest director film guest ticket doctor clinic patient visit publisher novel"
    " brand item trainer lesson owner crop studio movie nurse ward"
)
COLUMN_NAMES: Final = (
    "id name title label country home genre topic colour tint material kind level grade city place"
    " price cost age years rating score pages length hours duration weight amount quantity days fee"
)
"""A foreign key is a table's name with `_id`."""
STEP_NAMES: Final = "chosen joined counted ranked measured linked records value"
"""Of CTEs and their columns."""
QUESTION_WORDS: Final = (
    "List the of every with and above below How many records have What is average highest lowest"
    " total Which has Give for are there whose more than without a an means"
)
SQL_WORDS: Final = (
    "CREATE TABLE INTEGER TEXT PRIMARY KEY FOREIGN REFERENCES NOT WITH AS SELECT DISTINCT FROM JOIN"
    " ON WHERE AND IN GROUP BY HAVING ORDER ASC DESC LIMIT COUNT AVG MIN MAX SUM T1 T2 T3"
)
FRAME_WORDS: Final = "Evidence Question"
"""Of the prompt."""

POOLS: Final[dict[Pool, tuple[str, ...]]] = {
    pool: tuple(words.split()) for pool, words in VALUES.items()
}
"""Words that the rows of a column are drawn from."""
SMALLEST, LARGEST = 1, 99
"""Numbers in a column are between."""


def closed_vocabulary() -> tuple[str, ...]:
    """Every word of every synthetic prompt, gold and row, sorted; numbers apart."""
    words = {word for pool in POOLS.values() for word in pool}
    for names in (
        TABLE_NAMES,
        COLUMN_NAMES,
        STEP_NAMES,
        QUESTION_WORDS,
        SQL_WORDS,
        FRAME_WORDS,
    ):
        words.update(names.split())
    words.update(f"{name}_id" for name in TABLE_NAMES.split())
    return tuple(sorted(words))
