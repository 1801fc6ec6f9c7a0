"""Templates of synthetic questions, each with its gold both as plain SQL and in CoCTE form."""

from dataclasses import dataclass
from random import Random
from typing import Final, Literal

from producer.agents.text_to_sql.data.domains import POOLS, Schema
from producer.process_rewards.cocte import render_cocte

BirdDifficulty = Literal["simple", "moderate", "challenging"]
AGGREGATES: Final = {"average": "AVG", "highest": "MAX", "lowest": "MIN", "total": "SUM"}
DIRECTIONS: Final = {"highest": "DESC", "lowest": "ASC"}
COMPARISONS: Final = {"above": ">", "below": "<"}
NUMBERS: Final = (15, 85)
"""Range of the numbers that columns are compared with: the middle of the columns' range."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A question with its golds, not yet checked against rows."""

    question: str
    sql: str
    cocte: str
    """The gold in CoCTE form."""
    evidence: str


@dataclass(frozen=True, slots=True)
class Template:
    """A kind of question.

    Placeholders in braces stand for a schema's names and for drawn values.
    """

    name: str
    difficulty: BirdDifficulty
    draws: str
    """What to draw, in this order: space-separated kinds of `_drawn`."""
    question: str
    sql: str
    ctes: tuple[tuple[str, str], ...]
    """The CTEs of the gold in CoCTE form: (name, query) pairs."""
    query: str
    """The final query of the gold in CoCTE form."""
    evidence: str = ""
    num_tables: int = 2
    """Minimum number of tables in a schema for this template."""

    def draw(self, schema: Schema, random: Random) -> Draft:
        """Draw a question about a database with this schema."""
        names = _names(schema)
        for kind in self.draws.split():
            names |= _drawn(kind, schema, random)
        ctes = [(name, query.format_map(names)) for name, query in self.ctes]
        return Draft(
            self.question.format_map(names),
            self.sql.format_map(names),
            render_cocte(ctes, self.query.format_map(names)),
            self.evidence.format_map(names),
        )


def _names(schema: Schema) -> dict[str, str]:
    """Placeholder values for a database's tables, columns and joins."""
    thing, maker = schema.thing, schema.maker
    names = {
        "thing": thing.table,
        "a_thing": _a(thing.table),
        "label": thing.label,
        "category": thing.category,
        "maker": maker.table,
        "a_maker": _a(maker.table),
        "maker_label": maker.label,
        "maker_category": maker.category,
        "join_maker": f"JOIN {maker.table} AS T2 ON T1.{maker.table}_id = T2.id",
        "join_thing": f"JOIN {thing.table} AS T2 ON T1.{thing.table}_id = T2.id",
    }
    if (use := schema.use) is not None:
        names |= {"use": use.table, "a_use": _a(use.table), "use_number": use.number}
    if (person := schema.person) is not None:
        names |= {"person": person.table, "person_label": person.label}
    return names


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _drawn(kind: str, schema: Schema, random: Random) -> dict[str, str]:
    """Draw placeholder values of one kind, such as `words` and `condition`, or `number`."""
    numbers = schema.thing.numbers
    if kind == "either":
        found = _drawn(random.choice(("category", "compared")), schema, random)
        return dict(zip(("words", "condition"), found.values(), strict=True))
    if kind in {"category", "maker"}:
        of = schema.thing if kind == "category" else schema.maker
        value = random.choice(POOLS[of.pool])
        return {"words": f"{of.category} {value}", "condition": f"{of.category} = '{value}'"}
    if kind == "compared":
        number, word = random.choice(numbers), random.choice(sorted(COMPARISONS))
        bound = random.randint(*NUMBERS)
        comparison = f"{number} {COMPARISONS[word]} {bound}"
        return {"compared": f"{number} {word} {bound}", "comparison": comparison}
    if kind == "least":
        return {"least": str(random.randint(2, 3))}
    if kind == "number":
        return {"number": random.choice(numbers)}
    functions = {"aggregate": AGGREGATES, "rank": DIRECTIONS}[kind]
    word = random.choice(sorted(functions))
    number, function = random.choice(numbers), functions[word]
    return {
        "word": word,
        "number": number,
        "function": function,
        "means": f"{word} {number} means {function}({number})",
        "order": f"{number} {function}",
    }


