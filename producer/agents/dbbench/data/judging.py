"""Judges whether a final answer has the gold's rows: by value, and in order if the gold orders.

    [(1, 'Smith, John'), (2, NULL)]    two rows
    [[3.5]]   (3.5)   3.5              one row of one value
    Anna, 30                           one row of two

Values are numbers, Decimal('3.50'), NULL or None, texts in single or double quotes, and words
without quotes. Quotes in a text are doubled or escaped by a backslash.
"""

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from pydantic import JsonValue

MAX_CHARACTERS: Final = 20_000
MAX_DEPTH: Final = 3
"""Maximum nesting: a list, a row, and one superfluous pair of brackets."""
CLOSING: Final = {"[": "]", "(": ")"}
NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
TOKEN: Final = re.compile(
    r"""\s*(?:
    (?P<mark>[\[\](),])
    | Decimal\(\s*(?P<quote>['"]?)(?P<decimal>[^'"()]*)(?P=quote)\s*\)
    | (?P<quoted>(?>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"))(?=\s*(?:[,)\]]|\Z))
    | (?P<word>[^,\[\]()]+)
    )""",
    re.DOTALL | re.VERBOSE,
)
"""Text without quotes may begin with quoted words, so a quoted value must end at the closing
quote."""
ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


class Literal(NamedTuple):
    """A value as it was written in an answer."""

    readings: tuple[str, ...]
    """Possible meanings as a text: without quotes, and with escapes either resolved or left
    alone."""
    is_quoted: bool

    @property
    def number(self) -> float | None:
        """The value as a number; None if it is not one."""
        text = self.readings[0].strip()
        return float(text) if NUMBER.fullmatch(text) else None

    @property
    def is_null(self) -> bool:
        """Whether the value is NULL."""
        return not self.is_quoted and self.readings[0].lower() in {"null", "none"}


Row = tuple[Literal, ...]


class UnreadableError(ValueError):
    """The text is not a list of rows."""


def read_rows(text: str) -> tuple[Row, ...]:
    """Parse the rows of an answer. Raises UnreadableError."""
    if len(text) > MAX_CHARACTERS:
        raise UnreadableError
    items = _items(_tokens(text.strip()), None, 0)
    # One list or tuple around everything is either the list of rows or the only row.
    if len(items) == 1 and isinstance(items[0], list):
        items = items[0]
    if any(isinstance(item, list) for item in items):
        return tuple(_row(item) for item in items)
    return (_row(items),) if items else ()


def _row(items: "Literal | list[Any]") -> Row:
    if isinstance(items, Literal) or not all(isinstance(item, Literal) for item in items):
        raise UnreadableError
    return tuple(items)


def _tokens(text: str) -> Iterator[Literal | str]:
    """Yield values, brackets and commas."""
    for match in TOKEN.finditer(text):
        if match["mark"]:
            yield match["mark"]
        elif match["quoted"]:
            quote = match["quoted"][0]
            inner = match["quoted"][1:-1].replace(quote * 2, quote)
            yield Literal(_readings(inner), is_quoted=True)
        else:
            written = match["word"] or match["decimal"]
            yield Literal((written.strip(),), is_quoted=False)


def _items(tokens: Iterator[Literal | str], closing: str | None, depth: int) -> list[Any]:
    """Parse values and lists up to the closing bracket, or to the end of the text."""
    items: list[Any] = []
    for token in tokens:
        if token == closing:
            return items
        if isinstance(token, Literal):
            items.append(token)
        elif token in CLOSING and depth < MAX_DEPTH:
            items.append(_items(tokens, CLOSING[token], depth + 1))
        else:
            raise UnreadableError
        following = next(tokens, None)
        if following == closing:
            return items
        if following != ",":
            raise UnreadableError
    if closing is not None:
        raise UnreadableError
    return items


def _readings(inner: str) -> tuple[str, ...]:
    resolved = re.sub(
        r"\\(.)", lambda match: ESCAPES.get(match[1], match[1]), inner, flags=re.DOTALL
    )
    quotes_only = re.sub(r"""\\(['"])""", r"\1", inner)
    return tuple(dict.fromkeys((resolved, quotes_only, inner)))


TOLERANCE: Final = 1e-6
"""Tolerance for numbers, relative or absolute."""

GoldRow = tuple[JsonValue, ...]


def is_right_answer(answer: str, gold: Sequence[GoldRow], *, is_ordered: bool) -> bool:
    """Whether the answer has the gold's rows. A blank answer does not count as having no rows."""
    if not answer.strip():
        return False
    if len(gold) == 1 and len(gold[0]) == 1 and gold[0][0] == answer.strip():
        # A single text without quotes may contain commas, quotes and brackets.
        return True
    try:
        rows = read_rows(answer)
    except UnreadableError:
        return False
    if len(rows) != len(gold):
        return False
    if is_ordered:
        return all(_is_row(row, wanted) for row, wanted in zip(rows, gold, strict=True))
    return _can_be_paired([[_is_row(row, wanted) for row in rows] for wanted in gold])


def _is_row(row: Row, gold: GoldRow) -> bool:
    return len(row) == len(gold) and all(map(is_value, row, gold))


def is_value(written: Literal, gold: JsonValue) -> bool:
    """Whether a value of an answer equals the gold's value."""
    if gold is None:
        return written.is_null
    if isinstance(gold, int | float):
        number = written.number
        return number is not None and _is_close(number, gold)
    return gold in written.readings


def _is_close(number: float, gold: float) -> bool:
    try:
        return math.isclose(number, gold, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    except OverflowError:  # the int is larger than any float
        return False


def _can_be_paired(fits: Sequence[Sequence[bool]]) -> bool:
    """Whether each gold row can be matched to a different row of the answer (bipartite matching).

    Closeness is not transitive, so the first row that fits may be the only one for another gold
    row.
    """
    owner: dict[int, int] = {}
    for start in range(len(fits)):
        parent: dict[int, int] = {}
        queue, free = [start], None
        while queue and free is None:
            gold = queue.pop(0)
            for row, is_fitting in enumerate(fits[gold]):
                if not is_fitting or row in parent:
                    continue
                parent[row] = gold
                if row not in owner:
                    free = row
                    break
                queue.append(owner[row])
        if free is None:
            return False
        while free is not None:
            gold = parent[free]
            previous = next((row for row, held in owner.items() if held == gold), None)
            owner[free] = gold
            if previous is not None:
                del owner[previous]
            free = None if gold == start else previous
    return True
