"""Drafts of statements of each kind, and of conditions."""

from producer.agents.dbbench.data.scene import Draft, Scene, fill


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
    """The same condition in one of the statements that have one."""
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
