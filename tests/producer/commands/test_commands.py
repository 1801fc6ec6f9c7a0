"""`cua-train run` and `evaluate` as a person meets them: what they print, ask and survive."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from schemas.ids import training_id

SMALL = (
    *("--model-name", "oracle", "--num-steps", "1", "--group-size", "2", "--groups-per-batch", "1"),
    *("--eval-episodes", "2", "--no-monitor"),
)
CONTINUE = re.compile(r"^continue it with: (.*)$", re.MULTILINE)


def cua_train(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "producer", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def in_a_new_shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """As typed by somebody who has only a PATH and a home, in some folder."""
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


def printed(done: subprocess.CompletedProcess[str]) -> str:
    """The command that continues the run."""
    found = CONTINUE.search(done.stderr)
    assert found is not None, done.stderr
    return found[1]


def test_a_training_of_any_script_runs_continues_as_printed_and_is_evaluated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUA_HOME", str(tmp_path / "it's a home"))
    done = cua_train("run", "--training-name", "训练-1", *SMALL, "--json")
    summary = json.loads(done.stdout.splitlines()[-1])
    assert (summary["training_name"], summary["steps"]) == ("训练-1", 1)
    assert summary["training_id"] == str(training_id("训练-1"))
    assert (tmp_path / "it's a home" / "runs" / "训练-1" / "state").is_dir()
    again = in_a_new_shell(printed(done), tmp_path)
    assert "training 训练-1: completed after step 1" in again.stdout
    evaluated = cua_train("evaluate", "--training-name", "训练-1", "--episodes", "2", "--json")
    assert json.loads(evaluated.stdout)["episodes"] == 2


def test_the_printed_command_has_the_folder_and_what_a_config_file_changed_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "more.toml").write_text("num_steps = 2\nmax_concurrent_rollouts = 3\n")
    given = ("--training-name", "kept", "--log-path", "my runs/kept")
    cua_train("run", *given, *SMALL)
    done = cua_train("run", *given, "--config", "more.toml", "--no-monitor")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    again = in_a_new_shell(f"{printed(done)} --json", elsewhere)
    summary = json.loads(again.stdout.splitlines()[-1])
    assert (summary["status"], summary["steps"]) == ("completed", 2)
    assert summary["log_path"] == str(tmp_path / "my runs" / "kept")
    assert list(elsewhere.iterdir()) == []


def test_a_run_without_a_name_prints_one_that_continues(tmp_path: Path) -> None:
    done = cua_train("run", *SMALL, "--json")
    name = json.loads(done.stdout.splitlines()[-1])["training_name"]
    assert name.startswith("oracle-")
    assert f"training {name}: completed" in in_a_new_shell(printed(done), tmp_path).stdout


def test_tasks_of_a_file_are_found_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    task = {
        "task_id": "train_02_enable_wifi",  # the oracle knows how to solve it
        "description": "Turn wifi on.",
        "setup": ["settings put global wifi_on 0"],
        "validation_query": "wifi_enabled",
        "expected": "True",
    }
    Path("tasks.jsonl").write_text(json.dumps(task))
    source = json.dumps([{"source_type": "file", "file_path": "tasks.jsonl"}])
    done = cua_train("run", "--training-name", "filed", "--tasks", source, *SMALL)
    monkeypatch.chdir("/")
    in_a_new_shell(f"{printed(done)} --num-steps 2", Path("/"))


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
    assert last.startswith("stopped; continue with: CUA_HOME=")
    assert last.endswith("cua-train run --training-name long --no-monitor")


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
