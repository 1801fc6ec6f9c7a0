"""Every tracker gets every measurement of the log once, under its step, and each run's end."""

import json
import re
import shutil
import struct
from collections import defaultdict
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from consumers.cli import cli
from consumers.errors import UsageError
from consumers.trackers.logged import Logged
from consumers.trackers.open import TrackerName, TrackerPlace
from consumers.trackers.tensorboard import TensorboardTracker
from consumers.trackers.tracker import TrackedRun
from producer.training.manual_evaluation import evaluate
from producer.training.run import run
from producer.training.tracking import mirrored
from schemas.ids import training_id
from schemas.installation import Installation
from tests.support.small_run import small

# The trackers' own libraries warn of what they will change.
pytestmark = pytest.mark.filterwarnings("default")

WIFI = {"source_type": "ids", "task_ids": ["train_02_enable_wifi"]}
Points = dict[str, dict[int, float]]
"""Metric -> step -> value."""
ReadLog = Callable[[], list[dict[str, Any]]]


def track(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["track", *arguments], catch_exceptions=False)


def tensorboard_points(folder: Path) -> Points:
    from tensorboard.backend.event_processing.event_accumulator import (  # type: ignore[import-untyped]
        EventAccumulator,
    )

    accumulator = EventAccumulator(str(folder))
    accumulator.Reload()
    assert accumulator.Tags()["tensors"] == []
    return {
        tag: {scalar.step: scalar.value for scalar in accumulator.Scalars(tag)}
        for tag in accumulator.Tags()["scalars"]
    }


def mlflow_points(uri: str, project: str) -> tuple[dict[str, Points], dict[str, str]]:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name(project)
    assert experiment is not None
    points: dict[str, Points] = {}
    statuses = {}
    for found in client.search_runs([experiment.experiment_id]):
        name = str(found.info.run_name)
        statuses[name] = str(found.info.status)
        points[name] = {
            metric: {
                item.step: item.value
                for item in client.get_metric_history(found.info.run_id, metric)
            }
            for metric in found.data.metrics
        }
    return points, statuses


def wandb_records(path: Path) -> list[Any]:
    """Records of wandb's transaction log: LevelDB's log format behind a header of 7 bytes."""
    from wandb.proto.wandb_internal_pb2 import Record  # type: ignore[attr-defined]  # generated

    data, at, parts, records = path.read_bytes(), 7, b"", []
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        parts += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in {1, 4}:
            records.append(Record.FromString(parts))
            parts = b""
    return records


def wandb_points(home: Path) -> tuple[dict[str, Points], dict[str, int]]:
    points: dict[str, Points] = {}
    exits = {}
    for path in sorted((home / "trackers" / "wandb").rglob("*.wandb")):
        name, own = "", defaultdict[str, dict[int, float]](dict)
        for record in wandb_records(path):
            if record.HasField("run"):
                name = record.run.display_name
            if record.HasField("exit"):
                exits[name] = record.exit.exit_code
            if record.HasField("history"):
                row = {
                    item.key or "/".join(item.nested_key): json.loads(item.value_json)
                    for item in record.history.item
                }
                step = int(row.pop("progress/step"))
                for metric, value in row.items():
                    if not metric.startswith("_"):
                        own[metric][step] = value
        points.setdefault(name, {}).update(own)
    return points, exits


@pytest.fixture
def recorded(installation: Installation, read_log: ReadLog) -> dict[str, dict[int, float]]:
    """What a small training says of its rewards and evaluations."""
    run(small(), installation=installation)
    rewards: dict[int, float] = {}
    success: dict[int, float] = {}
    evaluated: dict[str, int] = {}
    for event in read_log():
        data = event["data"]
        if event["type"] == "cua.step.finished":
            rewards[len(rewards) + 1] = data["reward_mean"]
        if event["type"] == "cua.evaluation.created":
            evaluated[event["subject"]] = data["step"] or 0
        if event["type"] == "cua.evaluation.finished":
            success[evaluated[event["subject"]]] = data["success_rate"]
    return {"env/all/reward/total": rewards, "test/success": success}


def assert_holds(points: Points, recorded: dict[str, dict[int, float]]) -> None:
    assert recorded["env/all/reward/total"].keys() == {1, 2, 3}
    assert recorded["test/success"].keys() == {0, 2, 3}
    for metric, values in recorded.items():
        assert points[metric] == pytest.approx(values, abs=1e-6)


