"""What commands print on stdout: tables fitted to a terminal, or plain aligned columns elsewhere.

rich is imported only when stdout is a terminal; it honours NO_COLOR and the terminal's width.
"""

import shutil
import sys
import unicodedata
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

GAP = "  "


class Column(NamedTuple):
    """One column of a table."""

    name: str
    is_number: bool = False
    """Aligned to the right."""


class Cell(NamedTuple):
    """Text in a colour of its own."""

    text: str
    style: str = ""
    """A rich style: "green", "bold red" ... Only a terminal shows it."""


def is_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()


def terminal_width() -> int:
    """Columns of the terminal; COLUMNS overrides."""
    return shutil.get_terminal_size().columns


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[Cell | str]]) -> None:
    """Print the rows under their headings.

    On a terminal long cells wrap, so that nothing is lost. Elsewhere each row is one line and no
    cell is cut, so that scripts can read it. Control characters are replaced in both.
    """
    cells = [
        [
            Cell(sanitize(cell.text), cell.style)
            if isinstance(cell, Cell)
            else Cell(sanitize(cell))
            for cell in row
        ]
        for row in rows
    ]
    if is_terminal():
        _print_rich(columns, cells)
    else:
        _print_plain(columns, cells)


def _print_rich(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(
            column.name, justify="right" if column.is_number else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(cell.text, cell.style) for cell in row))
    Console().print(table)


def _print_plain(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
    texts = [[column.name for column in columns], *([cell.text for cell in row] for row in rows)]
    widths = [max(map(display_width, texts)) for texts in zip_longest(*texts, fillvalue="")]
    for line in texts:
        padded = (
            " " * (width - display_width(text)) + text
            if column.is_number
            else text + " " * (width - display_width(text))
            for column, text, width in zip(columns, line, widths, strict=True)
        )
        sys.stdout.write(GAP.join(padded).rstrip() + "\n")


def display_width(text: str) -> int:
    """Terminal columns that the text takes: two per wide East Asian character, none per accent."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.combining(character)
        else 2
        if unicodedata.east_asian_width(character) in "WF"
        else 1
        for character in text
    )


def fit(text: str, width: int) -> str:
    """The text in at most `width` terminal columns; an ellipsis marks a cut."""
    if display_width(text) <= width:
        return text
    kept = 0
    for index, character in enumerate(text):
        kept += display_width(character)
        if kept > width - 1:
            return text[:index] + "…"
    return text


def sanitize(text: str) -> str:
    """The text without anything that a terminal would interpret.

    Control, format (bidirectional overrides) and surrogate characters become U+FFFD.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        "\ufffd" if unicodedata.category(character)[0] == "C" else character for character in text
    )


def format_age(seconds: float) -> str:
    """How long ago, in one unit: `12 s ago`, `3 min ago`, `2 h ago`, `5 d ago`."""
    for limit, size, unit in ((120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{seconds / 86400:.0f} d ago"


def format_bytes(size: int) -> str:
    """A size in one unit: `0 B`, `512 B`, `3.2 kB`, `45 MB`, `1.2 TB`."""
    value, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:  # noqa: PLR2004
            break
        value, unit = value / 1000, larger
    return f"{value:.1f} {unit}" if unit != "B" and value < 10 else f"{value:.0f} {unit}"  # noqa: PLR2004
