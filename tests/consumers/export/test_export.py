"""What `export` writes is what the log says, and opens with Hugging Face `datasets`."""

import base64
import contextlib
import json
import os
import sqlite3
import struct
from collections.abc import Sequence
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from PIL import Image

from consumers.cli import cli
from consumers.errors import CuaProjectError, NotFoundError, UsageError
from consumers.home import open_installation
from consumers.projection.decisions import Decision
from consumers.shipping import append_decisions
from producer.emit import Emitter
from schemas.actions import Click
from schemas.blobs import blob_path
from schemas.decision import RestDropped, value_hash
from schemas.rollout import (
    RolloutAgentInitialized,
    RolloutEnvironmentRequested,
    RolloutFailed,
    RolloutFinished,
    RolloutStarted,
)
from schemas.step import Sample, SamplesChosen
from schemas.task import TaskStated
from schemas.turn import Sampling, TakenAction, TokenRecord, TurnTaken
from tests.reference_fold.histories import Shape
from tests.reference_fold.reference import fold
from tests.support.defined_task import defined
from tests.support.example_run import (
    GROUP,
    GROUP_CREATED,
    OTHER_ROLLOUT,
    ROLLOUT,
    ROLLOUT_CREATED,
    STEP,
    STEP_CREATED,
    TRAINING,
    TRAINING_CREATED,
    TRAINING_STREAM,
    at,
)
from tests.support.logs import logged_events, write_local_log


def png(colour: int) -> bytes:
    file = BytesIO()
    Image.new("RGB", (4, 3), (colour, 0, 0)).save(file, "PNG")
    return file.getvalue()


def int32(*numbers: int) -> str:
    return base64.b64encode(struct.pack(f"<{len(numbers)}i", *numbers)).decode()


def float32(*numbers: float) -> str:
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


def turn(
    number: int,
    screenshot: str,
    prompt: Sequence[int],
    completion: Sequence[int],
    *,
    extends: int | None,
) -> TurnTaken:
    return TurnTaken(
        turn=number,
        started_at=at(f"12:00:0{number}"),
        ended_at=at(f"12:00:0{number}") + timedelta(milliseconds=500),
        policy_version=3,
        screenshot_before=screenshot,
        screenshot_after=None,
        text="Open it." if number == 1 else None,
        model_response=f"response {number}",
        tokens=TokenRecord(
            prompt_extends=extends,
            prompt_tokens=int32(*prompt),
            prompt_images=(screenshot,),
            completion_tokens=int32(*completion),
            completion_logprobs=float32(*[-0.5] * len(completion)),
            sampling=Sampling(temperature=1.0, max_tokens=8),
            stop_reason="stop",
        ),
        actions=(TakenAction(tool_name="click", tool_args={"x": 1}, action=Click(x=1, y=2)),),
        reward=0.0,
        episode_done=number == 3,
        progress_percent=30.0 * number,
    )


FINISHED = RolloutFinished(
    task_ended_at=at("12:00:09"),
    rollout_time_s=5,
    validation_time_s=1,
    task_completed=True,
    task_success=True,
    agent_reported_success=True,
    validation_passed=True,
    num_turns=3,
    reward=0.75,
    num_total_actions=3,
    consecutive_repeated_actions=0,
    parse_errors=0,
    tool_name_errors=0,
    tool_arg_errors=0,
    runtime_errors=0,
    ran_out_of_turns=False,
    attempted_completion=True,
    turn_first_success=None,
    turn_task_completed=3,
    num_tokens=6,
)


