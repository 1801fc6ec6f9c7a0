"""A desktop: its input, its failures, and that nothing of it is left."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import psutil
import pytest

from producer.agents import AGENTS
from producer.agents.desktop import programs
from producer.agents.desktop.environment import DesktopEnvironment
from producer.agents.desktop.keeper import identity_of, remove_files, socket_of
from producer.agents.desktop.tasks import desktop_task
from producer.config import RunConfig
from producer.environments.environment import ActionRefusedError, EnvironmentFailedError
from producer.errors import UsageError
from producer.task import Task
from schemas.actions import Action, Click, ExecuteSql, KeyPress, OpenApp, Type, Wait
from tests.support.desktop import needs_desktop
from tests.support.eventually import eventually

PLAIN = Task("plain", "Plain", "Look.", None, None, 5, None, None)
EDITOR = Click(x=24, y=586)
LIMIT_S = 10
HANGING = """
import json
from producer.agents.desktop.environment import DesktopEnvironment
from producer.agents.desktop.tasks import desktop_task
desktop = DesktopEnvironment()
desktop.open(desktop_task("write-note"), 1)
print(json.dumps([desktop.session.pid, str(desktop.session.folder)]), flush=True)
input()
"""


@pytest.fixture
def desktop() -> Iterator[DesktopEnvironment]:
    made = DesktopEnvironment(limit_s=LIMIT_S)
    yield made
    made.close()


def windows(desktop: DesktopEnvironment, title: str) -> None:
    """Waits for the active window to have this title."""
    eventually(lambda: title in desktop.title(), found=desktop.title)


def processes(desktop: DesktopEnvironment) -> list[psutil.Process]:
    keeper = psutil.Process(desktop.session.pid)
    return [keeper, *keeper.children(recursive=True)]


def names(desktop: DesktopEnvironment) -> set[str]:
    """Of its processes. One that was just forked still has its parent's name."""
    found = set()
    for each in processes(desktop):
        with contextlib.suppress(psutil.NoSuchProcess):
            found.add(each.name())
    return found


def process(desktop: DesktopEnvironment, name: str) -> psutil.Process:
    """The one that was started; a process that it has just forked may have its name too."""
    found: list[psutil.Process] = []

    def is_found() -> bool:
        for each in processes(desktop):
            with contextlib.suppress(psutil.NoSuchProcess):
                if each.name() == name:
                    found.append(each)
        return bool(found)

    eventually(is_found)
    return min(found, key=psutil.Process.create_time)


def wait_twenty_times(desktop: DesktopEnvironment) -> None:
    for _ in range(20):
        desktop.act(Wait(duration_s=0.1))


@needs_desktop
def test_any_text_can_be_typed_and_saved(desktop: DesktopEnvironment) -> None:
    desktop.open(PLAIN, 1)
    desktop.act(EDITOR)
    windows(desktop, "(Untitled)")
    desktop.act(Type(text="Grüße, 5 €\n\tñ 日本 {a}"))
    desktop.act(KeyPress(keys=("ctrl+s",)))
    windows(desktop, "Save As")
    desktop.act(Type(text="~/ü.txt"))
    desktop.act(Wait(duration_s=0.5))
    desktop.act(KeyPress(keys=("Return",)))
    windows(desktop, "ü.txt")
    assert desktop.shell("cat ü.txt").rstrip("\n") == "Grüße, 5 €\n\tñ 日本 {a}"


@needs_desktop
@pytest.mark.parametrize(
    ("action", "message"),
    [
        (Click(x=800, y=0), r"\(800, 0\) is outside the screen of 800 x 600 px"),
        (KeyPress(keys=("volume_up",)), "a desktop has no key 'volume_up'"),
        (Type(text="\x07"), "cannot be typed"),
        (OpenApp(package="a.b"), "a desktop does not support open_app"),
        (ExecuteSql(sql="SELECT 1"), "a desktop does not support execute_sql"),
    ],
)
def test_what_mouse_and_keys_cannot_do_is_refused(
    desktop: DesktopEnvironment, action: Action, message: str
) -> None:
    desktop.open(PLAIN, 1)
    with pytest.raises(ActionRefusedError, match=message):
        desktop.act(action)
    desktop.act(Wait(duration_s=0))


