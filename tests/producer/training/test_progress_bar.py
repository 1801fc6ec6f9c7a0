"""A progress bar is drawn on a terminal, and nowhere else."""

import os
import pty
import re
import select
import subprocess
import sys

RUN = (
    *("run", "--model-name", "oracle", "--num-steps", "2", "--group-size", "2", "--no-monitor"),
    *("--groups-per-batch", "2", "--eval-episodes", "6", "--training-name", "shown"),
)


def on_a_terminal(*words: str) -> str:
    """What it draws on a terminal of 100 columns; its stdout goes elsewhere."""
    terminal, its_side = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "producer", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=its_side,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    ) as process:
        os.close(its_side)
        shown = b""
        while select.select([terminal], [], [], 60)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:  # how Linux reports the end of a terminal
                break
        assert process.stdout is not None
        assert b"\x1b" not in process.stdout.read()
    os.close(terminal)
    assert process.returncode == 0, shown
    return shown.decode()


def test_on_a_terminal_log_lines_stay_whole_above_the_bar() -> None:
    # Enough episodes that the evaluations outlast the bar's refresh interval.
    shown = on_a_terminal(*RUN, "--eval-episodes", "60")
    assert re.search(r"(baseline|step-1|eval-2)\b.*\d+/\d+", shown)
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in re.split(r"[\r\n]+", shown)]
    steps = [line for line in lines if line.startswith("step 1/2:") or "step 2/2:" in line]
    assert len(steps) == 2
    assert all(re.fullmatch(r"step \d/2: reward .* s", line.strip()) for line in steps)


def test_elsewhere_and_when_told_nothing_is_drawn() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "producer", *RUN], capture_output=True, text=True, check=True
    )
    assert "\x1b" not in done.stderr
    assert "greedy, 6 episodes of 6 held-out tasks" in done.stderr
    for quiet in (("-q",), ("--log-format", "json")):
        words = (*RUN, "--behavior-if-log-dir-exists", "overwrite", *quiet)
        assert "\x1b" not in on_a_terminal(*words)
