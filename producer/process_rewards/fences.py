"""Fenced blocks of Markdown, as policies write them.

    ```sql title="cheap books"
    SELECT count(*) FROM book WHERE price < 9
    ```

As in CommonMark, a fence has three or more backticks or tildes and is closed by at least as many of
the same. Unlike in CommonMark, backticks may open and close a block within a line, and a fence
alone on its line that names a language opens a block even if the one before was not closed.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import regex as re

FENCE: Final = "```"
FENCE_LINE: Final = re.compile(r"^[ \t]*+(?:`{3,}+|~{3,}+)", re.MULTILINE)
_FENCE: Final = re.compile(r"^(?P<line>[ \t]*+)(?:`{3,}+|~{3,}+)|`{3,}+", re.MULTILINE)
_WORD: Final = r"\w[\w+#./-]*+"
_INFO: Final = re.compile(
    rf"""
    [ \t]*+
    (?: \{{[ \t]*+\.?(?P<braced>{_WORD})[^}}`\n]*+\}}[ \t]*+(?=\r?\n)
    | (?P<named>{_WORD})?+(?:[:,{{][^`\n]*+ | [ \t]++(?:\{{|[\w-]++=)[^`\n]*+ | [ \t]*+)(?=\r?\n)
    | (?P<inline>sqlite|sql)\b
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Matches `sql`, `sql title="x"`, `sql {.numberLines}`, `{sql}`, `SQL:query.sql`, or SQL on the
same line."""
_NAMES: Final = re.compile(rf"[ \t]*+{_WORD}[ \t]*+\r?\n")


class Block(NamedTuple):
    """The content between two fences."""

    start: int
    """Index of its first character."""
    end: int
    """Index after its last character; the text's end if the block is not closed."""
    language: str
    """Lower-case letters and digits: `sql`, or `tsql` for `T-SQL`; empty if no language is
    named."""


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a text in order. Takes linear time."""
    fence = language = ""
    start = 0
    for found in _FENCE.finditer(text):
        run = found[0].lstrip()
        names = found["line"] is not None and _NAMES.match(text, found.end()) is not None
        if fence:
            closes = run[0] == fence[0] and len(run) >= len(fence)
            if not closes and not names:
                continue
            yield Block(start, found.start(), language)
            fence = ""
            if not names:
                continue
        start, language = opened(text, found.end())
        fence = run
    if fence:
        yield Block(start, len(text), language)


def opened(text: str, at: int) -> tuple[int, str]:
    """Start of a block's text and its language, given the end `at` of its opening fence."""
    info = _INFO.match(text, at)
    if info is None:
        return at, ""
    name = info["braced"] or info["named"] or info["inline"] or ""
    return info.end(), re.sub(r"[\W_]", "", name).lower()