def emit_example(emitter: Emitter) -> list[str]:
    """One finished rollout of three turns, one failed, one under way; its screenshots."""
    training = UUID(TRAINING)
    own = emitter.stream(TRAINING_STREAM)
    own.emit(TRAINING_CREATED)
    stated = defined(
        TaskStated(
            id=training,
            task_id="open_it",
            definition_hash="ab" * 32,
            name="Open",
            description="Open it.",
            difficulty=None,
            category=None,
            max_steps=4,
            validation_type=None,
            validation_query=None,
            expected_result=None,
            source_type="file",
        )
    )
    own.emit(stated)
    task = stated.id
    own.emit(STEP_CREATED)
    own.emit(GROUP_CREATED)
    shots = [emitter.put_blob(png(number)) for number in (1, 2, 3)]
    writer = emitter.stream(f"rollout/{ROLLOUT}", training_id=training)
    writer.emit(ROLLOUT_CREATED.model_copy(update={"task_id": task}))
    writer.emit(RolloutEnvironmentRequested(env_id=UUID(int=1)))
    writer.emit(RolloutAgentInitialized(env_creation_time_s=1))
    writer.emit(RolloutStarted(agent_init_time_s=1, task_started_at=at("12:00:00")))
    writer.emit(turn(1, shots[0], [10, 11], [20, 21], extends=None))
    writer.emit(turn(2, shots[1], [12], [22], extends=1))
    writer.emit(turn(3, shots[2], [13, 14], [23, 24, 25], extends=2))
    writer.emit(FINISHED)
    failed = emitter.stream(f"rollout/{OTHER_ROLLOUT}", training_id=training)
    other = ROLLOUT_CREATED.model_copy(
        update={"rollout_id": "demo/g0/step-1/group-0/env-1/attempt-0", "env_index": 1}
    )
    failed.emit(other)
    failed.emit(
        RolloutFailed(
            error_type="environment", error_message="it died", num_turns=0, ended_at=at("12:00:02")
        )
    )
    sample = Sample(
        rollout_id=UUID(ROLLOUT),
        group_id=UUID(GROUP),
        advantage=0.25,
        reward=0.75,
        policy_version=3,
        staleness=0,
        num_tokens=6,
        used=True,
    )
    own.emit(SamplesChosen(step_id=UUID(STEP), samples=(sample,)))
    return shots


@pytest.fixture
def shots() -> list[str]:
    with Emitter.open(open_installation(os.environ)) as emitter:
        return emit_example(emitter)


def run(*arguments: str) -> Any:
    result = CliRunner().invoke(cli, ["export", *arguments, "--json"], catch_exceptions=False)
    return json.loads(result.stdout)


