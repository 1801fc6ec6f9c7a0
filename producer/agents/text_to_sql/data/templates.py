"""Templates of synthetic questions, each with its gold as plain SQL and as CoCTE."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final, Literal

from producer.agents.text_to_sql.data.domains import Schema
from producer.agents.text_to_sql.data.words import POOLS
from producer.process_rewards.cocte import render_cocte

BirdDifficulty = Literal["simple", "moderate", "challenging"]
AGGREGATES: Final = {"average": "AVG", "highest": "MAX", "lowest": "MIN", "total": "SUM"}
DIRECTIONS: Final = {"highest": "DESC", "lowest": "ASC"}
COMPARISONS: Final = {"above": ">", "below": "<"}
NUMBERS: Final = (15, 85)
"""That columns are compared with: in the middle of their range."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A question with its golds, not yet checked against rows."""

    question: str
    sql: str
    ctes: tuple[tuple[str, str], ...]
    """Of the gold in CoCTE form: (name, query)."""
    query: str
    """Its last step."""
    evidence: str = ""

    @property
    def cocte(self) -> str:
        """The gold in CoCTE form."""
        return render_cocte(self.ctes, self.query)


@dataclass(frozen=True, slots=True)
class Template:
    """A kind of question."""

    name: str
    difficulty: BirdDifficulty
    draw: Callable[[Schema, Random], Draft]
    num_tables: int = 2
    """That a schema needs."""


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _where_category(schema: Schema, random: Random) -> tuple[str, str]:
    """(words, condition) on a thing's category."""
    value = random.choice(POOLS[schema.thing.pool])
    return f"{schema.thing.category} {value}", f"{schema.thing.category} = '{value}'"


def _where_number(schema: Schema, random: Random) -> tuple[str, str]:
    number, word = random.choice(schema.thing.numbers), random.choice(sorted(COMPARISONS))
    value = random.randint(*NUMBERS)
    return f"{number} {word} {value}", f"{number} {COMPARISONS[word]} {value}"


def _where_maker(schema: Schema, random: Random) -> tuple[str, str]:
    value = random.choice(POOLS[schema.maker.pool])
    return f"{schema.maker.category} {value}", f"{schema.maker.category} = '{value}'"


def _filter(schema: Schema, random: Random) -> Draft:
    thing = schema.thing
    words, condition = random.choice((_where_category, _where_number))(schema, random)
    return Draft(
        f"List the {thing.label} of every {thing.table} with {words}.",
        f"SELECT {thing.label} FROM {thing.table} WHERE {condition}",
        (("chosen", f"SELECT {thing.label} FROM {thing.table} WHERE {condition}"),),
        f"SELECT {thing.label} FROM chosen",
    )


def _filter_two(schema: Schema, random: Random) -> Draft:
    thing = schema.thing
    words, condition = _where_category(schema, random)
    more, other = _where_number(schema, random)
    return Draft(
        f"List the {thing.label} of every {thing.table} with {words} and {more}.",
        f"SELECT {thing.label} FROM {thing.table} WHERE {condition} AND {other}",
        (("chosen", f"SELECT * FROM {thing.table} WHERE {condition}"),),
        f"SELECT {thing.label} FROM chosen WHERE {other}",
    )


def _count(schema: Schema, random: Random) -> Draft:
    thing = schema.thing
    words, condition = random.choice((_where_category, _where_number))(schema, random)
    return Draft(
        f"How many {thing.table} records have {words}?",
        f"SELECT COUNT(*) FROM {thing.table} WHERE {condition}",
        (("chosen", f"SELECT id FROM {thing.table} WHERE {condition}"),),
        "SELECT COUNT(*) FROM chosen",
    )


def _aggregate(schema: Schema, random: Random) -> Draft:
    thing, word = schema.thing, random.choice(sorted(AGGREGATES))
    number, function = random.choice(thing.numbers), AGGREGATES[word]
    words, condition = _where_category(schema, random)
    return Draft(
        f"What is the {word} {number} of the {thing.table} records with {words}?",
        f"SELECT {function}({number}) FROM {thing.table} WHERE {condition}",
        (("chosen", f"SELECT {number} FROM {thing.table} WHERE {condition}"),),
        f"SELECT {function}({number}) FROM chosen",
        f"{word} {number} means {function}({number})",
    )


def _top(schema: Schema, random: Random) -> Draft:
    thing, word = schema.thing, random.choice(sorted(DIRECTIONS))
    number = random.choice(thing.numbers)
    order = f"ORDER BY {number} {DIRECTIONS[word]} LIMIT 1"
    return Draft(
        f"Which {thing.table} has the {word} {number}? Give the {thing.label}.",
        f"SELECT {thing.label} FROM {thing.table} {order}",
        (("ranked", f"SELECT {thing.label} FROM {thing.table} {order}"),),
        f"SELECT {thing.label} FROM ranked",
    )


