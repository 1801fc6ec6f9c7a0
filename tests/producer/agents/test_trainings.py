"""Trainings on every environment beside the simulated phone, killed and continued by the command.

Each is what a user with a key, a phone, a browser or a server types, with a small policy of the
hub's layout: two steps with SIGKILL in the second, and tables that are equal to a replay.
"""

import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from openenv.core import GenericEnvClient
from PIL import Image

from consumers.blobs import read_blob
from producer.agents.adb.leases import busy
from producer.agents.adb.server import AdbServer
from producer.codecs.qwen import QwenToolCodec
from producer.policy.formats import TOOLS
from schemas.actions import Click, Wait
from tests.support.acting_policy import write_acting_policy
from tests.support.adb_server import adb_server
from tests.support.env_servers import served_by_command
from tests.support.eventually import eventually
from tests.support.forked_command import run_command
from tests.support.forked_process import ForkedProcess
from tests.support.gbox_server import KEY, gbox_server
from tests.support.killed_run import run_until_killed
from tests.support.reading import Event, installation_at, of_type, read_all
from tests.support.whole_system import query

NUM_STEPS, GROUP_SIZE, MAX_TURNS = 2, 2, 2
NUM_EPISODES = NUM_STEPS * GROUP_SIZE + 1
"""Of both steps and of the evaluation at the end."""
KILL = ("flushed", "cua.rollout.turn_taken", str(GROUP_SIZE * MAX_TURNS + 1))
"""After the first turn of step 2, while its devices are open."""
SETTINGS: dict[str, object] = {
    "training-name": "devices",
    "num-steps": NUM_STEPS,
    "group-size": GROUP_SIZE,
    "groups-per-batch": 1,
    "max-concurrent-rollouts": GROUP_SIZE,
    "max-turns": MAX_TURNS,
    "max-tokens": 4,
    "lora-rank": 2,
    "learning-rate": 0.01,
    # Rewards differ, although such a policy solves nothing.
    "reward": "tests.support.token_reward:by_tokens",
    "eval-every": 0,
    "eval-episodes": 1,
}
SWITCHES = ("--skip-baseline", "--no-remove-constant-reward-groups", "--no-monitor")
WIFI = {"source_type": "ids", "task_ids": ["train_02_enable_wifi"]}

DEVICE_EVENTS = ("requested", "terminated", "failed", "leaked")
TURNS = """
    SELECT rollout.id, turn.turn, obs.screenshot_uri, action.action_type
    FROM cua.rollout
    JOIN cua.turn ON turn.rollout_id = rollout.id
    JOIN cua.obs ON obs.turn_id = turn.id AND obs_type = 'screenshot_before'
    LEFT JOIN cua.action ON action.turn_id = turn.id AND action_index = 0
    WHERE rollout.status = 'completed'
"""


class Place(NamedTuple):
    """Where a training finds its devices."""

    words: tuple[str, ...]
    """Of its command line."""
    environ: dict[str, str] = {}
    is_left: Callable[[], object] = bool
    """Whether a device that others see is still in use."""
    screen_px: tuple[int, int] = (360, 640)


def tasks(source: object) -> tuple[str, ...]:
    """For training and for the evaluation."""
    return "--tasks", json.dumps(source), "--eval-tasks", json.dumps(source)


@pytest.fixture
def openenv() -> Iterator[Place]:
    def is_taken() -> bool:
        """Whether there is no room for as many sessions as the server allows."""
        clients = [GenericEnvClient(base_url=url).sync() for _ in range(GROUP_SIZE)]
        try:
            for client in clients:
                client.reset()
        except RuntimeError:
            return True
        finally:
            for client in clients:
                client.close()
        return False

    with served_by_command("--max-sessions", str(GROUP_SIZE)) as (url, _):
        yield Place(("--env-url", url, "--env-screen", "360x640"), is_left=is_taken)


@pytest.fixture
def gbox() -> Iterator[Place]:
    with gbox_server() as server:
        environ = {"GBOX_API_KEY": KEY, "GBOX_CLIENT_BASE_URL": server.url}
        yield Place(tasks(WIFI), environ, lambda: server.alive)
        assert len(server.boxes) > NUM_EPISODES


