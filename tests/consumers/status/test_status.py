"""`cua-project status` and its alerts: what is behind, stale, parked, dropped, and since when."""

import json
import os
from datetime import UTC, datetime, timedelta
from uuid import NAMESPACE_URL, uuid4, uuid5

import pytest

from consumers.commands.duration import parse
from consumers.database.connection import connected
from consumers.database.lease import ProjectorLease
from producer.emit import Emitter
from producer.log.local import LocalLog
from producer.log.writer import Record
from producer.resume.training_lock import training_lock
from schemas.base import Payload
from schemas.environment import (
    EnvironmentCreationStarted,
    EnvironmentFailed,
    EnvironmentLeaked,
    EnvironmentReleased,
    EnvironmentRequested,
    EnvironmentStarted,
    EnvironmentTerminated,
)
from schemas.ids import training_id
from schemas.installation import read_installation
from tests.reference_fold.histories import LoggedEvent, Shape
from tests.support.command import Call, call
from tests.support.logs import logged_events, write_local_log

__all__ = ["call"]

pytestmark = pytest.mark.services
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SMALL = Shape(steps=1, groups=1, group_size=2, turns=2, has_trouble=False)


def write(events: list[LoggedEvent]) -> None:
    write_local_log(read_installation(os.environ).local_log_path, events)


