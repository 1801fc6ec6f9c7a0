"""SQL as text: finds the SQL in a completion, and tells code from comments and strings.

A linear-time scanner instead of a parser, because it must split whatever a policy wrote, unfinished
or hostile.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import regex as re

from producer.process_rewards.fences import FENCE_LINE, blocks, opened
from producer.thoughts import BLOCK_LITERAL, QUERY_LITERAL, hide_thoughts

SQL_LITERALS: Final = f"{BLOCK_LITERAL}|{QUERY_LITERAL}"
"""Matches parts of a completion that may quote a thought's tags."""
SQL_LANGUAGES: Final = frozenset(
    {"sql", "sqlite", "sqlite3", "mysql", "mariadb", "postgres", "postgresql", "psql", "duckdb"}
    | {"tsql", "mssql", "plsql", "pgsql", "plpgsql"}
)
"""Language names of fenced blocks that hold SQL."""
QUOTED: Final = re.compile(
    r"""
    '(?:[^']|'')*+(?:'|\Z)
    | "(?:[^"]|"")*+(?:"|\Z)
    | `(?:[^`]|``)*+(?:`|\Z)
    | \[[^\]]*+(?:\]|\Z)
    """,
    re.VERBOSE,
)
"""Matches a string or a quoted name as SQLite reads it; an unclosed one ends with the text."""
COMMENT: Final = re.compile(r"--[^\n]*+|/\*.*?(?:\*/|\Z)", re.DOTALL)
COMMENTED: Final = "\0"
"""Replaces each character of a comment in a skeleton. It cannot occur in SQL, because SQLite
rejects it."""
_PIECE: Final = re.compile(
    rf"(?P<comment>{COMMENT.pattern})|(?P<quoted>{QUOTED.pattern})|(?P<bracket>[()])",
    re.DOTALL | re.VERBOSE,
)
_NAME: Final = r"(?:\w++|(?:'[^']*+')++|(?:\"[^\"]*+\")++|(?:`[^`]*+`)++|\[[^\]]*+\])"
_QUERY: Final = re.compile(
    rf"\s*+(?:\(\s*+)*+(?:SELECT\b|VALUES\s*+\(|"
    rf"WITH\s++(?:RECURSIVE\s++)?{_NAME}\s*+(?:\([^()]*+\)\s*+)?AS\b)",
    re.IGNORECASE,
)
"""The pattern is strict because sentences may begin with `With` or `Values` too."""
_ANSWER: Final = re.compile(
    r"\s*+<(?P<tag>answer|response)>(?P<inside>[\s\S]*?)(?:</(?P=tag)>|\Z)", re.IGNORECASE
)
"""The tags that Hunyuan, Ernie and Granite write after a thought."""


class Span(NamedTuple):
    """A part of a text."""

    start: int
    """Index of its first character."""
    end: int
    """Index after its last character."""


class Skeleton(NamedTuple):
    """SQL of which only the top-level code is visible; it has the length of the original."""

    text: str
    """Comments are replaced by `COMMENTED`, the contents of parentheses by spaces, and the contents
    of quotes by `x`."""
    max_depth: int
    """Depth of nested parentheses."""


def find_sql(completion: str) -> Span | None:
    """Locate a completion's SQL: the whole text if it is a query, else its last SQL block.

    Thoughts are skipped. A query ends at a line that begins with a fence, because the prompt may
    have opened the block. An unclosed block ends with the completion. A block that names SQL is
    preferred to one without a language, and one that is a query to one that is not: what follows a
    query is often its result. A block in another language counts as SQL if it is a query. If a
    completion begins with `<answer>` or `<response>`, the inside is searched first. Returns None if
    there is neither a query nor a block that is not blank.
    """
    completion = hide_thoughts(completion, SQL_LITERALS)
    answer = _ANSWER.match(completion)
    if answer is not None:
        before = _spaces(completion[: answer.start("inside")])
        within = _sql_in(before + answer["inside"])
        if within is not None:
            return within
    return _sql_in(completion)


def _sql_in(completion: str) -> Span | None:
    best: tuple[bool, bool] = (False, False)
    found = None
    for span, names_sql, begins_as_query in _blocks(completion):
        rank = (names_sql, begins_as_query)
        if rank >= best:
            found, best = span, rank
    fence = FENCE_LINE.search(completion)
    opens_sql = fence is not None and opened(completion, fence.end())[1] in SQL_LANGUAGES
    if is_query(completion) and not opens_sql and best != (True, True):
        return _stripped(completion, 0, len(completion) if fence is None else fence.start())
    return found


def _blocks(completion: str) -> Iterator[tuple[Span, bool, bool]]:
    """Yield every SQL block that is not blank, whether it names SQL, and whether it is a query."""
    for start, end, language in blocks(completion):
        span = _stripped(completion, start, end)
        if span is not None:
            begins_as_query = is_query(completion[span.start : span.end])
            if begins_as_query or language in {"", *SQL_LANGUAGES}:
                yield span, language in SQL_LANGUAGES, begins_as_query


def is_query(text: str) -> bool:
    """Whether the text begins like a query, ignoring comments."""
    return _QUERY.match(COMMENT.sub(" ", text)) is not None


def skeleton(sql: str) -> Skeleton:
    """Hide everything in the SQL except code at its top level."""
    hidden: list[str] = []
    depth = max_depth = at = 0
    for piece in _PIECE.finditer(sql):
        between, text = sql[at : piece.start()], piece[0]
        at = piece.end()
        hidden.append(_spaces(between) if depth else between)
        depth -= piece["bracket"] == ")" and depth > 0
        if depth:
            hidden.append(_spaces(text))
        elif piece["comment"]:
            hidden.append(COMMENTED * len(text))
        elif piece["bracket"]:
            hidden.append(text)
        else:
            hidden.append(text[0] + "x" * (len(text) - 2) + text[-1] if len(text) > 1 else text)
        depth += piece["bracket"] == "("
        max_depth = max(max_depth, depth)
    hidden.append(_spaces(sql[at:]) if depth else sql[at:])
    return Skeleton("".join(hidden), max_depth)


def _spaces(text: str) -> str:
    return " " * len(text)


def _stripped(text: str, start: int, end: int) -> Span | None:
    inside = text[start:end]
    left = len(inside) - len(inside.lstrip())
    length = len(inside.strip())
    return Span(start + left, start + left + length) if length else None