def _top_three(schema: Schema, random: Random) -> Draft:
    thing, word = schema.thing, random.choice(sorted(DIRECTIONS))
    number = random.choice(thing.numbers)
    words, condition = _where_category(schema, random)
    order = f"ORDER BY {number} {DIRECTIONS[word]} LIMIT 3"
    return Draft(
        f"List the {thing.label} of the 3 {thing.table} records with {words} and the {word}"
        f" {number}.",
        f"SELECT {thing.label} FROM {thing.table} WHERE {condition} {order}",
        (("chosen", f"SELECT * FROM {thing.table} WHERE {condition}"),),
        f"SELECT {thing.label} FROM chosen {order}",
    )


def _join_filter(schema: Schema, random: Random) -> Draft:
    maker, thing = schema.maker, schema.thing
    words, condition = _where_maker(schema, random)
    return Draft(
        f"List the {thing.label} of every {thing.table} whose {maker.table} has {words}.",
        f"SELECT T1.{thing.label} FROM {thing.table} AS T1 JOIN {maker.table} AS T2"
        f" ON T1.{maker.table}_id = T2.id WHERE T2.{condition}",
        (("chosen", f"SELECT id FROM {maker.table} WHERE {condition}"),),
        f"SELECT {thing.label} FROM {thing.table} WHERE {maker.table}_id IN"
        " (SELECT id FROM chosen)",
    )


def _join_aggregate(schema: Schema, random: Random) -> Draft:
    maker, thing, word = schema.maker, schema.thing, random.choice(sorted(AGGREGATES))
    number, function = random.choice(thing.numbers), AGGREGATES[word]
    words, condition = _where_maker(schema, random)
    return Draft(
        f"What is the {word} {number} of the {thing.table} records whose {maker.table} has"
        f" {words}?",
        f"SELECT {function}(T1.{number}) FROM {thing.table} AS T1 JOIN {maker.table} AS T2"
        f" ON T1.{maker.table}_id = T2.id WHERE T2.{condition}",
        (
            ("chosen", f"SELECT id FROM {maker.table} WHERE {condition}"),
            (
                "joined",
                f"SELECT {number} FROM {thing.table} WHERE {maker.table}_id IN"
                " (SELECT id FROM chosen)",
            ),
        ),
        f"SELECT {function}({number}) FROM joined",
        f"{word} {number} means {function}({number})",
    )


def _group_count(schema: Schema, random: Random) -> Draft:
    thing = schema.thing
    words, condition = _where_number(schema, random)
    return Draft(
        f"How many {thing.table} records with {words} are there for every {thing.category}?",
        f"SELECT {thing.category}, COUNT(*) FROM {thing.table} WHERE {condition}"
        f" GROUP BY {thing.category}",
        (("chosen", f"SELECT * FROM {thing.table} WHERE {condition}"),),
        f"SELECT {thing.category}, COUNT(*) FROM chosen GROUP BY {thing.category}",
    )


def _group_aggregate(schema: Schema, random: Random) -> Draft:
    maker, thing, word = schema.maker, schema.thing, random.choice(sorted(AGGREGATES))
    number, function = random.choice(thing.numbers), AGGREGATES[word]
    return Draft(
        f"What is the {word} {number} of the {thing.table} records for every {maker.category} of"
        f" {_a(maker.table)}?",
        f"SELECT T2.{maker.category}, {function}(T1.{number}) FROM {thing.table} AS T1"
        f" JOIN {maker.table} AS T2 ON T1.{maker.table}_id = T2.id GROUP BY T2.{maker.category}",
        (
            (
                "joined",
                f"SELECT T2.{maker.category}, T1.{number} FROM {thing.table} AS T1"
                f" JOIN {maker.table} AS T2 ON T1.{maker.table}_id = T2.id",
            ),
        ),
        f"SELECT {maker.category}, {function}({number}) FROM joined GROUP BY {maker.category}",
        f"{word} {number} means {function}({number})",
    )


def _having(schema: Schema, random: Random) -> Draft:
    maker, thing, least = schema.maker, schema.thing, random.randint(2, 3)
    return Draft(
        f"Which {maker.table} has more than {least} {thing.table} records? Give the {maker.label}.",
        f"SELECT T2.{maker.label} FROM {thing.table} AS T1 JOIN {maker.table} AS T2"
        f" ON T1.{maker.table}_id = T2.id GROUP BY T2.id HAVING COUNT(*) > {least}",
        (
            (
                "counted",
                f"SELECT {maker.table}_id, COUNT(*) AS records FROM {thing.table}"
                f" GROUP BY {maker.table}_id",
            ),
            ("chosen", f"SELECT {maker.table}_id FROM counted WHERE records > {least}"),
        ),
        f"SELECT {maker.label} FROM {maker.table} WHERE id IN"
        f" (SELECT {maker.table}_id FROM chosen)",
        f"more than {least} means COUNT(*) > {least}",
    )


def _above_average(schema: Schema, random: Random) -> Draft:
    thing, number = schema.thing, random.choice(schema.thing.numbers)
    words, condition = _where_category(schema, random)
    return Draft(
        f"List the {thing.label} of every {thing.table} with {words} and {number} above the"
        f" average {number} of every {thing.table}.",
        f"SELECT {thing.label} FROM {thing.table} WHERE {condition} AND {number} >"
        f" (SELECT AVG({number}) FROM {thing.table})",
        (
            ("measured", f"SELECT AVG({number}) AS value FROM {thing.table}"),
            ("chosen", f"SELECT * FROM {thing.table} WHERE {condition}"),
        ),
        f"SELECT {thing.label} FROM chosen WHERE {number} > (SELECT value FROM measured)",
    )