def load(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """As a user opens it, offline."""
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    import datasets

    datasets.disable_progress_bars()
    cache = str(folder.parent / "cache")
    return list(datasets.load_dataset(str(folder), name, split="train", cache_dir=cache))


@pytest.mark.slow
def test_datasets_opens_turns_with_images_and_the_whole_prompt_of_each(
    shots: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "dataset"

    report = run(str(folder))
    turns = load(folder, "turns", monkeypatch)

    assert (report["rollouts"], report["turns"], report["unfinished"]) == (2, 3, 0)
    assert report["missing_images"] == 0
    assert [row["prompt_token_ids"] for row in turns] == [
        [10, 11],
        [10, 11, 20, 21, 12],
        [10, 11, 20, 21, 12, 22, 13, 14],
    ]
    assert [row["prompt_images"] for row in turns] == [shots[:1], shots[:2], shots]
    assert [row["completion_token_ids"] for row in turns] == [[20, 21], [22], [23, 24, 25]]
    assert turns[2]["completion_logprobs"] == [-0.5] * 3
    assert [row["screenshot"].getpixel((0, 0))[0] for row in turns] == [1, 2, 3]
    assert turns[0]["screenshot"].size == (4, 3)
    assert [row["text"] for row in turns] == ["Open it.", None, None]
    (action,) = json.loads(turns[0]["actions"])
    assert (action["tool_name"], action["tool_args"]) == ("click", {"x": 1})
    assert (action["action"]["x"], action["action"]["y"]) == (1, 2)


@pytest.mark.slow
def test_datasets_opens_rollouts_with_task_outcome_and_advantage(
    shots: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shots
    run(str(tmp_path / "dataset"))
    finished, failed = load(tmp_path / "dataset", "rollouts", monkeypatch)

    assert finished["rollout_id"] == ROLLOUT_CREATED.rollout_id
    assert (finished["training"], finished["source"], finished["step"]) == ("demo", "step", 1)
    assert (finished["task_id"], finished["instruction"]) == ("open_it", "Open it.")
    assert (finished["status"], finished["reward"], finished["success"]) == (
        "completed",
        0.75,
        True,
    )
    assert (finished["advantage"], finished["used"], finished["superseded"]) == (0.25, True, False)
    assert (failed["status"], failed["reward"], failed["advantage"]) == ("failed", None, None)
    assert failed["error"] == "environment: it died"


def test_the_rollouts_are_those_of_the_tables_whatever_disturbs_the_log(tmp_path: Path) -> None:
    """Duplicates of every record, and another training beside it."""
    events = logged_events("a", "b", shape=Shape(steps=1, groups=2, group_size=2, turns=2))
    path = open_installation(os.environ).local_log_path
    path.parent.mkdir(parents=True)
    write_local_log(path, [item for event in events for item in (event, event)])
    tables = fold((event.subject, event.value) for event in events).tables
    expected = {
        row["rollout_id"]: row.get("reward")
        for row in tables["rollout"].values()
        if row["status"] in {"completed", "failed", "cancelled"}
    }

    report = run(str(tmp_path / "dataset"), "--no-images")

    rows = pq.read_table(tmp_path / "dataset" / "rollouts").to_pylist()
    assert {row["rollout_id"]: row["reward"] for row in rows} == expected
    assert report["rollouts"] == len(expected) == len(rows)
    assert report["rollouts"] + report["unfinished"] == len(tables["rollout"])


def test_one_training_alone_is_exported_and_an_unknown_name_is_an_error(tmp_path: Path) -> None:
    events = logged_events("alpha", "beta", shape=Shape(steps=1, groups=2, group_size=2, turns=2))
    path = open_installation(os.environ).local_log_path
    path.parent.mkdir(parents=True)
    write_local_log(path, events)

    run(str(tmp_path / "dataset"), "--training", "alpha", "--no-images")

    rows = pq.read_table(tmp_path / "dataset" / "rollouts").to_pylist()
    assert {row["training"] for row in rows} == {"alpha"}
    with pytest.raises(NotFoundError, match="alpha"):
        run(str(tmp_path / "other"), "--training", "alpa")
    assert not (tmp_path / "other").exists()


def test_a_screenshot_that_is_gone_is_counted_and_null(shots: list[str], tmp_path: Path) -> None:
    blobs = Path(open_installation(os.environ).blobs_url)
    (blobs / blob_path(shots[1])).unlink()

    report = run(str(tmp_path / "dataset"))

    rows = pq.read_table(tmp_path / "dataset" / "turns").to_pylist()
    assert report["missing_images"] == 1
    assert [row["screenshot"] is None for row in rows] == [False, True, False]


def test_what_an_operator_gave_up_is_left_out_as_in_the_tables(
    shots: list[str], tmp_path: Path
) -> None:
    assert shots
    installation = open_installation(os.environ)
    key = f"rollout/{ROLLOUT}"
    with contextlib.closing(sqlite3.connect(installation.local_log_path)) as connection, connection:
        query = "SELECT position, value FROM records WHERE key = ? ORDER BY position LIMIT 1"
        position, value = connection.execute(query, (key,)).fetchone()
        spoilt = value.replace(b'"type":"cua.', b'"type":"later.')
        connection.execute("UPDATE records SET value = ? WHERE position = ?", (spoilt, position))
    given_up = RestDropped(value_sha256=value_hash(spoilt), made_by="me")
    append_decisions([Decision(key, None, given_up)], None)

    assert (run(str(tmp_path / "dataset"))["rollouts"]) == 1


def test_half_a_log_is_an_error_and_an_archive_completes_it(
    shots: list[str], tmp_path: Path
) -> None:
    assert shots
    path = open_installation(os.environ).local_log_path
    CliRunner().invoke(cli, ["archive", str(tmp_path / "archive")], catch_exceptions=False)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM records WHERE position < 6")

    with pytest.raises(CuaProjectError, match="--archive"):
        run(str(tmp_path / "half"))
    whole = run(str(tmp_path / "whole"), "--archive", str(tmp_path / "archive"))

    assert not (tmp_path / "half").exists()
    assert (whole["rollouts"], whole["turns"]) == (2, 3)


def test_a_folder_that_has_something_is_never_overwritten(shots: list[str], tmp_path: Path) -> None:
    assert shots
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("mine", "file", "file/below"):
        with pytest.raises(UsageError):
            run(str(tmp_path / name))
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize("is_folder", [True, False])
def test_what_is_called_as_an_unfinished_export_is_never_removed(
    shots: list[str], tmp_path: Path, *, is_folder: bool
) -> None:
    assert shots
    mine = tmp_path / "dataset.partial"
    if is_folder:
        mine.mkdir()
        mine /= "thesis.txt"
    mine.write_text("mine")

    with pytest.raises(UsageError, match=r"dataset.partial is in the way"):
        run(str(tmp_path / "dataset"))

    assert mine.read_text() == "mine"
    assert not (tmp_path / "dataset").exists()


def test_an_empty_folder_that_is_there_is_filled_and_stays_itself(
    shots: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell's working folder, or a mounted volume that cannot be renamed over."""
    assert shots
    (tmp_path / "here").mkdir()
    (tmp_path / "here").chmod(0o750)
    monkeypatch.chdir(tmp_path / "here")
    before = (tmp_path / "here").stat()

    assert run(".")["turns"] == 3

    after = (tmp_path / "here").stat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    names = {path.name for path in (tmp_path / "here").iterdir()}
    assert names == {"README.md", "rollouts", "turns"}
    with pytest.raises(UsageError, match="not an empty folder"):
        run(".")
    with pytest.raises(UsageError, match="not an empty folder"):
        run("/")
