"""Drafts of entries: for each skill, SQL that needs it and an instruction that determines the rows.

Every ORDER BY is total: it ends with a column whose values are unique.
"""

from collections.abc import Callable
from typing import Final

from producer.agents.dbbench.data.scene import ALIASES, OPERATORS, TABLE_ALIASES, Draft, Scene, fill


def group_by_single(scene: Scene) -> Draft:
    """An aggregate for each value of a column."""
    group, (aggregate, words) = scene.group().name, scene.aggregate()
    return Draft(
        f"SELECT {group}, {aggregate} FROM {scene.theme.table} GROUP BY {group}",
        f"For each {group}, what are the {group} and {words}?",
    )


def group_by_multiple(scene: Scene) -> Draft:
    """An aggregate for each pair of values, over few rows."""
    (one, two), (aggregate, words) = scene.theme.groups, scene.aggregate()
    number = scene.unique.name
    sign = scene.random.choice(("<", ">"))
    value = scene.value(number)
    return Draft(
        f"SELECT {one.name}, {two.name}, {aggregate} FROM {scene.theme.table}"
        f" WHERE {number} {sign} {value} GROUP BY {one.name}, {two.name}",
        f"For each {one.name} and {two.name}, what are both and {words}, where the {number} is"
        f" {OPERATORS[sign]} {value}?",
    )


def _having(scene: Scene, condition: str, words: str) -> Draft:
    group = scene.group().name
    return Draft(
        f"SELECT {group} FROM {scene.theme.table} GROUP BY {group} HAVING {condition}",
        f"For each {group}, what is the {group}, having {words}?",
    )


