"""Phones behind an adb server, driven by the real client library."""

import time
from collections.abc import Iterator

import pytest

from producer.agents.adb.environment import AdbEnvironment
from producer.agents.adb.leases import lease
from producer.agents.adb.server import AdbServer
from producer.agents.android.sim.screens.widget import HEIGHT_PX
from producer.environments.environment import ActionRefusedError, EnvironmentFailedError
from producer.environments.screens import as_screenshot, settled
from producer.task import Task
from producer.validators.verdict import NO_EVIDENCE
from schemas.actions import Click, OpenApp, SystemButton, Type, Wait
from tests.support.adb_server import FakeAdbServer, adb_server

BLUETOOTH = Task(
    "bluetooth",
    "Bluetooth",
    "Turn Bluetooth off.",
    None,
    None,
    5,
    "bluetooth_enabled",
    "False",
    setup=("settings put global bluetooth_on 1",),
    app_name="com.android.chrome",
)


@pytest.fixture
def server() -> Iterator[FakeAdbServer]:
    with adb_server("one", "192.168.0.7:5555") as running:
        yield running


def on(server: FakeAdbServer, *serials: str, limit_s: float = 5.0) -> AdbEnvironment:
    return AdbEnvironment(AdbServer(server.address, limit_s), serials or ("one",))


def test_a_task_of_phones_is_set_up_and_judged_by_the_phone_s_shell(server: FakeAdbServer) -> None:
    phone, device = server.phones["192.168.0.7:5555"], on(server, "192.168.0.7:5555")
    device.open(BLUETOOTH, seed=0)
    assert device.provider_id == "192.168.0.7:5555"
    assert phone.commands[:6] == [
        "input keyevent KEYCODE_WAKEUP",
        "wm dismiss-keyguard",
        "cmd statusbar collapse",
        "am force-stop com.android.chrome",
        "input keyevent KEYCODE_HOME",
        "settings put global bluetooth_on 1",
    ]
    assert not device.judge(BLUETOOTH, NO_EVIDENCE).success
    device.shell("settings put global bluetooth_on 0")
    verdict = device.judge(BLUETOOTH, NO_EVIDENCE)
    assert (verdict.success, verdict.actual) == (True, "False")
    device.close()


def test_what_is_typed_is_what_the_phone_has_in_its_field(server: FakeAdbServer) -> None:
    phone, device = server.phones["one"], on(server)
    device.open(BLUETOOTH, seed=0)
    phone.sim.phone.focus = "url"
    phone.sim.phone.fields["url"] = ""
    device.act(Type(text='it\'s 100%s "$HOME" & more'))
    assert phone.sim.phone.fields["url"] == 'it\'s 100%s "$HOME" & more'
    device.close()


def test_an_app_is_started_and_one_that_is_not_there_is_refused(server: FakeAdbServer) -> None:
    device = on(server)
    home = device.open(BLUETOOTH, seed=0)
    with pytest.raises(ActionRefusedError, match=r"com\.example\.none cannot be started"):
        device.act(OpenApp(package="com.example.none"))
    started = device.act(OpenApp(package="com.android.settings"))
    assert started.ref != home.ref
    assert device.act(SystemButton(button="home")).ref == home.ref
    device.close()


def test_a_set_up_that_fails_fails_the_environment_and_names_the_command(
    server: FakeAdbServer,
) -> None:
    task = Task("t", "t", "x", None, None, 5, None, None, setup=("settngs put a b",))
    device = on(server)
    with pytest.raises(EnvironmentFailedError, match=r"'settngs put a b' printed '.*not found'"):
        device.open(task, seed=0)
    device.close()


def test_a_phone_that_goes_offline_has_failed_and_the_next_episode_has_another(
    server: FakeAdbServer,
) -> None:
    device = on(server, "one", "192.168.0.7:5555")
    device.open(BLUETOOTH, seed=0)
    gone = device.provider_id
    phone = server.phones[gone]
    phone.goes_after = len(phone.commands)
    for _ in range(2):
        with pytest.raises(EnvironmentFailedError, match=f"phone {gone} did not answer"):
            device.act(Click(x=1, y=1))
    device.open(BLUETOOTH, seed=0)
    assert device.provider_id != gone
    device.close()