def _most(schema: Schema, random: Random) -> Draft:
    maker, thing, number = schema.maker, schema.thing, random.choice(schema.thing.numbers)
    words, condition = _where_category(schema, random)
    return Draft(
        f"Which {maker.category} of {_a(maker.table)} has the highest total {number} of the"
        f" {thing.table} records with {words}?",
        f"SELECT T2.{maker.category} FROM {thing.table} AS T1 JOIN {maker.table} AS T2"
        f" ON T1.{maker.table}_id = T2.id WHERE T1.{condition} GROUP BY T2.{maker.category}"
        f" ORDER BY SUM(T1.{number}) DESC LIMIT 1",
        (
            ("chosen", f"SELECT {maker.table}_id, {number} FROM {thing.table} WHERE {condition}"),
            (
                "joined",
                f"SELECT T2.{maker.category}, T1.{number} FROM chosen AS T1 JOIN {maker.table}"
                f" AS T2 ON T1.{maker.table}_id = T2.id",
            ),
            (
                "measured",
                f"SELECT {maker.category}, SUM({number}) AS value FROM joined"
                f" GROUP BY {maker.category}",
            ),
        ),
        f"SELECT {maker.category} FROM measured ORDER BY value DESC LIMIT 1",
        f"total {number} means SUM({number})",
    )


def _without(schema: Schema, random: Random) -> Draft:
    maker, thing = schema.maker, schema.thing
    words, condition = _where_category(schema, random)
    return Draft(
        f"List the {maker.label} of every {maker.table} without {_a(thing.table)} with {words}.",
        f"SELECT {maker.label} FROM {maker.table} WHERE id NOT IN"
        f" (SELECT {maker.table}_id FROM {thing.table} WHERE {condition})",
        (("chosen", f"SELECT {maker.table}_id FROM {thing.table} WHERE {condition}"),),
        f"SELECT {maker.label} FROM {maker.table} WHERE id NOT IN"
        f" (SELECT {maker.table}_id FROM chosen)",
    )


def _used(schema: Schema, random: Random) -> Draft:
    thing, use = schema.thing, schema.use
    assert use is not None  # noqa: S101  # num_tables
    words, condition = _where_category(schema, random)
    return Draft(
        f"What is the total {use.number} of every {use.table} of {_a(thing.table)} with {words}?",
        f"SELECT SUM(T1.{use.number}) FROM {use.table} AS T1 JOIN {thing.table} AS T2"
        f" ON T1.{thing.table}_id = T2.id WHERE T2.{condition}",
        (
            ("chosen", f"SELECT id FROM {thing.table} WHERE {condition}"),
            (
                "linked",
                f"SELECT {use.number} FROM {use.table} WHERE {thing.table}_id IN"
                " (SELECT id FROM chosen)",
            ),
        ),
        f"SELECT SUM({use.number}) FROM linked",
        f"total {use.number} means SUM({use.number})",
    )


def _people(schema: Schema, random: Random) -> Draft:
    thing, use, person = schema.thing, schema.use, schema.person
    assert use is not None  # noqa: S101  # num_tables
    assert person is not None  # noqa: S101
    words, condition = _where_category(schema, random)
    return Draft(
        f"List the {person.label} of every {person.table} with {_a(use.table)} of {_a(thing.table)}"
        f" with {words}.",
        f"SELECT DISTINCT T3.{person.label} FROM {use.table} AS T1 JOIN {thing.table} AS T2"
        f" ON T1.{thing.table}_id = T2.id JOIN {person.table} AS T3"
        f" ON T1.{person.table}_id = T3.id WHERE T2.{condition}",
        (
            ("chosen", f"SELECT id FROM {thing.table} WHERE {condition}"),
            (
                "linked",
                f"SELECT {person.table}_id FROM {use.table} WHERE {thing.table}_id IN"
                " (SELECT id FROM chosen)",
            ),
        ),
        f"SELECT {person.label} FROM {person.table} WHERE id IN"
        f" (SELECT {person.table}_id FROM linked)",
    )


TEMPLATES: Final = (
    Template("filter", "simple", _filter),
    Template("filter_two", "simple", _filter_two),
    Template("count", "simple", _count),
    Template("aggregate", "simple", _aggregate),
    Template("top", "simple", _top),
    Template("top_three", "moderate", _top_three),
    Template("join_filter", "moderate", _join_filter),
    Template("join_aggregate", "moderate", _join_aggregate),
    Template("group_count", "moderate", _group_count),
    Template("group_aggregate", "moderate", _group_aggregate),
    Template("used", "moderate", _used, num_tables=3),
    Template("having", "challenging", _having),
    Template("above_average", "challenging", _above_average),
    Template("most", "challenging", _most),
    Template("without", "challenging", _without),
    Template("people", "challenging", _people, num_tables=4),
)
