r"""An agent's final answer, read as rows of values.

    [(1, 'Smith, John'), (2, NULL)]    two rows
    [[3.5]]   (3.5)   3.5              one row of one value
    Anna, 30                           one row of two

Values are numbers, Decimal('3.50'), NULL or None, texts in single or double quotes, and words
without quotes. Quotes in a text are doubled or escaped by a backslash.
"""

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

MAX_CHARACTERS: Final = 20_000
OPENING: Final = "[("
CLOSING: Final = {"[": "]", "(": ")"}
NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
DECIMAL: Final = re.compile(r"""Decimal\(\s*(['"]?)([^'"()]*)\1\s*\)""")
QUOTED: Final = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\"""", re.DOTALL)
ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
WORD: Final = re.compile(r"[^,\[\]()]+")


class Literal(NamedTuple):
    """A value as it was written."""

    readings: tuple[str, ...]
    """What it may mean as a text: without quotes, with escapes resolved or left alone."""
    is_quoted: bool

    @property
    def number(self) -> float | None:
        """As a number; None: it is none."""
        text = self.readings[0].strip()
        return float(text) if NUMBER.fullmatch(text) else None

    @property
    def is_null(self) -> bool:
        """Whether it is NULL."""
        return not self.is_quoted and self.readings[0].lower() in {"null", "none"}


Row = tuple[Literal, ...]


class UnreadableError(ValueError):
    """The text is no list of rows."""


def read_rows(text: str) -> tuple[Row, ...]:
    """The rows of an answer. UnreadableError."""
    if len(text) > MAX_CHARACTERS:
        message = f"it has {len(text):,} characters; {MAX_CHARACTERS:,} are read"
        raise UnreadableError(message)
    items = _Reader(text.strip()).items(end=None)
    # One list or tuple around everything is the list of rows, or the only row.
    if len(items) == 1 and isinstance(items[0], _Group):
        group = items[0]
        if not any(isinstance(item, _Group) for item in group.items):
            return (_row(group.items),) if group.items else ()
        items = group.items
    if any(isinstance(item, _Group) for item in items):
        return tuple(_row(item.items if isinstance(item, _Group) else _mixed()) for item in items)
    return (_row(items),) if items else ()


@dataclass(frozen=True, slots=True)
class _Group:
    items: list["Literal | _Group"]


def _mixed() -> list[Literal | _Group]:
    message = "rows and single values are mixed"
    raise UnreadableError(message)


def _row(items: list[Literal | _Group]) -> Row:
    values = tuple(item for item in items if isinstance(item, Literal))
    if len(values) < len(items):
        message = "a value of a row is a list"
        raise UnreadableError(message)
    return values


class _Reader:
    """Recursive descent of at most three levels: a list, its rows, and one pair of brackets."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def items(self, end: str | None, depth: int = 0) -> list[Literal | _Group]:
        """The items up to the closing bracket, or to the end of the text."""
        found: list[Literal | _Group] = []
        while True:
            self._skip_space()
            if self._ends(end):
                return found
            found.append(self._item(depth))
            self._skip_space()
            if not self._take(","):
                if not self._ends(end):
                    message = f"there is no comma at character {self._place}"
                    raise UnreadableError(message)
                return found

    def _ends(self, end: str | None) -> bool:
        if end is None:
            return self._place >= len(self._text)
        if self._place >= len(self._text):
            message = f"{end} is missing"
            raise UnreadableError(message)
        return self._take(end)

    def _item(self, depth: int) -> Literal | _Group:
        character = self._text[self._place]
        if character in OPENING:
            if depth > 2:  # noqa: PLR2004  # a list, a row, and a pair of brackets too many
                message = "lists are nested too deeply"
                raise UnreadableError(message)
            self._place += 1
            return _Group(self.items(CLOSING[character], depth + 1))
        if match := DECIMAL.match(self._text, self._place):
            self._place = match.end()
            return Literal((match[2].strip(),), is_quoted=False)
        if (match := QUOTED.match(self._text, self._place)) and self._is_whole(match.end()):
            self._place = match.end()
            inner = match[0][1:-1].replace(character * 2, character)
            return Literal(_readings(inner), is_quoted=True)
        match = WORD.match(self._text, self._place)
        if match is None:
            message = f"{character} is not expected at character {self._place}"
            raise UnreadableError(message)
        self._place = match.end()
        return Literal((match[0].strip(),), is_quoted=False)

    def _is_whole(self, end: int) -> bool:
        """Whether a value ends here: 'quoted' words may begin an unquoted text."""
        rest = self._text[end:].lstrip()
        return not rest or rest[0] in ",)]"

    def _skip_space(self) -> None:
        while self._place < len(self._text) and self._text[self._place].isspace():
            self._place += 1

    def _take(self, character: str) -> bool:
        is_next = self._text.startswith(character, self._place)
        self._place += len(character) if is_next else 0
        return is_next


def _readings(inner: str) -> tuple[str, ...]:
    resolved = re.sub(
        r"\\(.)", lambda match: ESCAPES.get(match[1], match[1]), inner, flags=re.DOTALL
    )
    quotes_only = re.sub(r"""\\(['"])""", r"\1", inner)
    return tuple(dict.fromkeys((resolved, quotes_only, inner)))
