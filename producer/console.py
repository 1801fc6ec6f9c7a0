"""Tables on stdout, progress bars on stderr.

Imports rich only to draw. rich honours NO_COLOR.
"""

import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import click

from producer.log_lines import is_for_people

logger = logging.getLogger(__name__)

MAX_NAMED = 10


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows on stdout: drawn by rich on a terminal, otherwise as aligned text.

    Numbers are aligned to the right; None is an empty cell. The first column wraps only if it would
    take half of the terminal.
    """
    values = [list(row) for row in rows]
    is_number = [
        bool(values) and all(isinstance(row[index], int | float | None) for row in values)
        for index in range(len(columns))
    ]
    cells = [["" if value is None else str(value) for value in row] for row in values]
    if sys.stdout.isatty():
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        console = Console()
        name_width = max(map(len, (row[0] for row in cells)), default=0)
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
        for index, (name, right) in enumerate(zip(columns, is_number, strict=True)):
            justify: Literal["left", "right"] = "right" if right else "left"
            table.add_column(
                name,
                justify=justify,
                overflow="fold",
                no_wrap=index == 0 and name_width < console.width // 2,
            )
        for row in cells:
            table.add_row(*map(Text, row))
        console.print(table)
        return
    from rich.cells import cell_len

    lines = [list(columns), *cells]
    widths = [max(cell_len(line[index]) for line in lines) for index in range(len(columns))]
    for line in lines:
        padding = [" " * (width - cell_len(c)) for width, c in zip(widths, line, strict=True)]
        shown = [
            pad + cell if right else cell + pad
            for cell, pad, right in zip(line, padding, is_number, strict=True)
        ]
        sys.stdout.write("  ".join(shown).rstrip() + "\n")


def print_report(
    value: object, columns: Sequence[str], rows: Iterable[Sequence[object]], *, as_json: bool
) -> None:
    """Print a command's result: `value` as JSON with rounded floats, or else a table."""
    if as_json:
        click.echo(json.dumps(rounded(value), indent=2))
    else:
        print_table(columns, rows)


def rounded(value: object) -> object:
    """Floats rounded to six decimals, below 1 to six digits; also inside lists and dicts."""
    match value:
        case float():
            return float(f"{value:.6g}") if abs(value) < 1 else round(value, 6)
        case dict():
            return {name: rounded(item) for name, item in value.items()}
        case list():
            return [rounded(item) for item in value]
        case _:
            return value


def warn_of_some(findings: Sequence[str], noun: str) -> None:
    """Log the first ten as warnings, and how many more there are."""
    for finding in findings[:MAX_NAMED]:
        logger.warning("%s", finding)
    if len(findings) > MAX_NAMED:
        logger.warning("and %d more %s", len(findings) - MAX_NAMED, noun)


class ProgressBar:
    """A progress bar with a note. Without a terminal it draws nothing."""

    def __init__(self, draw: Callable[[int, str], None] | None = None) -> None:
        self._draw = draw

    @property
    def is_drawn(self) -> bool:
        """False without a terminal."""
        return self._draw is not None

    def advance(self, amount: int = 1, note: str = "") -> None:
        """Advance by `amount` and replace the note."""
        if self._draw is not None:
            self._draw(amount, note)


@contextmanager
def progress_bar(description: str, total: int) -> Iterator[ProgressBar]:
    """A bar of `total` units on stderr while the context is open.

    Draws nothing without a terminal, with --quiet or with --log-format json.
    """
    if not (sys.stderr.isatty() and is_for_people()):
        yield ProgressBar()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    text, note_text = TextColumn("{task.description}"), TextColumn("{task.fields[note]}")
    columns = (text, BarColumn(), MofNCompleteColumn(), Remaining(), note_text)
    console = Console(stderr=True)
    # Lines printed on stdout must not move to stderr.
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as progress:
        bar = progress.add_task(description, total=total, note="")
        yield ProgressBar(lambda amount, note: progress.update(bar, advance=amount, note=note))
