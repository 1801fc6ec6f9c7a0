"""What a killed process left open is ended by whoever comes next.

What a living one has open is left alone.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from producer.config import read_config
from producer.emit import Emitter
from producer.errors import StopRequestedError
from producer.log.writer import Record
from producer.resume.orphans import end_abandoned, mark_open
from producer.training.run import utc_now
from schemas import ids
from schemas.catalogue import stream
from schemas.evaluation import EvaluationCreated, EvaluationStarted
from schemas.installation import Installation
from schemas.rollout import RolloutCreated
from schemas.training import TrainingCreated
from tests.producer.resume.test_given_up import dropped, give_up, rest
from tests.support.invariants import accepted
from tests.support.ports import free_port
from tests.support.reading import installation_at

ReadLog = Callable[[], list[dict[str, Any]]]
SUBJECT = stream("training", ids.training_id("marked"))
CREATED = TrainingCreated(
    run_name="marked", kind="sft", recipe=read_config({}).recipe(Path()), total_steps=1, config={}
)
EVALUATION_ID = ids.manual_eval_id(ids.training_id("nonce"))
EVALUATION = stream("evaluation", EVALUATION_ID)
EVALUATION_CREATED = EvaluationCreated(
    kind="manual", training_id=None, generation=None, step=None, model_path=None, total_tasks=1
)
ROLLOUT = stream("rollout", ids.rollout_id("left"))
ROLLOUT_CREATED = RolloutCreated(
    rollout_id="left",
    source_type="eval",
    source_id=EVALUATION_ID,
    group_id=ids.group_id(EVALUATION_ID, 0),
    batch=0,
    group_num=0,
    env_index=0,
    attempt=0,
    task_id=ids.task_row_id("a", "b"),
    model_path=None,
    policy_version=0,
    is_eval=True,
    max_turns=1,
    temperature=0.0,
    seed=0,
)
OWNER = """
import sys, time
from pathlib import Path
from producer.emit import Emitter
from producer.errors import StopRequestedError
from producer.resume.orphans import mark_open
from tests.producer.resume.test_orphans import CREATED, SUBJECT
with Emitter.open() as emitter, mark_open(Path(sys.argv[1]), SUBJECT, emitter):
    emitter.stream(SUBJECT).emit(CREATED)
    emitter.flush()
    print("marked", flush=True)
    time.sleep(60)
