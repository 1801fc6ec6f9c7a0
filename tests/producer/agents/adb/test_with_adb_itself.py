"""Through adb's own server and client, which the client library's package brings."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import adbutils
import pytest

from producer.agents.adb.environment import AdbEnvironment
from producer.agents.adb.server import AdbServer
from producer.environments.environment import EnvironmentFailedError
from producer.task import Task
from producer.validators.verdict import NO_EVIDENCE
from schemas.actions import SystemButton, Type
from tests.support.adb_server import adb_server
from tests.support.adbd import SimulatedAdbd
from tests.support.ports import free_port

ADB = Path(adbutils.__file__).parent / "binaries" / "adb"
BLUETOOTH = Task(
    *("bluetooth", "Bluetooth", "Turn Bluetooth off.", None, None, 5, "bluetooth_enabled", "False"),
    setup=("settings put global bluetooth_on 1",),
)


def adb(port: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([ADB, "-P", port, *words], capture_output=True, timeout=20, check=False)


@pytest.fixture(autouse=True)
def runs_here() -> None:
    if subprocess.run([ADB, "version"], capture_output=True, check=False).returncode != 0:
        pytest.skip("the adb of this package does not run here")


@pytest.fixture
def real_server(tmp_path: Path) -> Iterator[str]:
    """Port of adb's own server."""
    port = str(free_port())
    environ = {**os.environ, "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "ADB_MDNS": "0"}
    with subprocess.Popen(
        [ADB, "-P", port, "nodaemon", "server"],
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        until_s = time.monotonic() + 20
        while True:
            try:
                AdbServer(f"127.0.0.1:{port}").states()
                break
            except EnvironmentFailedError:
                assert time.monotonic() < until_s
                time.sleep(0.05)
        yield port
        server.kill()


@pytest.fixture
def phone() -> Iterator[SimulatedAdbd]:
    made = SimulatedAdbd()
    yield made
    made.close()


def test_the_fake_server_is_one_for_adb_itself() -> None:
    with adb_server("one", "192.168.0.7:5555") as fake:
        port = fake.address.rpartition(":")[2]
        assert b"192.168.0.7:5555\tdevice\n" in adb(port, "devices").stdout
        asked = adb(port, "-s", "one", "shell", "settings get global bluetooth_on")
        assert (asked.returncode, asked.stdout.strip()) == (0, b"1")
        assert adb(port, "-s", "one", "shell", "nonsense").returncode == 127
        shown = adb(port, "-s", "one", "exec-out", "screencap", "-p").stdout
        assert shown.startswith(b"\x89PNG")


def test_an_episode_runs_through_adb_s_own_server_until_the_phone_is_switched_off(
    real_server: str, phone: SimulatedAdbd
) -> None:
    assert b"connected to" in adb(real_server, "connect", phone.serial).stdout
    server = AdbServer(f"127.0.0.1:{real_server}")
    assert server.states() == {phone.serial: "device"}
    assert server.has_shell(phone.serial)
    device = AdbEnvironment(server, (phone.serial,))
    home = device.open(BLUETOOTH, seed=0)
    assert (home.width_px, home.height_px) == (360, 640)
    assert not device.judge(BLUETOOTH, NO_EVIDENCE).success
    phone.phone.sim.phone.focus = "url"
    device.act(Type(text="it's 100%s $HOME"))
    assert phone.phone.sim.phone.fields["url"] == "it's 100%s $HOME"
    device.shell("settings put global bluetooth_on 0")
    assert device.judge(BLUETOOTH, NO_EVIDENCE).success
    assert server.run(phone.serial, "nonsense").status == 127
    phone.close()
    with pytest.raises(EnvironmentFailedError, match=f"phone {phone.serial} did not answer"):
        device.act(SystemButton(button="home"))
    device.close()
