"""Drafts of orders, limits and aliases."""

from producer.agents.dbbench.data.scene import Draft, Scene
from producer.agents.dbbench.data.words import ALIASES, TABLE_ALIASES


def order_by_single(scene: Scene) -> Draft:
    """Few rows, in the order of the unique number."""
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