def test_tensorboard_has_every_step_and_evaluation(
    installation: Installation, recorded: dict[str, dict[int, float]], tmp_path: Path
) -> None:
    first = track("tensorboard", "--to", str(tmp_path / "tb"), "--json")
    assert first.exit_code == 0, first.output
    assert json.loads(first.stdout) == {
        "runs": 1,
        "measurements": 6,
        "target": f"tensorboard: {tmp_path / 'tb'}",
    }
    assert_holds(tensorboard_points(tmp_path / "tb" / "small"), recorded)
    again = track("tensorboard", "--to", str(tmp_path / "tb"), "--json")
    assert json.loads(again.stdout)["measurements"] == 0
    assert len(list((tmp_path / "tb" / "small").iterdir())) == 1
    elsewhere = track("tensorboard", "--to", str(tmp_path / "other"), "--json")
    assert json.loads(elsewhere.stdout)["measurements"] == 6
    assert installation.home.is_dir()


def test_sampled_success_is_another_curve_and_evaluations_by_hand_are_none(
    installation: Installation, read_log: ReadLog, tmp_path: Path
) -> None:
    run(small(num_steps=1, eval_sampled_episodes=2), installation=installation)
    by_hand = {"eval_tasks": WIFI, "eval_episodes": 1, "eval_temperature": 0.0}
    evaluate(by_hand, training_name="small", installation=installation)
    assert track("tensorboard", "--to", str(tmp_path)).exit_code == 0
    points = tensorboard_points(tmp_path / "small")
    finished = [
        event["data"]["success_rate"]
        for event in read_log()
        if event["type"] == "cua.evaluation.finished" and event["data"]["kind"] != "manual"
    ]
    # At each point the greedy one comes first.
    assert points["test/success"] == pytest.approx({0: finished[0], 1: finished[2]})
    assert points["test/sampled/success"] == pytest.approx({0: finished[1], 1: finished[3]})
    assert points["test/temperature"] == {0: 0.0, 1: 0.0}
    assert points["test/sampled/temperature"] == {0: 1.0, 1: 1.0}
    assert points["test/num_tasks"].keys() == points["test/sampled/num_tasks"].keys() == {0, 1}


def test_mlflow_has_every_step_and_evaluation_and_the_runs_status(
    recorded: dict[str, dict[int, float]], tmp_path: Path
) -> None:
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    assert track("mlflow", "--to", uri, "--project", "phones").exit_code == 0
    points, statuses = mlflow_points(uri, "phones")
    assert_holds(points["small"], recorded)
    assert statuses == {"small": "FINISHED"}


