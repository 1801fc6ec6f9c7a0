"""Drafts of groups, their conditions, and subqueries."""

from producer.agents.dbbench.data.scene import Draft, Scene
from producer.agents.dbbench.data.words import OPERATORS


def group_by_single(scene: Scene) -> Draft:
    """An aggregate for each value."""
    group, (aggregate, words) = scene.group().name, scene.aggregate()
    return Draft(
        f"SELECT {group}, {aggregate} FROM {scene.theme.table} GROUP BY {group}",
        f"For each {group}, what are the {group} and {words}?",
    )


def group_by_multiple(scene: Scene) -> Draft:
    """An aggregate for each pair of values among few rows."""
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
    """An aggregate, its words, and a number near its values."""
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
