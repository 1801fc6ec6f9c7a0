"""What an operator gives up while a projector runs is applied by it, and by every replay."""

import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from consumers.home import open_installation
from schemas.ids import training_id
from tests.reference_fold.comparison import database_tables, differences, plain_tables
from tests.reference_fold.histories import LoggedEvent, Shape
from tests.reference_fold.reference import fold
from tests.support.command import Call, call
from tests.support.eventually import eventually
from tests.support.logs import logged_events, write_local_log
from tests.support.postgres import one
from tests.support.reading import read_all

__all__ = ["call"]

pytestmark = pytest.mark.services
SMALL = Shape(steps=1, groups=1, group_size=2, turns=2, has_trouble=False)


def spoilt(name: str) -> list[LoggedEvent]:
    """One heartbeat is of a type that no code knows."""
    events = logged_events(name, shape=SMALL)
    index = next(number for number, one in enumerate(events) if b"heartbeat_sent" in one.value)
    stream, value = events[index]
    events[index] = LoggedEvent(stream, value.replace(b"heartbeat_sent", b"dreamt"))
    return events


def num_in(url: str, state: str) -> int:
    return int(str(one(url, f"SELECT count(*) FROM cua.unapplied_record WHERE state = '{state}'")))


def test_decisions_are_applied_by_the_projector_that_runs(call: Call, migrated_url: str) -> None:
    installation = open_installation(os.environ)
    write_local_log(installation.local_log_path, spoilt("a"))
    command = [sys.executable, "-m", "consumers", "run"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as projector:
        try:
            eventually(lambda: num_in(migrated_url, "parked") > 0)
            culprit: dict[str, Any] = call("parked", "list", "--json").json[0]
            num_parked = num_in(migrated_url, "parked")
            assert call("parked", "drop", culprit["id"], "--rest").code == 0
            eventually(lambda: num_in(migrated_url, "refused") == num_parked)
            assert num_in(migrated_url, "parked") == 0
            assert call("parked", "drop", culprit["stream"], "--undo").code == 0
            eventually(lambda: num_in(migrated_url, "parked") == num_parked)
            assert call("parked", "drop", culprit["id"]).code == 0
            eventually(lambda: num_in(migrated_url, "parked") == 0)
        finally:
            projector.send_signal(signal.SIGTERM)
    assert call("verify", "--json").json["equal"]
    reference = fold((record.key, record.value) for record in read_all(installation))
    tables = database_tables(migrated_url)
    assert differences(plain_tables(reference.tables), tables) == []
    assert [row["status"] for row in tables["training"].values()] == ["completed"]
    assert call("rebuild", "--json").json["changed"] == 0


def test_a_replay_takes_the_decisions_of_its_training_and_before_its_time(
    call: Call, migrated_url: str
) -> None:
    path = open_installation(os.environ).local_log_path
    write_local_log(path, [*spoilt("a"), *spoilt("b")])
    call("run", "--once")
    culprits = [item for item in call("parked", "list", "--json").json if item["kind"] != "behind"]
    of_a = f"training/{training_id('a')}"
    (culprit,) = [item for item in culprits if item["stream"] == of_a]
    (dropped,) = call("parked", "drop", culprit["id"], "--json").json["positions"]
    positions = call("run", "--once", "--json").json["positions"]
    for at in positions:
        if (at["topic"], at["partition"]) == (dropped["topic"], dropped["partition"]):
            at["position"] = dropped["offset"]
    before = ",".join("{topic}/{partition}={position}".format(**at) for at in positions)

    for arguments in (("--run", "a", "--into", "only_a"), ("--until", before, "--into", "older")):
        assert call("rebuild", *arguments, "--json").code == 0

    statuses = "SELECT string_agg(status, ',' ORDER BY run_name) FROM {}.training"
    assert one(migrated_url, statuses.format("cua")) == "completed,running"
    assert one(migrated_url, statuses.format("only_a")) == "completed"
    assert one(migrated_url, statuses.format("older")) == "running,running"