ALL_CHOSEN: Final = (("chosen", "SELECT * FROM {thing} WHERE {condition}"),)

TEMPLATES: Final = (
    Template(
        "filter",
        "simple",
        "either",
        "List the {label} of every {thing} with {words}.",
        "SELECT {label} FROM {thing} WHERE {condition}",
        (("chosen", "SELECT {label} FROM {thing} WHERE {condition}"),),
        "SELECT {label} FROM chosen",
    ),
    Template(
        "filter_two",
        "simple",
        "category compared",
        "List the {label} of every {thing} with {words} and {compared}.",
        "SELECT {label} FROM {thing} WHERE {condition} AND {comparison}",
        ALL_CHOSEN,
        "SELECT {label} FROM chosen WHERE {comparison}",
    ),
    Template(
        "count",
        "simple",
        "either",
        "How many {thing} records have {words}?",
        "SELECT COUNT(*) FROM {thing} WHERE {condition}",
        (("chosen", "SELECT id FROM {thing} WHERE {condition}"),),
        "SELECT COUNT(*) FROM chosen",
    ),
    Template(
        "aggregate",
        "simple",
        "aggregate category",
        "What is the {word} {number} of the {thing} records with {words}?",
        "SELECT {function}({number}) FROM {thing} WHERE {condition}",
        (("chosen", "SELECT {number} FROM {thing} WHERE {condition}"),),
        "SELECT {function}({number}) FROM chosen",
        "{means}",
    ),
    Template(
        "top",
        "simple",
        "rank",
        "Which {thing} has the {word} {number}? Give the {label}.",
        "SELECT {label} FROM {thing} ORDER BY {order} LIMIT 1",
        (("ranked", "SELECT {label} FROM {thing} ORDER BY {order} LIMIT 1"),),
        "SELECT {label} FROM ranked",
    ),
    Template(
        "top_three",
        "moderate",
        "rank category",
        "List the {label} of the 3 {thing} records with {words} and the {word} {number}.",
        "SELECT {label} FROM {thing} WHERE {condition} ORDER BY {order} LIMIT 3",
        ALL_CHOSEN,
        "SELECT {label} FROM chosen ORDER BY {order} LIMIT 3",
    ),
    Template(
        "join_filter",
        "moderate",
        "maker",
        "List the {label} of every {thing} whose {maker} has {words}.",
        "SELECT T1.{label} FROM {thing} AS T1 {join_maker} WHERE T2.{condition}",
        (("chosen", "SELECT id FROM {maker} WHERE {condition}"),),
        "SELECT {label} FROM {thing} WHERE {maker}_id IN (SELECT id FROM chosen)",
    ),
    Template(
        "join_aggregate",
        "moderate",
        "aggregate maker",
        "What is the {word} {number} of the {thing} records whose {maker} has {words}?",
        "SELECT {function}(T1.{number}) FROM {thing} AS T1 {join_maker} WHERE T2.{condition}",
        (
            ("chosen", "SELECT id FROM {maker} WHERE {condition}"),
            ("joined", "SELECT {number} FROM {thing} WHERE {maker}_id IN (SELECT id FROM chosen)"),
        ),
        "SELECT {function}({number}) FROM joined",
        "{means}",
    ),
    Template(
        "group_count",
        "moderate",
        "compared",
        "How many {thing} records with {compared} are there for every {category}?",
        "SELECT {category}, COUNT(*) FROM {thing} WHERE {comparison} GROUP BY {category}",
        (("chosen", "SELECT * FROM {thing} WHERE {comparison}"),),
        "SELECT {category}, COUNT(*) FROM chosen GROUP BY {category}",
    ),
    Template(
        "group_aggregate",
        "moderate",
        "aggregate",
        "What is the {word} {number} of the {thing} records for every {maker_category} of"
        " {a_maker}?",
        "SELECT T2.{maker_category}, {function}(T1.{number}) FROM {thing} AS T1 {join_maker}"
        " GROUP BY T2.{maker_category}",
        (("joined", "SELECT T2.{maker_category}, T1.{number} FROM {thing} AS T1 {join_maker}"),),
        "SELECT {maker_category}, {function}({number}) FROM joined GROUP BY {maker_category}",
        "{means}",
    ),
    Template(
        "used",
        "moderate",
        "category",
        "What is the total {use_number} of every {use} of {a_thing} with {words}?",
        "SELECT SUM(T1.{use_number}) FROM {use} AS T1 {join_thing} WHERE T2.{condition}",
        (
            ("chosen", "SELECT id FROM {thing} WHERE {condition}"),
            (
                "linked",
                "SELECT {use_number} FROM {use} WHERE {thing}_id IN (SELECT id FROM chosen)",
            ),
        ),
        "SELECT SUM({use_number}) FROM linked",
        "total {use_number} means SUM({use_number})",
        num_tables=3,
    ),
    Template(
        "having",
        "challenging",
        "least",
        "Which {maker} has more than {least} {thing} records? Give the {maker_label}.",
        "SELECT T2.{maker_label} FROM {thing} AS T1 {join_maker} GROUP BY T2.id"
        " HAVING COUNT(*) > {least}",
        (
            ("counted", "SELECT {maker}_id, COUNT(*) AS records FROM {thing} GROUP BY {maker}_id"),
            ("chosen", "SELECT {maker}_id FROM counted WHERE records > {least}"),
        ),
        "SELECT {maker_label} FROM {maker} WHERE id IN (SELECT {maker}_id FROM chosen)",
        "more than {least} means COUNT(*) > {least}",
    ),
    Template(
        "above_average",
        "challenging",
        "number category",
        "List the {label} of every {thing} with {words} and {number} above the average {number} of"
        " every {thing}.",
        "SELECT {label} FROM {thing} WHERE {condition} AND {number} >"
        " (SELECT AVG({number}) FROM {thing})",
        (("measured", "SELECT AVG({number}) AS value FROM {thing}"), *ALL_CHOSEN),
        "SELECT {label} FROM chosen WHERE {number} > (SELECT value FROM measured)",
    ),
    Template(
        "most",
        "challenging",
        "number category",
        "Which {maker_category} of {a_maker} has the highest total {number} of the {thing} records"
        " with {words}?",
        "SELECT T2.{maker_category} FROM {thing} AS T1 {join_maker} WHERE T1.{condition}"
        " GROUP BY T2.{maker_category} ORDER BY SUM(T1.{number}) DESC LIMIT 1",
        (
            ("chosen", "SELECT {maker}_id, {number} FROM {thing} WHERE {condition}"),
            ("joined", "SELECT T2.{maker_category}, T1.{number} FROM chosen AS T1 {join_maker}"),
            (
                "measured",
                "SELECT {maker_category}, SUM({number}) AS value FROM joined"
                " GROUP BY {maker_category}",
            ),
        ),
        "SELECT {maker_category} FROM measured ORDER BY value DESC LIMIT 1",
        "total {number} means SUM({number})",
    ),
    Template(
        "without",
        "challenging",
        "category",
        "List the {maker_label} of every {maker} without {a_thing} with {words}.",
        "SELECT {maker_label} FROM {maker} WHERE id NOT IN"
        " (SELECT {maker}_id FROM {thing} WHERE {condition})",
        (("chosen", "SELECT {maker}_id FROM {thing} WHERE {condition}"),),
        "SELECT {maker_label} FROM {maker} WHERE id NOT IN (SELECT {maker}_id FROM chosen)",
    ),
    Template(
        "people",
        "challenging",
        "category",
        "List the {person_label} of every {person} with {a_use} of {a_thing} with {words}.",
        "SELECT DISTINCT T3.{person_label} FROM {use} AS T1 {join_thing}"
        " JOIN {person} AS T3 ON T1.{person}_id = T3.id WHERE T2.{condition}",
        (
            ("chosen", "SELECT id FROM {thing} WHERE {condition}"),
            ("linked", "SELECT {person}_id FROM {use} WHERE {thing}_id IN (SELECT id FROM chosen)"),
        ),
        "SELECT {person_label} FROM {person} WHERE id IN (SELECT {person}_id FROM linked)",
        num_tables=4,
    ),
)