"""


def own_statuses(events: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    return [
        (event["type"], event["epoch"], event["sequence"])
        for event in events
        if event["subject"] == SUBJECT
    ]


def test_the_stream_of_a_living_owner_is_left_and_that_of_a_killed_one_ended_once(
    installation: Installation, read_log: ReadLog
) -> None:
    environ = {**os.environ, "CUA_HOME": str(installation.home)}
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(installation.open_dir)],
        env=environ,
        stdout=subprocess.PIPE,
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"marked\n"
        with Emitter.open(installation) as emitter:
            assert end_abandoned(installation, emitter, utc_now) == 0
        owner.send_signal(signal.SIGKILL)
    assert own_statuses(read_log()) == [("cua.training.created", 1, 1)]
    for num_ended in (1, 0):
        with Emitter.open(installation) as emitter:
            assert end_abandoned(installation, emitter, utc_now) == num_ended
    assert own_statuses(read_log()) == [
        ("cua.training.created", 1, 1),
        ("cua.training.cancelled", 2, 1),
    ]
    assert list(installation.open_dir.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[1]",
        b"{}",
        b'{"subject": 7, "since": {}}',
        b'{"subject": "rollout/x", "log_id": "a", "since": {}}',
    ],
)
def test_a_file_that_is_no_marker_is_passed_over_with_a_warning(
    installation: Installation, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    installation.open_dir.mkdir(parents=True)
    (installation.open_dir / "stray.open").write_bytes(content)
    with Emitter.open(installation) as emitter:
        assert end_abandoned(installation, emitter, utc_now) == 0
    assert "stray.open" in caplog.text


def test_an_owner_that_ends_in_order_leaves_no_mark(installation: Installation) -> None:
    with Emitter.open(installation) as emitter:
        with mark_open(installation.open_dir, SUBJECT, emitter):
            emitter.stream(SUBJECT, training_id=ids.training_id("marked")).emit(CREATED)
            suffixes = {path.suffix for path in installation.open_dir.iterdir()}
            assert suffixes == {".open", ".lock"}
        assert list(installation.open_dir.iterdir()) == []


def test_an_evaluation_by_hand_that_was_killed_is_cancelled_with_all_that_it_left_open(
    installation: Installation, read_log: ReadLog
) -> None:
    command = [
        sys.executable,
        "-m",
        "producer",
        "evaluate",
        "--model-name",
        "oracle",
        "--episodes",
        "5000",
    ]
    environ = {**os.environ, "CUA_HOME": str(installation.home)}
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as owner:
        while not (
            installation.local_log_path.exists()
            and any(event["type"] == "cua.rollout.turn_taken" for event in read_log())
        ):
            assert owner.poll() is None
            time.sleep(0.1)
        owner.send_signal(signal.SIGKILL)
    assert open_streams(read_log())
    with Emitter.open(installation) as emitter:
        assert end_abandoned(installation, emitter, utc_now) == 1
    events = read_log()
    assert accepted(events)[1] == []
    assert open_streams(events) == []
    created = {
        event["data"]["group_id"] for event in events if event["type"] == "cua.group.created"
    }
    ended = [
        event["data"]
        for event in events
        if event["type"] in {"cua.group.finished", "cua.group.failed"}
    ]
    assert created == {group["group_id"] for group in ended}
    assert len(ended) == len(created)
    rollouts = {
        event["subject"]: event["data"]["group_id"]
        for event in events
        if event["type"] == "cua.rollout.created"
    }
    finished = Counter(
        rollouts[event["subject"]] for event in events if event["type"] == "cua.rollout.finished"
    )
    assert {group["group_id"]: group["completed_rollouts"] for group in ended} == {
        group: finished[group] for group in created
    }


def open_streams(events: list[dict[str, Any]]) -> list[str]:
    """Evaluations, rollouts and environments whose last fact of their own is no end."""
    last = {
        event["subject"]: event["type"].split(".")[2]
        for event in events
        if event["subject"].startswith(event["type"].split(".")[1])
    }
    return [
        subject
        for subject, name in last.items()
        if name not in {"finished", "failed", "cancelled", "terminated"}
    ]


def killed_evaluation(installation: Installation) -> None:
    """A started evaluation and its only rollout as a killed process leaves them."""
    with Emitter.open(installation) as emitter:
        with mark_open(installation.open_dir, EVALUATION, emitter):
            evaluation = emitter.stream(EVALUATION)
            evaluation.emit(EVALUATION_CREATED)
            evaluation.emit(EvaluationStarted(kind="manual", started_at=utc_now()))
            emitter.stream(ROLLOUT).emit(ROLLOUT_CREATED)
            (marker,) = installation.open_dir.glob("*.open")
            content = marker.read_bytes()
        marker.write_bytes(content)


def values_of(emitter: Emitter, subject: str) -> list[bytes]:
    log = emitter.log.local
    return [value for _, value in log.read_streams("cua.training", [subject], {})]


def test_one_unreadable_stream_that_was_left_open_stops_nobody_else(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    killed_evaluation(installation)
    with Emitter.open(installation) as emitter:
        emitter.log.local.append([Record("cua.training", EVALUATION, b"garbage")])
        assert end_abandoned(installation, emitter, utc_now) == 0
        assert "stays so" in caplog.text
        assert list(installation.open_dir.glob("*.open"))

        give_up(installation, EVALUATION, dropped(b"garbage"))
        assert end_abandoned(installation, emitter, utc_now) == 1
        assert list(installation.open_dir.iterdir()) == []


def test_of_an_evaluation_whose_rest_was_given_up_only_its_rollouts_are_ended(
    installation: Installation, read_log: ReadLog
) -> None:
    killed_evaluation(installation)
    with Emitter.open(installation) as emitter:
        last = values_of(emitter, EVALUATION)[-1]
        give_up(installation, EVALUATION, rest(last))
        assert end_abandoned(installation, emitter, utc_now) == 0
    assert [event["type"] for event in read_log()] == [
        "cua.evaluation.created",
        "cua.evaluation.started",
        "cua.rollout.created",
        "cua.operator.rest_dropped",
        "cua.rollout.cancelled",
    ]
    assert list(installation.open_dir.iterdir()) == []


def test_an_evaluation_whose_creation_was_given_up_has_nothing_to_end(
    installation: Installation,
) -> None:
    killed_evaluation(installation)
    with Emitter.open(installation) as emitter:
        first = values_of(emitter, EVALUATION)[0]
        give_up(installation, EVALUATION, dropped(first))
        assert end_abandoned(installation, emitter, utc_now) == 0
    assert list(installation.open_dir.iterdir()) == []


def copy_of(installation: Installation, home: Path) -> Installation:
    shutil.copytree(installation.home, home)
    return replace(installation, home=home)


def test_the_copy_of_a_home_with_its_log_ends_what_was_open_when_it_was_copied(
    installation: Installation, tmp_path: Path
) -> None:
    killed_evaluation(installation)
    copied = copy_of(installation, tmp_path / "copied")
    with Emitter.open(copied) as emitter:
        assert end_abandoned(copied, emitter, utc_now) == 1


def test_a_stop_is_heard_while_the_log_is_waited_for(tmp_path: Path) -> None:
    installation = replace(
        installation_at(tmp_path), kafka_bootstrap_servers=f"127.0.0.1:{free_port()}"
    )
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    emitter = Emitter.open(installation)
    began = time.monotonic()
    with pytest.raises(StopRequestedError):
        end_abandoned(installation, emitter, utc_now, stop)
    assert time.monotonic() - began < 9  # not the ten seconds that it waits for Kafka
    emitter.close(0.1)