@needs_desktop
def test_an_application_sees_no_variable_of_ours(
    desktop: DesktopEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GBOX_API_KEY", "secret")
    desktop.open(PLAIN, 1)
    assert "secret" not in desktop.shell("env")
    assert desktop.shell("id -u").strip() != "0"


@needs_desktop
@pytest.mark.parametrize("name", ["l3afpad", "jwm", "Xvfb"])
def test_a_part_that_is_killed_fails_the_attempt_and_the_next_is_fresh(
    desktop: DesktopEnvironment, name: str
) -> None:
    desktop.open(PLAIN, 1)
    desktop.act(EDITOR)
    windows(desktop, "(Untitled)")
    process(desktop, name).send_signal(signal.SIGSEGV)
    with pytest.raises(EnvironmentFailedError):
        wait_twenty_times(desktop)
    desktop.open(PLAIN, 1)
    desktop.act(Wait(duration_s=0))


@needs_desktop
def test_an_application_that_the_agent_closes_is_no_failure(desktop: DesktopEnvironment) -> None:
    desktop.open(PLAIN, 1)
    desktop.act(EDITOR)
    windows(desktop, "(Untitled)")
    desktop.act(KeyPress(keys=("ctrl", "q")))
    desktop.act(Wait(duration_s=0.5))


@needs_desktop
@pytest.mark.parametrize("name", ["Xvfb", "keeper"])
def test_a_display_that_hangs_fails_the_attempt_within_its_limit_and_is_ended(
    desktop: DesktopEnvironment, name: str
) -> None:
    desktop.open(PLAIN, 1)
    desktop.session._limit_s = 2.0
    all_of_it = processes(desktop)
    (all_of_it[0] if name == "keeper" else process(desktop, name)).suspend()
    began_s = monotonic()
    with pytest.raises(EnvironmentFailedError, match="did not answer within 2 s"):
        desktop.act(Wait(duration_s=0))
    assert monotonic() - began_s < 4 * LIMIT_S
    eventually(lambda: not any(each.is_running() for each in all_of_it))


@needs_desktop
def test_everything_ends_with_the_episode_however_it_was_started(
    desktop: DesktopEnvironment,
) -> None:
    desktop.open(PLAIN, 1)
    desktop.act(EDITOR)
    windows(desktop, "(Untitled)")
    desktop.shell("setsid sh -c '(sleep 1000 &) ' > /dev/null 2>&1")
    eventually(lambda: {"Xvfb", "jwm", "l3afpad", "sleep"} <= names(desktop))
    started, folder = processes(desktop), desktop.session.folder
    desktop.close()
    # On a busy machine what was killed may end a little after its keeper.
    eventually(lambda: not any(each.is_running() for each in started))
    assert not folder.exists()


@needs_desktop
def test_the_socket_of_a_display_that_was_killed_is_removed(desktop: DesktopEnvironment) -> None:
    desktop.open(PLAIN, 1)
    socket = socket_of(int(desktop.shell("echo $DISPLAY").strip().removeprefix(":")))
    before = identity_of(socket)
    assert before is not None
    process(desktop, "Xvfb").kill()
    desktop.close()
    assert identity_of(socket) != before


@pytest.mark.parametrize("is_taken", [False, True])
def test_files_of_the_next_display_with_the_same_number_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_taken: bool
) -> None:
    """Xvfb takes the number of one that has just ended, while its keeper still cleans up."""
    monkeypatch.setattr("producer.agents.desktop.keeper.LOCKS", tmp_path)
    monkeypatch.setattr("producer.agents.desktop.keeper.SOCKETS", tmp_path)
    socket, lock = socket_of(7), tmp_path / ".X7-lock"
    socket.touch()
    os.utime(socket, ns=(1, 1))
    lock.write_text(f"{100:10d}\n")
    ours = identity_of(socket)
    if is_taken:
        os.utime(socket, ns=(2, 2))  # another file, perhaps with the inode of the old one
        lock.write_text(f"{101:10d}\n")
    remove_files(7, 100, ours)
    assert (socket.exists(), lock.exists()) == (is_taken, is_taken)
    remove_files(7, 100, None)
    assert (socket.exists(), lock.exists()) == (is_taken, is_taken)


@needs_desktop
def test_everything_ends_with_a_trainer_that_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HANGING], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as trainer:
        assert trainer.stdout is not None
        pid, folder = json.loads(trainer.stdout.readline())
        keeper = psutil.Process(pid)
        started = [keeper, *keeper.children(recursive=True)]
        assert len(started) >= 3
        os.kill(trainer.pid, signal.SIGKILL)
    eventually(lambda: not any(each.is_running() for each in started))
    eventually(lambda: not Path(folder).exists())


def test_a_missing_program_is_named_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in set(programs.PACKAGES) - {"Xvfb", "jwm"}:
        (tmp_path / name).touch(mode=0o755)
    with pytest.raises(UsageError) as raised:
        programs.check_programs()
    assert str(raised.value) == (
        "the environment desktop needs Xvfb, jwm;"
        " on Debian or Ubuntu: sudo apt-get install xvfb jwm"
    )


@needs_desktop
def test_a_task_of_phones_is_refused() -> None:
    asked = Task("wifi", "Wi-Fi", "Turn it on.", None, None, 5, "wifi_enabled", "True")
    agent = AGENTS["desktop"]
    config = RunConfig(environment="desktop")
    agent.check_task(config, desktop_task("write-note"))
    with pytest.raises(ValueError, match="which a desktop does not have; give it a judge"):
        agent.check_task(config, asked)