def execute(statement: str, *values: object) -> None:
    with (
        connected(os.environ["DATABASE_URL"], "test") as connection,
        connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(statement, values)


def is_of(event: LoggedEvent, name: str) -> bool:
    return bool(json.loads(event.value)["type"] == name)


def started_only(name: str) -> list[LoggedEvent]:
    """A training up to its start: nothing more comes from it."""
    events = [
        logged_event
        for logged_event in logged_events(name, shape=SMALL)
        if logged_event.subject.startswith("training")
    ]
    last = next(index for index, one in enumerate(events) if is_of(one, "cua.training.started"))
    return events[: last + 1]


def test_an_installation_without_events_is_fine(call: Call) -> None:
    assert call("status", "--check") == (0, "ok\n", "")
    report = call("status", "--json").json
    assert (report["lag_events"], report["lag_seconds"], report["dropped"]) == (0, 0, 0)
    assert report["projector"] == {
        "holder": None,
        "since": None,
        "caught_up_at": None,
        "last_error": None,
        "last_error_at": None,
    }


def test_tables_that_nobody_fills_are_behind_once_their_oldest_event_is_old_enough(
    call: Call,
) -> None:
    events = logged_events("a", shape=SMALL)
    write(events)
    assert call("status", "--check", "--max-lag", "1h")[:2] == (0, "ok\n")
    checked = call("status", "--check", "--max-lag", "0")
    assert checked.code == 6
    assert checked.out.startswith(f"behind: {len(events)} events, the oldest appended")
    assert checked.out.endswith("no projector is running: start `cua-project run`\n")
    assert len(checked.out.splitlines()) == 1


def test_an_idle_log_that_is_projected_has_no_lag(call: Call) -> None:
    write(logged_events("a", shape=SMALL))
    call("run", "--once")
    assert call("status", "--check", "--max-lag", "0") == (0, "ok\n", "")
    report = call("status", "--json").json
    assert {partition["lag_seconds"] for partition in report["log"]["partitions"]} == {0.0}
    assert report["disk"]["log_bytes"] > 0
    assert report["disk"]["database_bytes"] > 0


def test_a_running_training_without_a_heartbeat_for_a_minute_is_stale(call: Call) -> None:
    write([*started_only("dead"), *logged_events("done", seed=2, shape=SMALL)])
    call("run", "--once")
    trainings = {item["run_name"]: item for item in call("status", "--json").json["trainings"]}
    assert {name: one["stale"] for name, one in trainings.items()} == {"dead": True, "done": False}
    checked = call("status", "--check")
    assert (checked.code, checked.out.split(";")[0]) == (6, "stale: no heartbeat from dead")
    assert "running, stale" in call("status").out
    execute("UPDATE cua.training SET last_heartbeat = now() - interval '50 seconds'")
    assert call("status", "--check")[:2] == (0, "ok\n")
    execute(
        "UPDATE cua.training SET status = 'paused', last_heartbeat = created_at WHERE run_name ="
        " 'dead'"
    )
    assert call("status", "--check")[:2] == (0, "ok\n")


def test_what_a_process_of_this_home_has_open_is_not_stale(call: Call) -> None:
    """It continues a killed training: it loads its policy, and its first event is minutes away."""
    write(started_only("loading"))
    call("run", "--once")
    assert call("status", "--check").out.startswith("stale: no heartbeat from loading;")
    folder = read_installation(os.environ).runs_dir / "loading"
    with training_lock(folder, "loading"):
        assert call("status", "--check") == (0, "ok\n", "")
        assert not call("status", "--json").json["trainings"][0]["stale"]
    assert call("status", "--check").code == 6


def test_silence_counts_from_the_tables_time_because_they_know_nothing_younger(
    call: Call,
) -> None:
    write(started_only("alive"))
    call("run", "--once")
    execute("UPDATE cua.training SET last_heartbeat = now() - interval '100 seconds'")
    assert call("status", "--json").json["trainings"][0]["stale"]
    log = LocalLog(
        read_installation(os.environ).local_log_path,
        clock_us=lambda: int((datetime.now(UTC) - timedelta(seconds=90)).timestamp() * 1e6),
    )
    try:
        # A log whose last append was later than that would keep its time.
        log._connection.execute("UPDATE head SET appended_at = 0")
        log.append([Record("cua.rollouts", f"rollout/{uuid4()}", b"{}")])
    finally:
        log.close()
    report = call("status", "--json").json
    assert report["lag_events"] == 1
    assert report["lag_seconds"] == pytest.approx(90, abs=20)
    assert not report["trainings"][0]["stale"]


@pytest.mark.parametrize("is_json", [True, False])
def test_a_training_whose_first_event_is_parked_is_shown_by_its_name(
    call: Call, *, is_json: bool
) -> None:
    events = logged_events("a", shape=SMALL)
    index = next(i for i, one in enumerate(events) if is_of(one, "cua.training.created"))
    first = events[index]
    value = first.value.replace(b"cua.training.created", b"cua.training.dreamt")
    events[index] = LoggedEvent(first.subject, value if is_json else value[:-9])
    write(events)
    call("run", "--once")
    report = call("status", "--json").json
    (training,) = report["trainings"]
    assert training["run_name"] == ("a" if is_json else f"training/{training_id('a')}")
    assert (training["status"], training["parked"]) == ("parked", True)
    assert training["parked_since"] is not None
    checked = call("status", "--check")
    assert (checked.code, checked.out.split(":")[0]) == (6, "parked")
    assert training["run_name"] in checked.out
    assert training["run_name"] in call("status").out


@pytest.mark.parametrize("names", ["run_name", "trainingid"])
def test_a_strangers_parked_stream_that_names_a_training_does_not_mark_it_as_parked(
    call: Call, names: str
) -> None:
    events = logged_events("a", shape=SMALL)
    created = json.loads(
        next(event.value for event in events if is_of(event, "cua.training.created"))
    )
    stranger = f"training/{training_id('b')}"
    created["subject"] = stranger
    if names == "run_name":
        created["trainingid"] = str(training_id("b"))
    else:
        created["data"]["run_name"] = "b"
    write([*events, LoggedEvent(stranger, json.dumps(created).encode())])
    call("run", "--once")
    trainings = {item["run_name"]: item for item in call("status", "--json").json["trainings"]}
    own = "b" if names == "trainingid" else stranger
    assert {name: one["parked"] for name, one in trainings.items()} == {"a": False, own: True}


def test_a_training_is_parked_too_when_the_first_event_of_one_of_its_rollouts_is(
    call: Call,
) -> None:
    events = logged_events("a", shape=SMALL)
    index = next(i for i, one in enumerate(events) if is_of(one, "cua.rollout.created"))
    events[index] = LoggedEvent(
        events[index].subject, events[index].value.replace(b"rollout.created", b"rollout.dreamt")
    )
    write(events)
    call("run", "--once")
    (training,) = call("status", "--json").json["trainings"]
    assert [training[name] for name in ("run_name", "status", "parked")] == ["a", "completed", True]


def test_parked_streams_with_garbled_names_are_shown(call: Call) -> None:
    log = LocalLog(read_installation(os.environ).local_log_path)
    names = ["training/none", "rollout/", "", "x" * 300, "training/\x1b[31m"]
    try:
        log.append([Record("cua.training", name, b"\xff") for name in names])
    finally:
        log.close()
    call("run", "--once")
    shown = call("status")
    assert shown.code == 0
    assert "\x1b" not in shown.out
    assert call("status", "--check").code == 6


def test_dropped_streams_are_counted(call: Call) -> None:
    events = logged_events("a", shape=SMALL)
    index = next(i for i, one in enumerate(events) if is_of(one, "cua.rollout.started"))
    events[index] = LoggedEvent(events[index].subject, b"{}")
    write(events)
    call("run", "--once")
    parked = call("parked", "list", "--state", "parked", "--json").json
    first = min(parked, key=lambda item: int(item["id"].rpartition("@")[2]))
    assert call("parked", "drop", first["id"], "--rest").code == 0
    call("run", "--once")
    assert call("status", "--json").json["dropped"] == 1
    assert "1 dropped streams" in call("status").out
    assert call("status", "--check") == (0, "ok\n", "")


def test_the_projector_is_named_with_the_time_since_when(call: Call) -> None:
    url = os.environ["DATABASE_URL"]
    with connected(url, "test") as connection:
        connection.autocommit = True
        with ProjectorLease(connection, "somewhere/1/x", lambda: 0.0) as lease:
            lease.acquire()
            projector = call("status", "--json").json["projector"]
            assert projector["holder"] == "somewhere/1/x"
            age = datetime.now(UTC) - datetime.fromisoformat(projector["since"])
            assert timedelta(0) <= age < timedelta(minutes=1)
            assert "somewhere/1/x, since" in call("status").out
    assert call("status", "--json").json["projector"]["holder"] is None


def test_tables_of_another_version_are_behind(call: Call) -> None:
    call("run", "--once")
    execute("UPDATE cua.projection SET version = 0")
    checked = call("status", "--check")
    assert (checked.code, "cua-project rebuild" in checked.out) == (6, True)


def test_reasons_are_one_object_for_scripts(call: Call) -> None:
    assert call("status", "--check", "--json").json == {"ok": True, "reasons": []}
    write(started_only("dead"))
    call("run", "--once")
    checked = call("status", "--check", "--json")
    assert (checked.code, checked.json["ok"], len(checked.json["reasons"])) == (6, False, 1)


def test_a_server_that_is_away_is_exit_5_and_not_an_alert(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing")
    assert call("status", "--check")[:2] == (5, "")
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    assert call("status", "--check")[:2] == (5, "")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("5m", 300), ("500ms", 0.5), ("90", 90), ("1.5", 1.5), ("0", 0), ("1h1s", 3601)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "-1", "-30s", "30 s", "1e3", "nan", "inf", "s", "30ss", "5s5m", "1.5m"),
        *("9" * 5000, "9" * 39 + "d", "\u0663s"),
    ],
)
def test_what_is_no_duration_is_a_usage_error(call: Call, text: str) -> None:
    refused = call("status", "--check", f"--max-lag={text}")
    assert (refused.code, refused.out) == (2, "")
    assert "is not a duration; give 30s" in refused.err


