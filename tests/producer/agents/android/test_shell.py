"""The phone's shell prints what a device prints, and its changes show on the screen.

A phone fails where it is not running, or its set-up fails; it has a name once it is open.
"""

from collections.abc import Callable
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from producer.agents.android.sim.device.sim import AndroidSim
from producer.agents.android.sim.oracle.navigator import SWIPES
from producer.environments.environment import EnvironmentFailedError
from producer.task import Task
from schemas.actions import OpenApp, SystemButton, Type, Wait

NO_TASK = Task("none", "none", "Look around.", None, None, 10, None, None)


def test_settings_are_stored_as_text_and_what_is_not_there_is_null(phone: AndroidSim) -> None:
    assert phone.shell("settings get global no_such_thing") == "null\n"
    assert phone.shell("settings put global no_such_thing 7") == ""
    assert phone.shell("settings get global no_such_thing") == "7\n"
    assert phone.shell("settings delete global no_such_thing") == "Deleted 1 rows\n"
    assert phone.shell("settings get global no_such_thing") == "null\n"


def test_the_window_dump_names_who_has_the_focus(phone: AndroidSim) -> None:
    phone.act(OpenApp(package="com.android.settings"))
    assert "u0 com.android.settings/com.android.settings.Settings}" in phone.shell("dumpsys window")
    phone.act(SystemButton(button="home"))
    assert "mCurrentFocus=Window{" in phone.shell("dumpsys window")
    assert "com.android.launcher3/" in phone.shell("dumpsys window")
    phone.act(SWIPES["down"])
    assert "u0 NotificationShade}" in phone.shell("dumpsys window")


def test_the_activity_dump_names_the_page_and_what_it_is_about(phone: AndroidSim) -> None:
    phone.phone.launch("com.android.settings", "app_info:com.android.chrome")
    dump = phone.shell("dumpsys activity activities")
    assert "mResumedActivity: ActivityRecord{" in dump
    assert "u0 com.android.settings/.applications.InstalledAppDetails t" in dump
    assert "dat=package:com.android.chrome" in dump


def test_sound_notifications_packages_and_files_can_be_asked(phone: AndroidSim) -> None:
    phone.shell("cmd media_session volume --stream 3 --set 7")
    assert (
        "- STREAM_MUSIC:\n   Muted: false\n   Min: 0\n   Max: 20\n   streamVolume:7\n"
        in phone.shell("dumpsys audio")
    )
    assert phone.shell("dumpsys notification").count("NotificationRecord(") == len(
        phone.phone.notifications
    )
    assert "package:com.android.chrome\n" in phone.shell("pm list packages")
    assert phone.shell("pm list packages testapp") == "package:com.example.testapp\n"
    phone.shell("screencap -p /sdcard/Pictures/Screenshots/a.png")
    assert phone.shell("ls /storage/emulated/0/Pictures/Screenshots") == "a.png\n"
    assert "No such file or directory" in phone.shell("ls /nowhere")


def test_an_app_is_running_from_its_start_to_its_force_stop(phone: AndroidSim) -> None:
    phone.shell("monkey -p com.android.chrome 1")
    assert phone.shell("pidof com.android.chrome").strip().isdigit()
    phone.shell("am force-stop com.android.chrome")
    assert phone.shell("pidof com.android.chrome") == ""


@pytest.mark.parametrize(
    "command",
    [
        "reboot",
        "settings get nowhere x",
        "dumpsys nothing",
        "am start -n com.android.settings/.Nope",
        "echo 'open",
    ],
)
def test_a_command_that_a_device_would_refuse_says_so(phone: AndroidSim, command: str) -> None:
    assert phone.shell(command).strip() != ""


VOCABULARY = """
settings get put global system screen_brightness volume ² -1 dumpsys window audio am start -n
force-stop com.android.settings com.android.chrome/x input swipe 999 10 text cmd media_session
--stream 3 --set du -sk /data/data/ /data/data/com.android.chrome/cache uiautomator dump
/dev/tty rm ls notification post -t monkey -p pm list packages uninstall content query screencap
test -e wpa_cli
"""
WORDS = st.sampled_from([*VOCABULARY.split(), "'a\nb'", "'"])
PAGES = st.sampled_from(["display", "sound", "apps", "wifi"])


@settings(max_examples=150)
@given(
    commands=st.lists(st.lists(WORDS, min_size=1, max_size=6).map(" ".join), max_size=6), page=PAGES
)
def test_no_command_breaks_the_phone_or_its_screens(commands: list[str], page: str) -> None:
    sim = AndroidSim()
    sim.open(NO_TASK, 1)
    for command in [
        *commands,
        "settings put system screen_brightness ²",
        "uiautomator dump /dev/tty",
    ]:
        assert isinstance(sim.shell(command), str)
    sim.phone.launch("com.android.settings", page)
    assert sim.screenshot().width_px == 360


@settings(max_examples=100)
@given(text=st.text(max_size=300))
def test_whatever_is_typed_can_be_drawn_and_read_from_the_view_tree(text: str) -> None:
    sim = AndroidSim()
    sim.open(NO_TASK, 1)
    sim.act(OpenApp(package="com.android.contacts"))
    sim.phone.focus = "contact_search"
    sim.act(Type(text=text))
    assert sim.screenshot().png
    tree = ElementTree.fromstring(
        sim.shell("uiautomator dump /dev/tty").rpartition("UI hierchary")[0]
    )  # ours
    assert any(node.get("resource-id") == "com.android.contacts:id/search_view" for node in tree)


def test_uninstalling_removes_icons_cards_and_the_package(
    phone: AndroidSim, tap: Callable[[str], None]
) -> None:
    phone.phone.launch("com.example.testapp")
    phone.phone.launch("com.android.settings", "app_info:com.example.testapp")
    tap("uninstall_row")
    assert "testapp" not in phone.shell("pm list packages")
    assert all("com.example.testapp" not in cells.values() for cells in phone.phone.home_cells)
    assert "com.example.testapp" not in phone.phone.recents


def test_a_phone_that_is_closed_fails_in_every_call_but_close() -> None:
    sim = AndroidSim()
    sim.open(NO_TASK, 0)
    sim.close()
    sim.close()
    for call in (lambda: sim.act(Wait()), lambda: sim.shell("ls"), sim.screenshot):
        with pytest.raises(EnvironmentFailedError, match="not running"):
            call()


def test_a_setup_command_that_fails_fails_the_environment_and_names_the_command() -> None:
    setup = ("settings put global wifi_on 1", "settngs put a b")
    task = replace(NO_TASK, setup=setup)
    sim = AndroidSim()
    with pytest.raises(EnvironmentFailedError, match="settngs put a b"):
        sim.open(task, 0)
    with pytest.raises(EnvironmentFailedError, match="not running"):
        sim.act(Wait())


def test_the_provider_names_each_phone_differently_and_only_once_it_is_open() -> None:
    first, second = AndroidSim(), AndroidSim()
    assert first.provider_id == ""
    first.open(NO_TASK, 7)
    second.open(NO_TASK, 7)
    assert first.provider_id.startswith("sim-7-")
    assert first.provider_id != second.provider_id
