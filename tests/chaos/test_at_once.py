"""Calls at once: each in a process of its own, and nobody is left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.chaos.at_once import at_once
from tests.chaos.processes import ChaosError
from tests.support.paths import ROOT

WAITING_S = 30.0


def meet(own: Path, other: Path) -> int:
    """Ends when the other one runs too."""
    own.touch()
    deadline = time.monotonic() + WAITING_S
    while not other.exists():
        if time.monotonic() > deadline:
            message = "nobody else runs"
            raise ChaosError(message)
        time.sleep(0.01)
    return os.getpid()


def fail(sentence: str) -> int:
    raise ChaosError(sentence)


def end_without_a_word() -> int:
    os._exit(1)


def wait(begun: Path, unwound: Path) -> int:
    """Until it is told to end; leaves `unwound` then."""
    try:
        begun.touch()
        time.sleep(WAITING_S)
    finally:
        unwound.touch()
    return 0


def test_calls_run_at_once_in_processes_of_their_own(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    found = at_once({"a": partial(meet, a, b), "b": partial(meet, b, a)})
    assert list(found) == ["a", "b"]
    assert len({*found.values(), os.getpid()}) == 3


def test_whoever_failed_is_named_with_its_reason() -> None:
    calls: dict[str, Callable[[], int]] = {
        "a": partial(fail, "the disk burns"),
        "b": os.getpid,
        "c": end_without_a_word,
    }
    with pytest.raises(ChaosError) as failed:
        at_once(calls)
    assert str(failed.value) == "a: the disk burns\nc: its process ended without a word"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_who_is_ended_leaves_nobody_behind(tmp_path: Path, how: signal.Signals) -> None:
    begun, unwound = tmp_path / "begun", tmp_path / "unwound"
    program = (
        "import signal, sys; from functools import partial; from pathlib import Path;"
        " from tests.chaos.at_once import at_once, terminate; from tests.chaos.test_at_once import"
        " wait; signal.signal(signal.SIGTERM, terminate);"
        # Who runs the tests in the background ignores it, and so would the program.
        " signal.signal(signal.SIGINT, signal.default_int_handler);"
        " at_once({'a': partial(wait, *map(Path, sys.argv[1:]))})"
    )
    words = [sys.executable, "-c", program, str(begun), str(unwound)]
    with subprocess.Popen(words, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + WAITING_S
        while not begun.exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(how)
        process.wait(WAITING_S)
    while not unwound.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