def test_wandb_without_a_key_keeps_everything_on_disk(
    installation: Installation,
    recorded: dict[str, dict[int, float]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    result = track("wandb", "--project", "phones")
    assert result.exit_code == 0, result.output
    assert "wandb sync" in caplog.text
    points, exits = wandb_points(installation.home)
    assert_holds(points["small"], recorded)
    assert exits == {"small": 0}


def test_a_training_mirrors_itself_to_the_project_and_name_that_it_was_given(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    run(small(num_steps=1, wandb_project="phones", wandb_name="mine"), installation=installation)
    points, exits = wandb_points(installation.home)
    assert points["mine"]["env/all/reward/total"].keys() == {1}
    assert exits == {"mine": 0}


def test_a_training_that_ends_before_its_mirror_has_started_is_mirrored(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    run(small(num_steps=1), installation=installation)
    config = small(num_steps=1, wandb_project="phones", wandb_name="mine")
    with mirrored(config, "small", installation):
        pass
    points, exits = wandb_points(installation.home)
    assert points["mine"]["env/all/reward/total"].keys() == {1}
    assert exits == {"mine": 0}


def test_what_the_tracker_took_before_a_kill_is_at_most_one_measurement_sent_again(
    installation: Installation, recorded: dict[str, dict[int, float]], tmp_path: Path
) -> None:
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    track("mlflow", "--to", uri)
    (state,) = (installation.home / "trackers").glob("mlflow-*.jsonl")
    noted = state.read_text()
    step = json.dumps([f"{training_id('small').hex}-0", "step-2"])
    # The last line was cut off by the kill.
    state.write_text(noted.replace(f"{step}\n", "") + step[:-5])
    again = track("mlflow", "--to", uri, "--json")
    assert json.loads(again.stdout)["measurements"] == 1
    assert sorted(state.read_text().splitlines()) == sorted(noted.splitlines())
    points, _ = mlflow_points(uri, "cua-train")
    assert_holds(points["small"], recorded)


def test_a_new_generation_is_a_run_of_its_own_that_keeps_the_steps_before_it(
    installation: Installation, tmp_path: Path
) -> None:
    run(small(num_steps=2), installation=installation)
    # Only the state after step 1 is left.
    shutil.rmtree(installation.runs_dir / "small" / "state" / "generation-0" / "step-000002")
    run(small(num_steps=3), installation=installation)
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    track("mlflow", "--to", uri)
    points, statuses = mlflow_points(uri, "cua-train")
    first, second = "small", "small (generation 1)"
    assert points[first]["env/all/reward/total"].keys() == {1, 2}
    assert points[second]["env/all/reward/total"].keys() == {1, 2, 3}
    assert points[first]["env/all/reward/total"][1] == points[second]["env/all/reward/total"][1]
    assert statuses == {first: "FINISHED", second: "FINISHED"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["tensorboard", "--project", "p"], "--project"),
        (["mlflow", "--name", "n"], "--name"),
        (["wandb", "--to", "x"], "--to"),
    ],
)
def test_an_option_that_a_tracker_does_not_have_is_refused(arguments: list[str], told: str) -> None:
    result = CliRunner().invoke(cli, ["track", *arguments])
    assert (type(result.exception).__name__, getattr(result.exception, "exit_code", 2)) in {
        ("UsageError", 2),
        ("SystemExit", 2),
    }
    assert told in str(result.exception) + result.output


def test_a_mistyped_training_is_not_found(installation: Installation, tmp_path: Path) -> None:
    run(small(num_steps=0), installation=installation)
    result = CliRunner().invoke(
        cli, ["track", "tensorboard", "--to", str(tmp_path), "--training", "smal"]
    )
    assert getattr(result.exception, "exit_code", None) == 3
    assert "'small'" in str(result.exception)


def test_a_damaged_note_of_what_was_sent_is_refused_and_named(
    installation: Installation, tmp_path: Path
) -> None:
    folder, target = installation.home / "trackers", f"tensorboard: {tmp_path}"
    with Logged(folder, target) as logged:
        logged.add("run-0", "step-1")
    (note,) = folder.glob("*.jsonl")
    note.write_text('["run-0"]\n')
    with pytest.raises(UsageError, match=re.escape(str(note))), Logged(folder, target):
        pass


def test_a_variable_of_mlflow_is_no_place_of_another_tracker(installation: Installation) -> None:
    environ = {"MLFLOW_TRACKING_URI": "sqlite:///m.db"}
    assert TrackerPlace("wandb", installation, environ).target == "wandb: project cua-train"
    assert TrackerPlace("mlflow", installation, environ).target.endswith("at sqlite:///m.db")


@pytest.mark.parametrize(("tracker", "to"), [("wandb", None), ("mlflow", "http://192.0.2.1")])
def test_a_socks_proxy_of_a_tracker_needs_the_package_of_requests(
    tracker: TrackerName,
    to: str | None,
    installation: Installation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert find_spec("socks") is None
    for name in ("no_proxy", "NO_PROXY"):
        # Set first, so that what the code adds is removed afterwards.
        monkeypatch.setenv(name, "a.example")
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    with pytest.raises(UsageError, match=r"^ALL_PROXY: .* needs the package PySocks; install it"):
        TrackerPlace(tracker, installation, {}, to=to).open()


def test_two_processes_do_not_mirror_to_the_same_place(
    installation: Installation, tmp_path: Path
) -> None:
    run(small(num_steps=0), installation=installation)
    with Logged(installation.home / "trackers", f"tensorboard: {tmp_path}"):
        result = CliRunner().invoke(cli, ["track", "tensorboard", "--to", str(tmp_path)])
    assert getattr(result.exception, "exit_code", None) == 1
    assert "another process" in str(result.exception)


@pytest.mark.parametrize("name", ["../elsewhere", "/elsewhere", "..", "", "a\0b", "x" * 300, "a/b"])
def test_a_name_that_is_no_folder_of_its_own_is_replaced_by_the_trainings_id(
    tmp_path: Path, name: str
) -> None:
    """A log may have trainings of any name."""
    owner = training_id(name)
    tracker = TensorboardTracker(tmp_path / "board")
    tracker.begin(TrackedRun(owner, name, 1, {}))
    tracker.close()
    assert [path.name for path in (tmp_path / "board").iterdir()] == [f"{owner.hex}@1"]
    assert [path.name for path in tmp_path.iterdir()] == ["board"]
