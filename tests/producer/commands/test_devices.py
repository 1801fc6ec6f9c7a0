"""`cua-train devices`: which rented devices exist, and which nothing uses any more."""

import json
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from producer.config import read_config
from producer.emit import Emitter
from producer.training.run import run
from schemas import ids
from schemas.catalogue import stream
from schemas.training import TrainingCreated
from tests.support.cua_train import CuaTrain
from tests.support.gbox_server import KEY, FakeGbox, gbox_server
from tests.support.small_run import small

RUNNING = TrainingCreated(
    run_name="running", kind="rl", recipe=read_config({}).recipe(Path()), total_steps=1, config={}
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGbox]:
    with gbox_server() as made:
        monkeypatch.setenv("GBOX_API_KEY", KEY)
        monkeypatch.setenv("GBOX_CLIENT_BASE_URL", made.url)
        for training in ("small", "running", "elsewhere"):
            labels = {"created-by": "cua-train", "training": training}
            made.create("android", {"labels": labels})
        made.create("android", {"labels": {"created-by": "somebody else"}})
        yield made


@pytest.fixture
def call(cua_train: CuaTrain, server: FakeGbox) -> CuaTrain:
    """`cua-train devices` where `small` has ended and `running` has not."""
    assert server
    run(small(num_steps=0))
    with Emitter.open() as emitter:
        writer = emitter.stream(stream("training", ids.training_id("running")))
        writer.emit(RUNNING)
        emitter.flush()
    return partial(cua_train, "devices")


def alive(server: FakeGbox) -> list[str]:
    return [box.box_id for box in server.alive]


def test_devices_of_ours_are_listed_with_what_became_of_their_training(call: CuaTrain) -> None:
    listed = json.loads(call("list", "--json").stdout)
    assert [(row["device"], row["training"], row["training_status"]) for row in listed] == [
        ("box-1", "small", "completed"),
        ("box-2", "running", "pending"),
        ("box-3", "elsewhere", "unknown"),
    ]
    first = listed[0]
    assert (first["environment"], first["box_type"], first["status"]) == (
        "gbox",
        "android",
        "running",
    )
    assert 0 <= first["age_s"] < 300
    assert "box-2" in call("list").stdout


def test_a_sweep_closes_what_no_running_training_has(call: CuaTrain, server: FakeGbox) -> None:
    assert "box-1" in call("sweep", "--dry-run").stdout
    assert alive(server) == ["box-1", "box-2", "box-3", "box-4"]
    assert call("sweep").stdout == "closed box-1\n"
    assert alive(server) == ["box-2", "box-3", "box-4"]
    assert call("sweep").stdout == ""


def test_a_box_from_before_the_training_s_last_process_is_left(
    call: CuaTrain, server: FakeGbox
) -> None:
    server.boxes["box-2"].created_at -= timedelta(minutes=5)
    listed = json.loads(call("list", "--json").stdout)
    assert {row["device"]: row["is_left"] for row in listed} == {
        "box-1": True,
        "box-2": True,
        "box-3": False,
    }
    call("sweep")
    assert alive(server) == ["box-3", "box-4"]


def test_devices_of_trainings_elsewhere_are_closed_on_request(
    call: CuaTrain, server: FakeGbox
) -> None:
    would = json.loads(call("sweep", "--unknown", "--dry-run", "--json").stdout)
    assert [row["device"] for row in would] == ["box-1", "box-3"]
    swept = json.loads(call("sweep", "--unknown", "--json").stdout)
    assert [(row["device"], row["failure"]) for row in swept] == [("box-1", None), ("box-3", None)]
    assert alive(server) == ["box-2", "box-4"]


def test_what_cannot_be_closed_is_an_error(
    call: CuaTrain, server: FakeGbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "refuses_to_close", True)
    assert "GBox could not close box box-1: HTTP 400" in call("sweep", expected=1).stderr


def test_without_a_key_there_is_nobody_to_ask(
    cua_train: CuaTrain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GBOX_API_KEY", raising=False)
    assert "GBOX_API_KEY: no key of GBox is set" in cua_train("devices", "list", expected=3).stderr
