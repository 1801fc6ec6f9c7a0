"""The commands as scripts use them.

Their JSON, their exit codes, and that a killed projector leaves nothing half done.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from consumers.cli import main
from consumers.database.connection import connected
from schemas.installation import read_installation
from tests.reference_fold.comparison import database_tables, differences, plain_tables
from tests.reference_fold.histories import LoggedEvent, Shape
from tests.reference_fold.reference import fold
from tests.support.logs import logged_events, write_local_log
from tests.support.postgres import execute
from tests.support.read_only import heeding_rights, read_only

pytestmark = pytest.mark.services
RUN = (sys.executable, "-c", "from consumers.cli import main; main()", "run")
SMALL = Shape(steps=1, groups=1, group_size=2, turns=2, has_trouble=False)
Call = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def call(
    migrated_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Call]:
    """The command line in this process: exit code, stdout as JSON (None if empty), stderr."""
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def run(*arguments: str) -> tuple[int, Any, str]:
        monkeypatch.setattr(sys, "argv", ["cua-project", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        output, errors = capsys.readouterr()
        assert isinstance(end.value.code, int)
        return end.value.code, json.loads(output) if output.strip() else None, errors

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


def log_path() -> Path:
    return read_installation(os.environ).local_log_path


def test_run_status_verify_and_rebuild_report_what_scripts_rely_on(call: Call) -> None:
    events = logged_events("a", shape=SMALL)
    write_local_log(log_path(), events)

    code, status, _ = call("status", "--json")
    assert (code, status["log"]["kind"], status["lag_events"], status["trainings"]) == (
        0,
        "local",
        len(events),
        [],
    )
    assert all(partition["lag_seconds"] >= 0 for partition in status["log"]["partitions"])

    code, report, _ = call("run", "--once", "--json")
    assert (code, report["events"]) == (0, len(events))
    assert sum(position["position"] for position in report["positions"]) == len(events)

    code, status, _ = call("status", "--json")
    assert [status[name] for name in ("lag_events", "parked", "duplicates", "fenced", "gaps")] == [
        0,
        0,
        0,
        0,
        0,
    ]
    (training,) = status["trainings"]
    assert training.pop("heartbeat_age_s") > 0
    told = {event["type"]: event["data"] for event in (json.loads(event.value) for event in events)}
    said = told["cua.annotation.recorded"]
    assert training == {
        "run_name": "a",
        "display_name": said["display_name"],
        "tags": said["tags"],
        "hidden": said["hidden"],
        "status": "completed",
        "status_message": told["cua.training.completed"]["status_message"],
        "progress_percent": 100.0,
        "parked_since": None,
        "leaked_devices": 0,
        "stale": False,
        "parked": False,
    }
    assert set(status["log"]["partitions"][0]) == {
        "topic",
        "partition",
        "position",
        "end",
        "lag_events",
        "lag_seconds",
        "num_gone",
    }

    code, report, _ = call("verify", "--json")
    assert (code, report["equal"], report["events"], report["differences"]) == (
        0,
        True,
        len(events),
        [],
    )
    assert set(report["tables"]["turn"]) == {"rows", "hash"}

    with (
        connected(os.environ["DATABASE_URL"], "test") as connection,
        connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("UPDATE cua.turn SET reward = reward + 1 WHERE turn = 1")
        num_edited = cursor.rowcount
    code, report, error = call("verify", "--json")
    assert (
        code,
        report["equal"],
        {difference["column"] for difference in report["differences"]},
    ) == (4, False, {"reward"})
    assert set(report["differences"][0]) == {"table", "key", "column", "live", "replayed"}
    assert "cua-project rebuild" in error

    assert call("rebuild", "--check", "--json")[0] == 4
    code, report, _ = call("rebuild", "--json")
    assert (code, report["events"], report["equal"], report["different"]) == (
        0,
        len(events),
        False,
        ["turn"],
    )
    assert report["changed"] == report["changed_rows"]["turn"] == num_edited
    assert report["tables"]["training"] == 1
    assert call("verify", "--json")[0] == 0
    assert call("rebuild", "--json")[1]["changed"] == 0

    execute(
        os.environ["DATABASE_URL"],
        "ALTER TABLE cua.rollout DROP COLUMN trajectory_path CASCADE; UPDATE cua.turn SET reward ="
        " 7 WHERE turn = 1",
    )
    code, report, _ = call("rebuild", "--check", "--json")
    assert (code, report["equal"]) == (4, False)
    assert report["missing"] == ["the column cua.rollout.trajectory_path is missing"]
    assert report["changed_rows"] == {"turn": num_edited}
    assert report["different"] == ["rollout", "turn"]
    assert call("rebuild", "--json")[1]["missing"] == report["missing"]
    assert call("verify", "--json")[0] == 0

    assert call("migrate", "--check", "--json")[:2] == (0, {"equal": True, "differences": []})


def test_parked_records_are_listed_shown_dropped_and_tried_again(call: Call) -> None:
    events = logged_events("a", shape=SMALL)
    index = next(number for number, one in enumerate(events) if b"heartbeat_sent" in one.value)
    events[index] = LoggedEvent(
        events[index].subject, events[index].value.replace(b"heartbeat_sent", b"dreamt")
    )
    write_local_log(log_path(), events)
    call("run", "--once")

    code, parked, _ = call("parked", "list", "--json")
    culprit = parked[0]
    assert (code, culprit["kind"], culprit["stream"]) == (
        0,
        "unknown_schema",
        events[index].subject,
    )
    code, shown, _ = call("parked", "show", culprit["id"], "--json")
    assert (code, json.loads(shown["value"])["type"]) == (0, "cua.training.dreamt")
    hashed = hashlib.sha256(events[index].value).hexdigest()
    assert shown["value_sha256"] == hashed
    code, result, _ = call("parked", "retry", "--json")
    assert (code, result) == (0, {"streams": 1, "events": 0, "still_parked": len(parked)})
    assert call("parked", "drop", "cua.training/0@99999")[0] == 3
    assert call("parked", "drop", "nonsense")[0] == 2
    code, _, errors = call("parked", "drop", culprit["id"], "--reason", "x" * 1_001)
    assert (code, "--reason has 1,001 characters; give at most 1,000" in errors) == (2, True)
    code, result, _ = call("parked", "drop", culprit["id"], "--reason", "a test", "--json")
    assert (code, result["decisions"], result["streams"]) == (0, 1, 1)
    assert call("run", "--once", "--json")[1]["events"] == 1
    assert call("parked", "list", "--json")[1] == []
    assert call("verify", "--json")[0] == 0
    (position,) = result["positions"]
    decision = call("tail", "--type", "cua.operator.*", "--json")[1]
    assert {name: decision[name] for name in position} == position
    assert decision["subject"] == culprit["stream"]
    assert decision["trainingid"] == culprit["stream"].partition("/")[2]
    assert (decision["data"]["reason"], decision["data"]["value_sha256"]) == ("a test", hashed)
    assert "epoch" not in decision


def test_a_dropped_stream_is_listed_and_taken_up_again(call: Call) -> None:
    events = logged_events("a", shape=SMALL)
    index = next(number for number, one in enumerate(events) if b"heartbeat_sent" in one.value)
    stream, good = events[index]
    bad = good.replace(b'"epoch":', b'"epochs":')
    write_local_log(log_path(), [*events[:index], LoggedEvent(stream, bad), *events[index:]])
    call("run", "--once")
    before = call("parked", "list", "--json")[1]
    culprit = before[0]
    assert culprit["id"] == f"{culprit['topic']}/{culprit['partition']}@{culprit['offset']}"
    assert culprit["since"] == culprit["appended_at"]

    assert call("parked", "drop", culprit["id"], "--rest", "--reason", "why", "--json")[0] == 0
    call("run", "--once")

    refused = call("parked", "list", "--json")[1]
    assert [one["id"] for one in refused] == [one["id"] for one in before]
    assert {one["state"] for one in refused} == {"refused"}
    assert [one["kind"] for one in refused] == ["dropped"] + ["behind"] * (len(before) - 1)
    assert call("parked", "list", "--state", "parked", "--json")[1] == []
    assert call("verify", "--json")[0] == 0

    assert call("parked", "drop", "--undo", stream, "--json")[0] == 0
    call("run", "--once")

    # It is as before the drop: parked at the record that cannot be read.
    assert call("parked", "list", "--json")[1] == before
    assert call("verify", "--json")[0] == 0
    assert call("parked", "drop", culprit["id"], "--json")[0] == 0
    call("run", "--once")
    assert call("parked", "list", "--json")[1] == []
    reference = fold((event.subject, event.value) for event in events)
    found = database_tables(os.environ["DATABASE_URL"])
    assert differences(plain_tables(reference.tables), found) == []
    code, _, errors = call("parked", "drop", "--undo", stream)
    assert (code, "is not dropped" in errors) == (3, True)


def test_a_record_that_names_no_stream_is_given_up(call: Call) -> None:
    events = logged_events("a", shape=SMALL)
    events.insert(3, LoggedEvent("rollout/x", b"noise"))
    write_local_log(log_path(), events)
    call("run", "--once")
    (culprit,) = call("parked", "list", "--json")[1]
    assert culprit["stream"].startswith("record/")

    assert call("parked", "drop", culprit["id"], "--json")[0] == 0
    call("run", "--once")

    assert call("parked", "list", "--json")[1] == []
    assert call("verify", "--json")[0] == 0


def test_a_log_that_may_not_be_written_refuses_a_decision(call: Call) -> None:
    events = logged_events("a", shape=SMALL)
    write_local_log(log_path(), [*events[:3], LoggedEvent(events[3].subject, b"{")])
    call("run", "--once")
    culprit = call("parked", "list", "--json")[1][0]
    command = [sys.executable, "-m", "consumers", "parked", "drop", culprit["id"]]
    with read_only(log_path().parent):
        done = subprocess.run(
            heeding_rights(command), capture_output=True, text=True, check=False, timeout=120
        )

    assert (done.returncode, done.stdout) == (1, "")
    assert "the decision is not in the log: " in done.stderr
    assert str(log_path()) in done.stderr
    assert call("parked", "list", "--json")[1][0] == culprit


def test_a_kafka_that_is_away_gets_no_decision(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    events = logged_events("a", shape=SMALL)
    write_local_log(log_path(), [*events[:3], LoggedEvent(events[3].subject, b"{")])
    call("run", "--once")
    culprit = call("parked", "list", "--json")[1][0]
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")

    code, _, errors = call("parked", "drop", culprit["id"], "--json")

    said = "some decisions may be in the log; run the same command again: "
    assert (code, said in errors) == (5, True)


def test_a_decision_goes_to_no_other_log_than_that_of_the_tables(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    events = logged_events("a", shape=SMALL)
    spoilt = [*events[:3], LoggedEvent(events[3].subject, b"{")]
    write_local_log(log_path(), spoilt)
    call("run", "--once")
    culprit = call("parked", "list", "--json")[1][0]
    monkeypatch.setenv("CUA_HOME", str(tmp_path / "other"))
    for said in ("there is no log at ", "the tables were made from the log "):
        code, _, errors = call("parked", "drop", culprit["id"])
        assert (code, said in errors) == (4, True), errors
        assert log_path().exists() == ("were made from" in said)
        write_local_log(log_path(), spoilt)
    assert call("tail", "--type", "cua.operator.*", "--json")[1] is None


def test_a_decision_makes_no_topic(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    events = logged_events("a", shape=SMALL)
    write_local_log(log_path(), [*events[:3], LoggedEvent(events[3].subject, b"{")])
    call("run", "--once")
    culprit = call("parked", "list", "--json")[1][0]
    monkeypatch.setenv("CUA_TOPIC_PREFIX", "other.")

    code, _, errors = call("parked", "drop", culprit["id"])

    assert (code, "the log has no topic other." in errors) == (4, True), errors


@pytest.mark.parametrize("first", ["training", "rollout"])
def test_a_training_is_shown_parked_when_the_first_record_of_a_stream_is(
    call: Call, first: str
) -> None:
    events = logged_events("a", shape=SMALL)
    index = next(n for n, one in enumerate(events) if one.subject.startswith(first + "/"))
    stream, value = events[index]
    type_ = json.loads(value)["type"]
    events[index] = LoggedEvent(stream, value.replace(type_.encode(), b"cua.dreamt"))
    write_local_log(log_path(), events)
    call("run", "--once")

    (training,) = call("status", "--json")[1]["trainings"]

    assert training["run_name"] == "a"
    assert training["parked_since"] is not None


def test_the_database_being_away_is_exit_5_and_a_usage_error_exit_2(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("rebuild", "--check", "--drop", "x")[0] == 2
    for flag in ("--adopt-log", "--from-shorter-log"):
        code, _, error = call("rebuild", "--check", flag)
        assert (code, f"{flag} belongs to a rebuild of the live tables" in error) == (2, True)
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing")
    code, output, error = call("verify")
    assert (code, output) == (5, None)
    assert error.startswith(
        "error: cannot connect to PostgreSQL at postgresql://nobody@127.0.0.1:1/nothing:"
    )


def test_a_projector_killed_again_and_again_applies_everything_exactly_once(call: Call) -> None:
    random = Random(5)
    events = logged_events("a", "b", "c", shape=Shape(steps=4, groups=2, group_size=4, turns=4))
    path = log_path()
    write_local_log(path, events[:10])
    written = 10
    for _ in range(5):
        projector = subprocess.Popen(RUN, stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + random.uniform(1.0, 2.5)
            while time.monotonic() < deadline:
                size = random.randrange(1, 20)
                write_local_log(path, events[written : written + size])
                written += size
                time.sleep(0.01)
        finally:
            projector.send_signal(signal.SIGKILL)
            projector.wait()
    write_local_log(path, events[written:])

    assert call("run", "--once", "--json")[0] == 0

    reference = fold((event.subject, event.value) for event in events)
    assert (
        differences(plain_tables(reference.tables), database_tables(os.environ["DATABASE_URL"]))
        == []
    )
    code, report, _ = call("verify", "--json")
    assert (code, report["equal"]) == (0, True)
    assert call("status", "--json")[1]["duplicates"] == 0


def test_what_does_not_exist_is_not_found_and_builds_nothing(call: Call, migrated_url: str) -> None:
    write_local_log(log_path(), logged_events("demo")[:30])
    code, shown, errors = call("rebuild", "--run", "dmeo")
    assert (code, shown) == (3, None)
    assert "there is no training 'dmeo' in the log. Did you mean 'demo'?" in errors
    with connected(migrated_url, "test") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT to_regnamespace('cua_run')")
        assert cursor.fetchone() == (None,)
    code, shown, errors = call("parked", "retry", "rollout/none")
    assert (code, shown) == (3, None)
    assert "nothing is parked in rollout/none; `cua-project parked list` shows" in errors
