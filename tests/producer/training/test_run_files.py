"""The files of a run's folder say what the log says, also after kills and new generations."""

import json
import logging
import math
from pathlib import Path
from typing import Any

import pytest

from producer.errors import StopRequestedError
from producer.resume.resume_state import EvaluationSummary
from producer.training.run import run
from producer.training.run_files import RunFiles, log_file
from schemas.installation import Installation
from tests.support.reading import ReadLog
from tests.support.small_run import small, watching


def lines(installation: Installation, name: str) -> list[dict[str, Any]]:
    text = (installation.runs_dir / "small" / name).read_text()
    return [json.loads(line) for line in text.splitlines()]


def places(installation: Installation) -> list[tuple[int, str | None]]:
    return [(line["step"], line.get("evaluation")) for line in lines(installation, "metrics.jsonl")]


WHOLE = [
    (0, "baseline"),
    *((1, None), (2, None), (2, "eval-2"), (3, None), (3, "eval-3")),
]


def test_every_step_and_evaluation_has_a_line_with_the_numbers_of_its_event(
    installation: Installation, read_log: ReadLog
) -> None:
    run(small(), installation=installation)
    assert places(installation) == WHOLE
    finished = [e["data"] for e in read_log() if e["type"] == "cua.step.finished"]
    steps = [line for line in lines(installation, "metrics.jsonl") if "evaluation" not in line]
    for number, (line, event) in enumerate(zip(steps, finished, strict=True), start=1):
        assert line["step"] == number
        assert line["progress/batch"] == number - 1
        assert line["env/all/reward/total"] == event["reward_mean"]
        assert line["env/all/reward/std"] == event["reward_std"]
        assert line["optim/loss"] == event["loss"]
        assert line["optim/gradient_norm"] == event["policy_gradient_norm"]
    evaluated = [e["data"] for e in read_log() if e["type"] == "cua.evaluation.finished"]
    shown = [line for line in lines(installation, "metrics.jsonl") if "evaluation" in line]
    assert [item["test/success"] for item in shown] == [item["success_rate"] for item in evaluated]
    assert [item["test/env/all/reward/total"] for item in shown] == [
        item["avg_reward"] for item in evaluated
    ]


def test_a_sampled_evaluation_has_names_of_its_own_and_each_states_its_tasks(
    installation: Installation,
) -> None:
    run(small(num_steps=1, eval_sampled_episodes=2), installation=installation)
    found = {
        str(line["evaluation"]): line
        for line in lines(installation, "metrics.jsonl")
        if "evaluation" in line
    }
    assert list(found) == ["baseline", "baseline-sampled", "eval-1", "eval-1-sampled"]
    for name, line in found.items():
        is_sampled = name.endswith("sampled")
        prefix = "test/sampled/" if is_sampled else "test/"
        measured = {key.removeprefix(prefix) for key in line if key.startswith("test/")}
        assert {"success", "standard_error", "env/all/success"} <= measured
        assert line[f"{prefix}temperature"] == float(is_sampled)
        assert line[f"{prefix}split"] == "training_tasks_unseen_seeds"
        assert line[f"{prefix}num_tasks"] == 2


def test_every_checkpoint_has_a_line_with_a_folder_that_exists(installation: Installation) -> None:
    run(small(), installation=installation)
    saved = lines(installation, "checkpoints.jsonl")
    assert [(item["name"], item["batch"]) for item in saved] == [
        ("000000", 0),
        ("000002", 2),
        ("000003", 3),
    ]
    assert all(Path(item["sampler_path"]).is_dir() for item in saved)


def test_a_continued_training_mends_files_that_a_kill_cut_short(
    installation: Installation,
) -> None:
    whole_name = "metrics.jsonl"

    def stop_after_step_2(message: str) -> None:
        if message.startswith("step 2/3"):
            raise StopRequestedError

    with watching(stop_after_step_2), pytest.raises(StopRequestedError):
        run(small(), installation=installation)
    path = installation.runs_dir / "small" / whole_name
    path.write_text(path.read_text().splitlines()[0] + '\n{"step": 1, "progr')
    (installation.runs_dir / "small" / "checkpoints.jsonl").unlink()
    run(small(), installation=installation)
    assert places(installation) == WHOLE
    assert [line["batch"] for line in lines(installation, "checkpoints.jsonl")] == [0, 2, 3]


def test_a_new_generation_leaves_out_what_it_superseded(installation: Installation) -> None:
    run(small(num_steps=3), installation=installation)
    run(
        small(num_steps=1, behavior_if_log_dir_exists="overwrite", seed=1),
        installation=installation,
    )
    assert places(installation) == [(0, "baseline"), (1, None), (1, "eval-1")]
    saved = lines(installation, "checkpoints.jsonl")
    assert {item["generation"] for item in saved} == {1}
    groups = sorted(
        str(path.relative_to(installation.runs_dir / "small" / "groups"))
        for path in (installation.runs_dir / "small" / "groups").rglob("*.txt")
    )
    assert groups == [
        "generation-0/step-000001.txt",
        "generation-0/step-000002.txt",
        "generation-0/step-000003.txt",
        "generation-1/step-000001.txt",
    ]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_as_many_groups_as_asked_for_are_written_with_what_the_policy_said(
    installation: Installation, read_log: ReadLog, number: int
) -> None:
    run(small(num_steps=1, num_groups_to_log=number), installation=installation)
    path = installation.runs_dir / "small" / "groups" / "generation-0" / "step-000001.txt"
    if number == 0:
        assert not path.exists()
        return
    text = path.read_text()
    assert text.count("\n===") == number
    assert text.count("reward ") == number * 3
    turns = [
        event["data"]["model_response"]
        for event in read_log()
        if event["type"] == "cua.rollout.turn_taken"
    ]
    said = [line.partition(". ")[2] for line in text.splitlines() if line.startswith("  ")]
    assert set(said) <= set(turns)
    assert len(said) >= number * 3


def test_numbers_that_json_does_not_have_are_null(tmp_path: Path) -> None:
    summary = EvaluationSummary("eval-1", 1, 0.5, 0.1, 4, {"a": math.nan}, {"test/x": math.inf})
    RunFiles(tmp_path).evaluation(summary)
    line = json.loads((tmp_path / "metrics.jsonl").read_text(), parse_constant=pytest.fail)
    assert (line["test/x"], line["test/by_task/a"], line["test/success"]) == (None, None, 0.5)


def test_a_file_that_cannot_be_written_is_named_once_and_costs_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "metrics.jsonl").mkdir()
    files = RunFiles(tmp_path)
    with caplog.at_level(logging.WARNING):
        for step in (1, 2):
            files.evaluation(EvaluationSummary(f"eval-{step}", step, 0.5, 0.1, 4))
    assert len(caplog.records) == 1
    assert str(tmp_path / "metrics.jsonl") in caplog.text


def test_log_lines_are_appended_to_the_runs_folder_with_their_times(tmp_path: Path) -> None:
    ours = logging.getLogger("producer.training.loop")
    for message in ("first", "second"):
        with log_file(tmp_path), watching(lambda _: None):
            ours.info(message)
        ours.warning("outside")
    found = (tmp_path / "logs/train.log").read_text().splitlines()
    assert [line.rpartition(": ")[2] for line in found] == ["first", "second"]
    assert all(line[:2] == "20" for line in found)
