"""A run over one log as a process of its own makes it: its lines of progress say which log it is.

What a new process is to call cannot stand in `__main__`.
"""

import sys
import time

from tests.chaos.report import is_good
from tests.chaos.run import Options, Outcome, run


def show(line: str) -> None:
    """One line of progress."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")


def disturb(log: str, options: Options) -> Outcome:
    """`run`, with its beginning and its end shown."""
    show(f"{log}: {options.kills} kills over {options.events:,} events")
    outcome = run(options, lambda line: show(f"{log:<5} {line}"))
    found = "everything held" if is_good(outcome) else "FAILED"
    show(f"{log}: {found} after {outcome.seconds:.0f} s")
    return outcome
