"""The device queries as documents and messages describe them."""

from typing import NamedTuple

from producer.agents.android.queries import PARAMETRIC, QUERIES, find_query
from producer.errors import did_you_mean


class DescribedQuery(NamedTuple):
    """A query as documents and `cua-train tasks queries` show it."""

    query: str
    """Its name; a parameter is in capitals."""
    answers: str
    """What it answers."""
    commands: tuple[str, ...]
    """What it asks of the device's shell."""


def describe_queries() -> list[DescribedQuery]:
    """Every query, those with a parameter last."""
    named = list(QUERIES.items())
    named += [
        (f"{prefix}{family.parameter}", family.make(family.parameter))
        for prefix, family in PARAMETRIC.items()
    ]
    return [DescribedQuery(name, query.answer.description, query.commands) for name, query in named]


def describe_unknown_query(name: str) -> str:
    """Why `name` is no query, with the closest name or, if none is close, all of them."""
    names = [describe_query.query for describe_query in describe_queries()]
    hint = did_you_mean(name, names) or f" The queries are {', '.join(names)}"
    return f"unknown device query {name!r}.{hint}"


def describe_wrong_answer(name: str, expected: str) -> str | None:
    """Why the query `name` can never answer `expected`; None if it can, or there is no such query.

    The text begins with the name of the field.
    """
    query = find_query(name)
    if query is None or query.answer.allows(expected):
        return None
    return f"expected: {name} answers {query.answer.description}, never {expected!r}"
