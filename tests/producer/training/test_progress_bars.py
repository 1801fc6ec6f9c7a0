"""The progress bars: what they say of a training, and that nothing is drawn where nobody looks."""

import os
import pty
import re
import select
import subprocess
import sys

from producer.training.progress import ProgressTracker, Unit
from producer.training.progress_bars import Bar, bars

RUN = (
    *("run", "--model-name", "oracle", "--num-steps", "2", "--group-size", "2", "--no-monitor"),
    *("--groups-per-batch", "2", "--eval-episodes", "6", "--training-name", "shown"),
)


def evaluation(num: int) -> Unit:
    return Unit(num, 5, is_step=False)


def test_they_follow_baseline_steps_and_updates() -> None:
    tracker = ProgressTracker(concurrency=2)
    baseline, first, second = evaluation(4), Unit(3, 5, is_step=True), Unit(3, 5, is_step=True)
    tracker.units += [baseline, first, second]
    assert bars(tracker) == [Bar("steps", 0, 2, "0 %"), Bar("evaluation", 0, 4, "episodes")]
    baseline.finish()
    first.finished_rollouts, first.finished_turns = 2, 10
    # 20 turns of the baseline and 10 of step 1 in 20 + 2 x (15 + 15) = 80: 37.5 %.
    tracker.turn_taken(30.0, 30)
    # 50 turns remain, a second each, two at once.
    assert bars(tracker) == [
        Bar("steps", 0, 2, "38 %, 0:25 left"),
        Bar("step 1", 2, 3, "episodes"),
    ]
    first.finished_rollouts, first.finished_turns = 3, 15
    assert bars(tracker)[1] == Bar("step 1", 3, 3, "policy update")
    first.is_trained = True
    assert [(bar.name, bar.done) for bar in bars(tracker)] == [("steps", 1), ("step 2", 0)]
    second.finish()
    assert [(bar.name, bar.done) for bar in bars(tracker)] == [("steps", 2)]


def test_an_evaluation_by_hand_has_its_own_time() -> None:
    tracker = ProgressTracker(concurrency=1, units=[evaluation(2)])
    assert bars(tracker) == [Bar("evaluation", 0, 2, "episodes")]
    tracker.units[0].finished_rollouts, tracker.units[0].finished_turns = 1, 5
    tracker.turn_taken(5 * 800.0, 5)
    assert bars(tracker) == [Bar("evaluation", 1, 2, "episodes, 1:06:40 left")]


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


def test_on_a_terminal_log_lines_stay_whole_above_the_bars() -> None:
    # Enough episodes that the evaluations outlast the bars' refresh interval.
    shown = on_a_terminal(*RUN, "--eval-episodes", "200")
    assert "steps" in shown
    assert re.search(r"step 1\b.*episodes|step 2\b.*episodes|evaluation .*episodes", shown)
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in re.split(r"[\r\n]+", shown)]
    steps = [line for line in lines if line.startswith("step 1/2:") or "step 2/2:" in line]
    assert len(steps) == 2
    assert all(re.fullmatch(r"step \d/2: reward .* s", line.strip()) for line in steps)


def test_elsewhere_and_when_told_nothing_is_drawn() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "producer", *RUN], capture_output=True, text=True, check=True
    )
    assert "\x1b" not in done.stderr
    assert "greedy, 6 episodes of 6 training tasks on unseen seeds" in done.stderr
    for quiet in (("-q",), ("--log-format", "json")):
        words = (*RUN, "--behavior-if-log-dir-exists", "overwrite", *quiet)
        assert "\x1b" not in on_a_terminal(*words)