@pytest.fixture
def adb() -> Iterator[Place]:
    serials = ("one", "two")
    with adb_server(*serials) as server:
        words = ("--adb-server", server.address, "--adb-serials", ",".join(serials))
        phones = AdbServer(server.address)
        yield Place((*words, *tasks(WIFI)), is_left=lambda: [*busy(phones, serials)])
        commands = [command for phone in server.phones.values() for command in phone.commands]
        assert any(command.startswith("input tap 180 63") for command in commands)


@pytest.fixture
def miniwob(chromium: None) -> Place:  # noqa: ARG001  # skips without it
    source = {"source_type": "miniwob", "names": ["enter-text"]}
    return Place(tasks(source), screen_px=(160, 210))


@pytest.fixture
def desktop(desktop_programs: None) -> Place:  # noqa: ARG001  # skips without them
    source = {"source_type": "desktop", "names": ["write-note"]}
    return Place(tasks(source), screen_px=(800, 600))


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy for each of Qwen's tools. It clicks near the lower edge, or waits."""
    folder = tmp_path_factory.mktemp("policies")
    for name, tool in TOOLS.items():
        codec = QwenToolCodec(tool)
        actions = (Click(x=500, y=990), Wait(duration_s=0))
        write_acting_policy(folder / name, [codec.encode(one, 1000, 1000) for one in actions])
    return folder


def started_by(home: Path) -> list[str]:
    """Processes that have this home in their environment and have not ended."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("CUA_HOME") == str(home):
                found.append(" ".join(process.cmdline())[:100])
        except psutil.Error:  # it has ended, or is another user's
            continue
    return found


@pytest.mark.parametrize(
    ("environment", "renderer"),
    [
        ("openenv", "qwen_mobile"),
        ("gbox", "qwen_mobile"),
        ("adb", "qwen_mobile"),
        ("miniwob", "qwen_computer"),
        ("desktop", "qwen_computer"),
    ],
)
def test_a_training_that_is_killed_goes_on_and_leaves_no_device(
    environment: str,
    renderer: str,
    policies: Path,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    migrated_url: str,
) -> None:
    place: Place = request.getfixturevalue(environment)
    home = tmp_path / "home"
    flags = {**SETTINGS, "environment": environment, "model-name": policies / renderer}
    given = (word for name, value in flags.items() for word in (f"--{name}", str(value)))
    words = ("run", *given, *SWITCHES, *place.words)
    environ = {**place.environ, "CUA_HOME": str(home)}

    def read() -> list[Event]:
        return [json.loads(record.value) for record in read_all(installation_at(home))]

    run_until_killed(KILL, words, environ)
    assert len(of_type(read(), "step.finished")) == 1
    eventually(lambda: not started_by(home), found=lambda: started_by(home))

    said = {name: tmp_path / name for name in ("out", "err")}
    for path in said.values():
        path.touch()
    streams = {"stdout": str(said["out"]), "stderr": str(said["err"])}
    with ForkedProcess("producer", *words, environ=environ, **streams) as process:
        process.wait()
    assert "completed after step 2" in said["out"].read_text(), said["err"].read_text()[-3000:]
    eventually(lambda: not place.is_left())
    eventually(lambda: not started_by(home), found=lambda: started_by(home))
    events = read()
    assert len(of_type(events, "training.resumed")) == 1
    devices = {name: len(of_type(events, f"environment.{name}")) for name in DEVICE_EVENTS}
    assert devices["requested"] == devices["terminated"] > NUM_EPISODES
    assert devices["failed"] == devices["leaked"] == 0
    written = (path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert not any(KEY.encode() in content for content in written)

    at = {**os.environ, "CUA_HOME": str(home), "DATABASE_URL": migrated_url}
    for command in ("run", "--once"), ("verify",):
        done = run_command("consumers", *command, environ=at)
        assert done.returncode == 0, done.stderr
    assert "equal after" in done.stdout + done.stderr
    taken = query(migrated_url, TURNS)
    assert len({turn[:2] for turn in taken}) == len(taken) == NUM_EPISODES * MAX_TURNS
    assert "click" in {action for _, _, _, action in taken}
    for _, _, screen, _ in taken:
        png = read_blob(installation_at(home), str(screen))
        assert Image.open(io.BytesIO(png)).size == place.screen_px