def test_a_phone_that_hangs_has_failed_at_the_limit(server: FakeAdbServer) -> None:
    device = on(server, limit_s=1.5)
    device.open(BLUETOOTH, seed=0)
    server.phones["one"].hangs.set()
    began_s = time.monotonic()
    with pytest.raises(EnvironmentFailedError, match="phone one did not answer 'input tap 1 1'"):
        device.act(Click(x=1, y=1))
    assert 1.5 <= time.monotonic() - began_s < 15.0
    device.close()


def test_a_phone_has_one_episode_at_a_time(server: FakeAdbServer) -> None:
    adb = AdbServer(server.address)
    first = lease(adb, ("one", "192.168.0.7:5555"), wait_s=0)
    second = lease(adb, ("one", "192.168.0.7:5555"), wait_s=0)
    assert {first.serial, second.serial} == {"one", "192.168.0.7:5555"}
    with pytest.raises(EnvironmentFailedError, match="phone one is used by another episode; phone"):
        lease(adb, ("one", "192.168.0.7:5555"), wait_s=0)
    first.end()
    first.end()
    third = lease(adb, ("one", "192.168.0.7:5555"), wait_s=0)
    assert third.serial == first.serial
    third.end()
    second.end()


def test_a_phone_is_the_same_by_every_name_of_its_server(server: FakeAdbServer) -> None:
    held = lease(AdbServer(server.address), ("one",), wait_s=0)
    other = AdbServer(server.address.replace("127.0.0.1", "localhost"))
    with pytest.raises(EnvironmentFailedError, match="phone one is used by another episode"):
        lease(other, ("one",), wait_s=0)
    held.end()


def test_the_phone_that_has_been_idle_longest_is_next_and_one_that_is_gone_is_left_out(
    server: FakeAdbServer,
) -> None:
    adb, both = AdbServer(server.address), ("one", "192.168.0.7:5555")
    used = []
    for _ in range(4):
        held = lease(adb, both, wait_s=0)
        used.append(held.serial)
        held.end()
    assert used == [*both, *both]
    server.phones["one"].state = "unauthorized"
    for _ in range(2):
        held = lease(adb, both, wait_s=0)
        assert held.serial == "192.168.0.7:5555"
        held.end()
    del server.phones["192.168.0.7:5555"]
    problem = (
        "phone 192.168.0.7:5555 is not connected; phone one is not authorised: confirm this"
        " computer on its screen"
    )
    with pytest.raises(EnvironmentFailedError) as failed:
        lease(adb, ("192.168.0.7:5555", "one"), wait_s=0)
    assert sorted(str(failed.value).split("; ")) == sorted(problem.split("; "))


def test_a_phone_that_comes_back_is_waited_for(server: FakeAdbServer) -> None:
    server.phones["one"].state = "offline"
    adb = AdbServer(server.address)
    with pytest.raises(EnvironmentFailedError, match="phone one is offline: connect it again"):
        lease(adb, ("one",), wait_s=0)
    states = iter(["offline", "device"])

    class Later(AdbServer):
        def states(self) -> dict[str, str]:
            return {"one": next(states)}

    held = lease(Later(server.address), ("one",), wait_s=5)
    assert held.serial == "one"
    held.end()


def test_without_a_server_no_phone_is_free() -> None:
    with pytest.raises(EnvironmentFailedError, match=r"no adb server answers at 127\.0\.0\.1:1"):
        lease(AdbServer("127.0.0.1:1"), ("one",), wait_s=0)


def test_the_screen_is_taken_once_it_has_settled() -> None:
    shown = iter([b"a", b"b", b"c", b"c", b"d"])
    assert settled(lambda: next(shown)) == b"c"


def test_a_screen_that_never_settles_is_taken_at_the_limit() -> None:
    pictures = (str(number).encode() for number in range(10**9))
    began_s = time.monotonic()
    settled(lambda: next(pictures), limit_s=0.1)
    assert 0.1 <= time.monotonic() - began_s < 10.0


def test_what_is_no_picture_is_a_failure_of_the_phone() -> None:
    with pytest.raises(EnvironmentFailedError, match="phone one sent no picture of its screen"):
        as_screenshot(b"error: closed", "phone one")


def test_the_screen_is_the_simulator_s_and_waiting_changes_nothing(server: FakeAdbServer) -> None:
    device = on(server)
    shown = device.open(BLUETOOTH, seed=0)
    assert shown.height_px == HEIGHT_PX
    assert as_screenshot(shown.png, "it").png == shown.png
    assert device.act(Wait(duration_s=0)).ref == shown.ref
    device.close()
