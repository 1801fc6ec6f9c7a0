"""Runs a command line so that Ctrl-C ends it quietly, whenever it comes.

While modules are imported, or the interpreter ends, the process ends with exit code 130 and no
traceback. Nothing is open by then, so it ends without unwinding: an exception within the import of
a compiled module comes out as another one.
"""

import os
import sys
from types import FrameType

INTERRUPTED = 130

try:
    # Most of the time until the handler below is set.
    import signal
    from importlib import import_module
except KeyboardInterrupt:
    os._exit(INTERRUPTED)


def run_command_line(module: str) -> None:
    """Import the module and call its `main`."""
    before = signal.getsignal(signal.SIGINT)
    # Other handlers stay: in the background of a script SIGINT is ignored.
    is_heard = before is signal.default_int_handler
    if is_heard:
        signal.signal(signal.SIGINT, _exit_at_once)
    run = import_module(module).main

    try:
        signal.signal(signal.SIGINT, before)
        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        # The interpreter ends: no code is left to catch an exception.
        if is_heard:
            signal.signal(signal.SIGINT, _exit_at_once)


def _exit_at_once(_number: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)
