"""Progress bars of a training or an evaluation on a terminal: steps, episodes, time left.

A thread of rich draws them from the progress tracker, so that training never waits for the
terminal. Log lines are printed above the bars.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from producer.log_lines import is_for_people
from producer.training.progress import ProgressTracker, Unit

if TYPE_CHECKING:
    from rich.table import Table

REFRESHES_PER_S = 4


@dataclass(frozen=True, slots=True)
class Bar:
    """A line with a name, the work done, and a text after it."""

    name: str
    done: int
    total: int
    note: str


@contextmanager
def progress_bars(tracker: ProgressTracker) -> Iterator[None]:
    """Show the tracker's progress on stderr inside the context; the bars disappear at the end.

    Draws nothing without a terminal, with --quiet or with --log-format json.
    """
    if not (sys.stderr.isatty() and is_for_people()):
        yield
        return
    from rich.console import Console
    from rich.live import Live

    with Live(
        get_renderable=lambda: _table(bars(tracker)),
        console=Console(stderr=True),
        refresh_per_second=REFRESHES_PER_S,
        transient=True,
        redirect_stdout=False,  # stdout is for data
    ):
        yield


def bars(tracker: ProgressTracker) -> list[Bar]:
    """The bars to show now: the steps, then the episodes of the current step or evaluation."""
    units = list(tracker.units)
    steps = [unit for unit in units if unit.is_step]
    bars = []
    if steps:
        done = sum(unit.is_trained for unit in steps)
        progress = tracker.of_all()
        note = f"{progress.percent:.0f} %"
        if progress.estimated_remaining_time_s is not None:
            note += f", {_duration(progress.estimated_remaining_time_s)} left"
        bars.append(Bar("steps", done, len(steps), note))
    current = next((unit for unit in units if not _is_over(unit)), None)
    if current is None:
        return bars
    number = sum(unit.is_step for unit in units[: units.index(current) + 1])
    name = f"step {number}" if current.is_step else "evaluation"
    is_updating = current.finished_rollouts >= current.num_rollouts
    note = "policy update" if is_updating and current.is_step else "episodes"
    if not steps and (left_s := tracker.of(current).estimated_remaining_time_s) is not None:
        note += f", {_duration(left_s)} left"
    bars.append(Bar(name, current.finished_rollouts, current.num_rollouts, note))
    return bars


def _is_over(unit: Unit) -> bool:
    return unit.finished_rollouts >= unit.num_rollouts and (unit.is_trained or not unit.is_step)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _table(bars: list[Bar]) -> "Table":
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    table = Table.grid(padding=(0, 1))
    for bar in bars:
        table.add_row(
            bar.name,
            ProgressBar(total=max(1, bar.total), completed=bar.done, width=30),
            f"{bar.done}/{bar.total}",
            bar.note,
        )
    return table
