"""`cua-train run` as a person meets it: what it asks, logs and survives."""

import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.forked_command import run_command

SMALL = (
    *("--model-name", "oracle", "--num-steps", "1", "--group-size", "2", "--groups-per-batch", "1"),
    *("--eval-episodes", "2", "--no-monitor"),
)


def cua_train(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = run_command("producer", *words)
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def on_a_terminal(*words: str, answers: list[tuple[str, str]]) -> tuple[int, str]:
    """(exit code, output) of cua-train on a terminal, where each answer is typed after its cue."""
    process_id, terminal = pty.fork()
    if process_id == 0:
        os.execv(sys.executable, [sys.executable, "-m", "producer", *words])  # noqa: S606  # our own
    shown = ""
    while select.select([terminal], [], [], 30)[0]:
        try:
            shown += os.read(terminal, 4096).decode(errors="replace")
        except OSError:  # how Linux reports the end of a terminal
            break
        if answers and answers[0][0] in shown:
            os.write(terminal, answers.pop(0)[1].encode())
    else:
        os.kill(process_id, signal.SIGKILL)  # it has been silent for too long
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(process_id, 0)[1]), shown


@pytest.mark.parametrize(
    ("typed", "generation", "code"),
    # After Ctrl-C a line: readline misses a signal that comes just before it waits for input.
    [("\n", 0, 0), ("o\n", 1, 0), ("what\nq\n", 0, 0), ("\x03\n", 0, 130)],
)
def test_on_a_terminal_an_existing_training_is_asked_about(
    typed: str, generation: int, code: int
) -> None:
    cua_train("run", "--training-name", "first", *SMALL)
    words = ("run", "--training-name", "first", "--no-monitor", "--json")
    returned, shown = on_a_terminal(*words, answers=[("[q]uit? [r] ", typed)])
    assert "Training 'first' exists (step 1 of 1). [r]esume, [o]verwrite, [q]uit?" in shown
    assert returned == code
    summaries = [json.loads(item) for item in re.findall(r'{"training_name.*}', shown)]
    assert [summary["generation"] for summary in summaries] == ([] if code else [generation])
    assert [summary["status"] for summary in summaries] == (
        [] if code else ["skipped" if "q" in typed else "completed"]
    )


def test_elsewhere_than_on_a_terminal_and_when_told_nothing_is_asked() -> None:
    cua_train("run", "--training-name", "first", *SMALL)
    done = cua_train("run", "--training-name", "first", "--no-monitor")
    assert "[r]esume" not in done.stdout + done.stderr
    told = ("--behavior-if-log-dir-exists", "resume")
    _, shown = on_a_terminal("run", "--training-name", "first", "--no-monitor", *told, answers=[])
    assert "[r]esume" not in shown
    assert "completed after step 1" in shown


def test_ctrl_c_stops_gracefully_says_how_to_abort_and_how_to_continue() -> None:
    words = ("run", "--training-name", "long", *SMALL, "--num-steps", "2000")
    shown = ""
    with subprocess.Popen(
        [sys.executable, "-m", "producer", *words], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            shown += line
            if line.startswith("state and checkpoints"):
                process.send_signal(signal.SIGINT)
    assert process.returncode == 130
    assert "stopping gracefully; press Ctrl-C again to abort\n" in shown
    last = shown.splitlines()[-1]
    assert last.startswith("stopped; continue with: env CUA_HOME=")
    *_, program, _, _, _, _ = shlex.split(last)
    assert Path(program).name == "cua-train"
    assert last.endswith(" run --training-name long --no-monitor")


def test_quiet_logs_nothing_and_json_logs_objects() -> None:
    assert cua_train("-q", "run", "--training-name", "first", *SMALL).stderr == ""
    done = cua_train("run", "--training-name", "second", *SMALL, "--log-format", "json")
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert {line["level"] for line in lines} == {"info"}
    assert any(line["message"].startswith("continue it with: ") for line in lines)
    failed = cua_train("--log-format", "json", "evaluate", "--training-name", "third", code=3)
    (line,) = [json.loads(line) for line in failed.stderr.splitlines()]
    assert (line["level"], line["logger"]) == ("error", "producer.cli")


def test_training_goes_on_without_tables_when_cua_project_cannot_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody:nothing@127.0.0.1:1/none")
    small = [word for word in SMALL if word != "--no-monitor"]
    done = cua_train("run", "--training-name", "first", *small)
    assert "completed after step 1" in done.stdout
    assert "warning: no tables and no monitor: cua-project up did not start" in done.stderr