def _bound(scene: Scene) -> tuple[str, str, int]:
    """An aggregate, its wording, and a number near its values."""
    aggregate, words = scene.aggregate()
    size = len(scene.rows) // 5
    if aggregate.startswith("SUM"):
        middle = size * (scene.other.low + scene.other.high) // 2
        return aggregate, words, scene.random.randint(middle // 2, middle)
    if aggregate.startswith("COUNT"):
        return aggregate, words, scene.random.randint(2, size + 2)
    low, high = scene.other.low, scene.other.high
    return aggregate, words, scene.random.randint(low, high)


def having_single(scene: Scene) -> Draft:
    """HAVING a."""
    aggregate, words, value = _bound(scene)
    sign = scene.random.choice(("<", ">"))
    return _having(scene, f"{aggregate} {sign} {value}", f"{words} {OPERATORS[sign]} {value}")


def having_multiple(scene: Scene) -> Draft:
    """HAVING a AND b, or OR."""
    (first, first_words, low), (second, second_words, high) = _bound(scene), _bound(scene)
    word = scene.random.choice(("AND", "OR"))
    return _having(
        scene,
        f"{first} > {low} {word} {second} < {high}",
        f"{first_words} greater than {low} {word.lower()} {second_words} less than {high}",
    )


def having_calculation(scene: Scene) -> Draft:
    """HAVING a - b."""
    name = scene.other.name
    span = scene.other.high - scene.other.low
    value = scene.random.randint(span // 3, span)
    sign = scene.random.choice(("<", ">"))
    if scene.has_luck():
        return _having(
            scene,
            f"MAX({name}) - MIN({name}) {sign} {value}",
            f"the highest {name} minus the lowest {name} {OPERATORS[sign]} {value}",
        )
    total = value + 2 * scene.other.low
    return _having(
        scene,
        f"MAX({name}) + MIN({name}) {sign} {total}",
        f"the highest {name} plus the lowest {name} {OPERATORS[sign]} {total}",
    )


def subquery_single(scene: Scene) -> Draft:
    """Rows compared with one aggregate."""
    table, key = scene.theme.table, scene.random.choice(scene.theme.numbers).name
    function, words = scene.random.choice((("MAX", "highest"), ("MIN", "lowest")))
    return Draft(
        f"SELECT name FROM {table} WHERE {key} = (SELECT {function}({key}) FROM {table})",
        f"What are the names of the {table} with the {words} {key}?",
    )


def subquery_multiple(scene: Scene) -> Draft:
    """Rows compared with two aggregates."""
    table = scene.theme.table
    one, two = scene.unique.name, scene.other.name
    (first, first_words), (second, second_words) = (
        scene.random.choice((("MAX", "highest"), ("MIN", "lowest"))) for _ in range(2)
    )
    return Draft(
        f"SELECT name FROM {table} WHERE {one} = (SELECT {first}({one}) FROM {table})"
        f" OR {two} = (SELECT {second}({two}) FROM {table})",
        f"What are the names of the {table} with the {first_words} {one} or the {second_words}"
        f" {two}?",
    )


def subquery_nested(scene: Scene) -> Draft:
    """Rows compared with an aggregate of the rows that have another aggregate."""
    table = scene.theme.table
    one, two = scene.unique.name, scene.other.name
    (first, first_words), (second, second_words) = (
        scene.random.choice((("MAX", "highest"), ("MIN", "lowest"))) for _ in range(2)
    )
    return Draft(
        f"SELECT name FROM {table} WHERE {one} = (SELECT {first}({one}) FROM {table}"
        f" WHERE {two} = (SELECT {second}({two}) FROM {table}))",
        f"Among the {table} with the {second_words} {two}, which name has the {first_words} {one}?",
    )


def order_by_single(scene: Scene) -> Draft:
    """A few rows, ordered by the unique number."""
    condition, where = scene.condition()
    key, (direction, words) = scene.unique.name, scene.direction()
    return Draft(
        f"SELECT name FROM {scene.theme.table} WHERE {condition} ORDER BY {key} {direction}",
        f"What are the names of the {scene.theme.table} where {where}, sorted by {key} {words}?",
    )


def _order_by_two(scene: Scene, *, same: bool) -> Draft:
    condition, where = scene.condition()
    first, second = scene.other.name, scene.unique.name
    (one, one_words), (two, two_words) = scene.direction(), scene.direction()
    while (one == two) is not same:
        two, two_words = scene.direction()
    table = scene.theme.table
    return Draft(
        f"SELECT name FROM {table} WHERE {condition} ORDER BY {first} {one}, {second} {two}",
        f"What are the names of the {table} where {where}, sorted by {first} {one_words}, then by"
        f" {second} {two_words}?",
    )


def order_by_same(scene: Scene) -> Draft:
    """ORDER BY a, b, or both DESC."""
    return _order_by_two(scene, same=True)


def order_by_different(scene: Scene) -> Draft:
    """ORDER BY a, b DESC, or the other way round."""
    return _order_by_two(scene, same=False)


def limit_only(scene: Scene) -> Draft:
    """The first rows of an order."""
    key, (direction, words) = scene.unique.name, scene.direction()
    count, table = scene.random.randint(1, 4), scene.theme.table
    return Draft(
        f"SELECT name FROM {table} ORDER BY {key} {direction} LIMIT {count}",
        f"What are the names of the first {count} {table}, sorted by {key} {words}?",
    )


def limit_and_offset(scene: Scene) -> Draft:
    """Rows of an order after the first."""
    key, (direction, words) = scene.unique.name, scene.direction()
    count, skipped, table = (
        scene.random.randint(1, 4),
        scene.random.randint(1, 5),
        scene.theme.table,
    )
    return Draft(
        f"SELECT name FROM {table} ORDER BY {key} {direction} LIMIT {count} OFFSET {skipped}",
        f"What are the names of the next {count} {table} after the first {skipped}, sorted by {key}"
        f" {words}?",
    )


def column_alias(scene: Scene) -> Draft:
    """A named column."""
    condition, where = scene.condition()
    column, alias = scene.unique.name, scene.random.choice(ALIASES)
    table = scene.theme.table
    return Draft(
        f"SELECT {column} AS {alias} FROM {table} WHERE {condition}",
        f"What is the {column}, as {alias}, of the {table} where {where}?",
    )


def table_alias(scene: Scene) -> Draft:
    """A named table."""
    alias, table = scene.random.choice(TABLE_ALIASES), scene.theme.table
    condition, where = scene.condition(f"{alias}.")
    return Draft(
        f"SELECT {alias}.name FROM {table} AS {alias} WHERE {condition}",
        f"With the table as {alias}, what are the names of the {table} where {where}?",
    )


def select(scene: Scene) -> Draft:
    """One row of aggregates over the whole table."""
    (first, words), table = scene.aggregate(), scene.theme.table
    return Draft(f"SELECT {first} FROM {table}", f"What is {words} in the table {table}?")


def insert(scene: Scene) -> Draft:
    """One new row."""
    (row,) = fill(scene.theme, scene.random, 1)
    columns = ", ".join(scene.columns)
    values = ", ".join(_literal(value) for value in row)
    pairs = ", ".join(f"{column} {value}" for column, value in zip(scene.columns, row, strict=True))
    table, noun = scene.theme.table, scene.theme.noun
    return Draft(
        f"INSERT INTO {table} ({columns}) VALUES ({values})", f"Insert a new {noun} with {pairs}."
    )


def delete(scene: Scene) -> Draft:
    """Some rows, or all of them."""
    table = scene.theme.table
    if scene.has_luck(0.3):
        return Draft(f"DELETE FROM {table}", f"Delete all {table}.")
    condition, words = scene.condition()
    return Draft(f"DELETE FROM {table} WHERE {condition}", f"Delete the {table} where {words}.")


def update(scene: Scene) -> Draft:
    """One column of some rows, or of all of them."""
    table, assignment, words = scene.theme.table, *_assignment(scene)
    if scene.has_luck(0.3):
        return Draft(f"UPDATE {table} SET {assignment}", f"Set {words} of all {table}.")
    condition, where = scene.condition()
    return Draft(
        f"UPDATE {table} SET {assignment} WHERE {condition}",
        f"Set {words} of the {table} where {where}.",
    )


def _assignment(scene: Scene) -> tuple[str, str]:
    if scene.has_luck():
        group = scene.group()
        value = scene.random.choice(group.values)
        return f"{group.name} = '{value}'", f"the {group.name} to {value}"
    number = scene.random.randint(scene.other.low, scene.other.high)
    return f"{scene.other.name} = {number}", f"the {scene.other.name} to {number}"


def _literal(value: int | str) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def _filtered(scene: Scene, condition: str, words: str) -> Draft:
    """The same condition in one of the statements that support WHERE."""
    table = scene.theme.table
    if scene.has_luck(0.6):
        return Draft(
            f"SELECT name FROM {table} WHERE {condition}",
            f"What are the names of the {table} where {words}?",
        )
    if scene.has_luck():
        return Draft(f"DELETE FROM {table} WHERE {condition}", f"Delete the {table} where {words}.")
    assignment, change = _assignment(scene)
    return Draft(
        f"UPDATE {table} SET {assignment} WHERE {condition}",
        f"Set {change} of the {table} where {words}.",
    )


def where_single(scene: Scene) -> Draft:
    """WHERE a."""
    return _filtered(scene, *scene.condition())


def where_multiple(scene: Scene) -> Draft:
    """WHERE a AND b, or OR."""
    (first, first_words), (second, second_words) = scene.different_conditions(2)
    word = scene.random.choice(("AND", "OR"))
    return _filtered(
        scene, f"{first} {word} {second}", f"{first_words} {word.lower()} {second_words}"
    )


def where_nested(scene: Scene) -> Draft:
    """WHERE (a OR b) AND c, or the other way round."""
    (a, a_words), (b, b_words), (c, c_words) = scene.different_conditions(3)
    if scene.has_luck():
        return _filtered(
            scene, f"({a} OR {b}) AND {c}", f"{c_words} and either {a_words} or {b_words}"
        )
    return _filtered(scene, f"({a} AND {b}) OR {c}", f"{c_words} or both {a_words} and {b_words}")


DRAFTS: Final[dict[str, Callable[[Scene], Draft]]] = {
    "select": select,
    "insert": insert,
    "delete": delete,
    "update": update,
    "where_single_condition": where_single,
    "where_multiple_conditions": where_multiple,
    "where_nested_conditions": where_nested,
    "order_by_single_column": order_by_single,
    "order_by_multiple_columns_same_direction": order_by_same,
    "order_by_multiple_columns_different_directions": order_by_different,
    "limit_only": limit_only,
    "limit_and_offset": limit_and_offset,
    "column_alias": column_alias,
    "table_alias": table_alias,
    "group_by_single_column": group_by_single,
    "group_by_multiple_columns": group_by_multiple,
    "having_single_condition_with_aggregate": having_single,
    "having_multiple_conditions_with_aggregate": having_multiple,
    "having_aggregate_calculation": having_calculation,
    "subquery_single": subquery_single,
    "subquery_multiple": subquery_multiple,
    "subquery_nested": subquery_nested,
}
"""Maps a skill to the function that makes a draft needing it."""
