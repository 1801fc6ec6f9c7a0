"""What a run with phones of an adb server is told before its first event."""

from collections.abc import Iterator
from functools import partial

import pytest

from producer.agents import AGENTS
from producer.config import RunConfig, read_config
from producer.errors import CuaTrainError
from producer.task import Task
from tests.support.adb_server import FakeAdbServer, adb_server

TASK = Task("t", "t", "Go home.", None, None, 5, "is_home_screen", "True")
ADB = AGENTS["adb"]


@pytest.fixture
def server() -> Iterator[FakeAdbServer]:
    with adb_server("one", "two") as running:
        yield running


def asked(address: str, **given: object) -> RunConfig:
    return read_config(
        {
            "environment": "adb",
            "model_name": "somewhere",
            "tasks": {"source_type": "demo_training"},
            "adb_serials": "one,two",
            "adb_server": address,
            **given,
        }
    )


def test_phones_that_answer_have_the_screen_of_the_run(server: FakeAdbServer) -> None:
    config = asked(server.address)
    ADB.check_task(config, TASK)
    assert ADB.screen(config) == (360, 640)
    assert config.adb_serials == ("one", "two")


def test_no_more_episodes_run_at_once_than_there_are_phones() -> None:
    assert asked("127.0.0.1:1").concurrent_rollouts == 2
    assert asked("127.0.0.1:1", max_concurrent_rollouts=1).concurrent_rollouts == 1


def unauthorised(server: FakeAdbServer) -> None:
    server.phones["two"].state = "unauthorized"


def offline(server: FakeAdbServer) -> None:
    server.phones["two"].state = "offline"


def breaking(server: FakeAdbServer) -> None:
    server.phones["two"].failing = 1.0


def unknown(server: FakeAdbServer) -> None:
    del server.phones["two"]


def old(server: FakeAdbServer) -> None:
    server.phones["two"].features = "cmd"


def wide(server: FakeAdbServer) -> None:
    server.phones["two"].is_turned = True


PROBLEMS = {
    unauthorised: (5, "adb_serials: phone two is not authorised: confirm this computer"),
    offline: (5, "adb_serials: phone two is offline: connect it again"),
    breaking: (5, "adb_serials: phone two did not answer 'screencap -p'"),
    unknown: (3, "adb_serials: two: the adb server at 127.0.0.1:.* lists one$"),
    old: (5, "adb_serials: phone two is older than Android 7"),
    wide: (2, "the same screen size; found one 360x640, two 640x360"),
}


@pytest.mark.parametrize("spoil", PROBLEMS, ids=lambda spoil: spoil.__name__)
def test_a_phone_that_cannot_be_used_is_named_before_the_run(
    server: FakeAdbServer, spoil: object
) -> None:
    assert callable(spoil)
    spoil(server)
    exit_code, message = PROBLEMS[spoil]
    with pytest.raises(CuaTrainError, match=message) as refused:
        ADB.check_task(asked(server.address), TASK)
    assert refused.value.exit_code == exit_code


def test_a_server_that_does_not_answer_is_named_and_none_is_started() -> None:
    with pytest.raises(
        CuaTrainError, match=r"no adb server answers at 127.0.0.1:1: .*refused"
    ) as no:
        ADB.check_task(asked("127.0.0.1:1"), TASK)
    assert no.value.exit_code == 5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"adb_serials": "one,,two"}, "names no phone"),
        ({"adb_serials": "one,one"}, "one given twice"),
        ({"adb_server": "localhost"}, "adb_server"),
        ({"environment": "android"}, "adb_serials: only for environment adb"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(CuaTrainError, match=message):
        asked("127.0.0.1:5037", **given)


def test_no_phone_is_used_that_was_not_named(server: FakeAdbServer) -> None:
    config = asked(server.address, adb_serials=None)
    for ask in (partial(ADB.check_task, config, TASK), partial(ADB.screen, config)):
        with pytest.raises(CuaTrainError, match="name the phones to use") as refused:
            ask()
        assert refused.value.exit_code == 2


def test_there_is_no_oracle() -> None:
    with pytest.raises(CuaTrainError, match=r"`oracle` .* not those of phones over adb"):
        ADB.open_oracle(asked("127.0.0.1:5037"))