def test_max_lag_needs_check(call: Call) -> None:
    assert call("status", "--max-lag", "30s").code == 2


def test_a_training_is_shown_as_it_was_renamed_and_a_hidden_one_on_request(call: Call) -> None:
    write(logged_events("a", shape=SMALL))
    write(logged_events("b", shape=SMALL))
    call("run", "--once")
    (shown,) = [
        item for item in call("status", "--json").json["trainings"] if item["run_name"] == "a"
    ]
    # As the history's second person left it.
    assert (shown["display_name"], shown["tags"], shown["hidden"]) == (
        *("attempt 2", ["baseline", "v2"]),
        False,
    )
    assert "attempt 2" in call("status").out
    execute(
        "INSERT INTO cua.annotation VALUES (gen_random_uuid(), %s, 9, 1, 'gone', '[]', NULL, true,"
        " now())",
        str(training_id("a")),
    )
    text = call("status").out
    assert "gone" not in text
    assert text.endswith("1 hidden; --all lists them\n")
    assert "gone" in call("status", "--all").out
    both = call("status", "--json").json["trainings"]
    assert {item["run_name"]: item["hidden"] for item in both} == {"a": True, "b": False}


def write_device(name: str, training: str | None, *ends: Payload) -> None:
    """A device that was started, and `ends` of it."""
    installation = read_installation(os.environ)
    with Emitter.open(installation) as emitter:
        stream = emitter.stream(
            f"environment/{uuid5(NAMESPACE_URL, name)}",
            training_id=None if training is None else training_id(training),
        )
        stream.emit(EnvironmentRequested(env_type="gbox", box_type="android", config={}))
        stream.emit(EnvironmentCreationStarted())
        stream.emit(EnvironmentStarted(gbox_id=name, started_at=NOW))
        for end in ends:
            stream.emit(end)


def test_devices_that_were_not_released_are_counted_until_they_are(call: Call) -> None:
    write([*started_only("a"), *started_only("b")])
    leaked = EnvironmentLeaked(error_message="close() hangs", leaked_at=NOW)
    write_device("running", "a")
    write_device("released", "a", EnvironmentTerminated(terminated_at=NOW))
    write_device("failed", "a", EnvironmentFailed(error_message="gone", terminated_at=NOW))
    write_device("released late", "b", leaked, EnvironmentReleased(released_at=NOW))
    write_device("leaked", "a", leaked)
    write_device("leaked too", "a", leaked)
    call("run", "--once")
    report = call("status", "--json").json
    counts = {item["run_name"]: item["leaked_devices"] for item in report["trainings"]}
    assert (counts, report["leaked_devices"]) == ({"a": 2, "b": 0}, 2)
    write_device("of an evaluation", None, leaked)
    call("run", "--once")
    assert call("status", "--json").json["leaked_devices"] == 3
    line = "leaked     3 devices were not released and may still run: a 2, evaluations 1"
    assert line in call("status").out.splitlines()


def test_nothing_is_said_of_devices_when_all_were_released(call: Call) -> None:
    write(started_only("a"))
    write_device("released", "a", EnvironmentTerminated(terminated_at=NOW))
    call("run", "--once")
    assert call("status", "--json").json["leaked_devices"] == 0
    assert "leaked" not in call("status").out
