"""What a run with boxes of GBox is told before its first event."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from producer.agents import AGENTS
from producer.config import RunConfig, read_config
from producer.errors import CuaTrainError
from producer.task import Task
from tests.support.gbox_server import KEY, FakeGbox, gbox_server

HOME = Task("home", "Home", "Go home.", None, None, 5, "is_home_screen", "True")
REPORTED = Task("report", "Report", "Look.", None, None, 5, None, None, judge="agent")
GBOX = AGENTS["gbox"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGbox]:
    with gbox_server() as running:
        monkeypatch.setenv("GBOX_API_KEY", KEY)
        monkeypatch.setenv("GBOX_CLIENT_BASE_URL", running.url)
        yield running


def asked(**given: object) -> RunConfig:
    tasks = {"source_type": "demo_training"}
    return read_config({"environment": "gbox", "model_name": "somewhere", "tasks": tasks, **given})


def test_the_screen_is_asked_of_one_box_that_is_closed_again(server: FakeGbox) -> None:
    config = asked(training_name="mine")
    assert server.requests == []
    assert GBOX.screen(config) == GBOX.screen(config) == (360, 640)
    (box,) = server.boxes.values()
    assert (box.status, box.config["labels"]["training"]) == ("terminated", "none")


def test_few_boxes_run_at_once_unless_more_are_asked_for() -> None:
    assert asked().concurrent_rollouts == 4
    assert asked(max_concurrent_rollouts=9).concurrent_rollouts == 9


def test_a_linux_box_has_no_tasks_that_ask_a_phone(server: FakeGbox) -> None:
    linux = asked(box_type="linux")
    GBOX.check_task(linux, REPORTED)
    with pytest.raises(ValueError, match="task home is judged by is_home_screen, which a Linux"):
        GBOX.check_task(linux, HOME)
    GBOX.check_task(asked(), HOME)
    assert (GBOX.operating_system(linux), GBOX.operating_system(asked())) == ("linux", "android")
    assert server.boxes == {}
    assert linux.recipe(Path()).box_type == "linux"


def test_a_refused_key_is_named_by_its_variable(
    server: FakeGbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server
    monkeypatch.setenv("GBOX_API_KEY", "a-wrong-key")
    for ask in (partial(GBOX.check_task, asked(), HOME), partial(GBOX.screen, asked())):
        with pytest.raises(CuaTrainError, match=r"GBOX_API_KEY: .*HTTP 401") as refused:
            ask()
        assert refused.value.exit_code == 2
        assert "a-wrong-key" not in str(refused.value)


def test_a_missing_key_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GBOX_API_KEY", raising=False)
    with pytest.raises(CuaTrainError, match="GBOX_API_KEY: no key of GBox is set") as missing:
        GBOX.check_task(asked(), HOME)
    assert missing.value.exit_code == 3


def test_a_server_that_does_not_answer_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("producer.agents.gbox.service.NUM_RETRIES", 0)
    monkeypatch.setenv("GBOX_API_KEY", KEY)
    monkeypatch.setenv("GBOX_CLIENT_BASE_URL", "http://127.0.0.1:1/api/v1")
    refused = "Connection refused; check the network and GBOX_CLIENT_BASE_URL"
    with gbox_server(), pytest.raises(CuaTrainError, match=refused) as gone:
        GBOX.check_task(asked(), HOME)
    assert gone.value.exit_code == 5


def test_there_is_no_oracle() -> None:
    with pytest.raises(CuaTrainError, match=r"`oracle` .* not those of rented devices"):
        GBOX.open_oracle(asked())
