"""A verdict depends on the shell's output alone."""

from dataclasses import replace

import pytest

from producer.agents.android.demo_tasks import demo_tasks
from producer.agents.android.queries import find_query
from producer.agents.android.shell_judge import judge
from producer.agents.android.sim.device.sim import AndroidSim
from producer.task import Task
from producer.tasks.sources import load_tasks

BY_ID = {task.task_id: task for task in demo_tasks()}


@pytest.mark.parametrize(
    ("task_id", "setting", "solving", "undoing"),
    [
        ("train_02_enable_wifi", "global wifi_on", "1", "0"),
        ("train_03_max_brightness", "system screen_brightness", "255", "254"),
        ("train_35_timeout_30s", "system screen_off_timeout", "30000", "300000"),
        ("train_61_enable_dark_theme", "secure ui_night_mode", "2", "1"),
        ("train_57_disable_location", "secure location_mode", "0", "3"),
        ("train_60_change_system_language", "system system_locales", "en-GB", "fr-FR"),
    ],
)
def test_settings_put_turns_the_verdict_and_turns_it_back(
    task_id: str, setting: str, solving: str, undoing: str
) -> None:
    sim = AndroidSim()
    sim.start(BY_ID[task_id], 0)
    verdicts = []
    for value in (undoing, solving, undoing):
        sim.shell(f"settings put {setting} {value}")
        verdicts.append(judge(BY_ID[task_id], sim.shell).success)
    assert verdicts == [False, True, False]


def test_a_verdict_says_what_was_asked_expected_and_found() -> None:
    verdict = judge(BY_ID["train_03_max_brightness"], lambda _command: "128\n")
    assert (verdict.success, verdict.query, verdict.expected, verdict.actual) == (
        False,
        "brightness_level",
        "255",
        "128",
    )
    assert verdict.details == {"commands": ["settings get system screen_brightness"]}


@pytest.mark.parametrize(
    ("wifi", "brightness", "success"),
    [("0", "255", True), ("1", "255", False), ("0", "128", False), ("1", "128", False)],
)
def test_of_joined_queries_each_has_to_give_its_own_answer(
    wifi: str, brightness: str, success: bool
) -> None:
    task = replace(
        BY_ID["train_03_max_brightness"],
        validation_query="wifi_enabled & brightness_level",
        expected_result="false & 255",
    )
    printed = {
        "settings get global wifi_on": wifi,
        "settings get system screen_brightness": brightness,
    }
    verdict = judge(task, printed.__getitem__)
    assert verdict.success is success
    assert verdict.actual == f"{wifi != '0'} & {brightness}"
    assert verdict.details == {"commands": list(printed)}


def test_an_answer_to_one_query_may_have_the_mark_that_joins_several() -> None:
    task = replace(BY_ID["train_52_add_contact_from_phone"], expected_result="Ada & Co")
    assert judge(task, lambda _command: "Row: 0 display_name=Ada & Co\n").success
    assert not judge(task, lambda _command: "Row: 0 display_name=Ada&Co\n").success


PIXEL_WINDOW = """WINDOW MANAGER DISPLAY CONTENTS (dumpsys window displays)
  mCurrentFocus=Window{8b1e2f0 u0 com.android.chrome/com.google.android.apps.chrome.Main}
  mFocusedApp=ActivityRecord{6f2a u0 com.android.chrome/com.google.android.apps.chrome.Main t118}
"""
LAUNCHER = "com.google.android.apps.nexuslauncher"
PIXEL_HOME = f"  mCurrentFocus=Window{{1 u0 {LAUNCHER}/{LAUNCHER}.NexusLauncherActivity}}\n"
PIXEL_AUDIO = """- STREAM_RING:
   Muted: false
   Min: 1
   Max: 7
   streamVolume:5
- STREAM_MUSIC:
   Muted: false
   Min: 0
   Max: 25
   streamVolume:25
   Current: 2 (speaker): 25, 80 (bt_a2dp): 11
"""


@pytest.mark.parametrize(
    ("query", "printed", "answer"),
    [
        ("current_app", PIXEL_WINDOW, "com.android.chrome"),
        ("current_app", "  mCurrentFocus=null\n", ""),
        ("is_home_screen", PIXEL_HOME, "True"),
        ("is_home_screen", PIXEL_WINDOW, "False"),
        ("media_volume", PIXEL_AUDIO, "100"),
        ("wifi_enabled", "1\n", "True"),
        ("wifi_enabled", "null\n", "False"),
        (
            "notification_count",
            "  NotificationRecord(0x0a: pkg=a)\n  NotificationRecord(0x0b: pkg=b)\n",
            "2",
        ),
        ("system_language", "es-ES,en-US\n", "es"),
        ("wifi_network_forgotten", "No networks\n", "True"),
        (
            "wifi_network_forgotten",
            "Network Id      SSID\n0            Home                 wpa2-psk\n",
            "False",
        ),
        ("last_created_contact", "No result found.\n", ""),
        ("last_created_contact", "Row: 0 display_name=Ada\nRow: 1 display_name=Bo Li\n", "Bo Li"),
        ("is_quick_settings_open", "ERROR: could not get idle state.\n", "False"),
        ("app_running_com.android.chrome", "", "False"),
        ("app_running_com.android.chrome", "4711\n", "True"),
        ("app_installed_com.foo", "package:com.foo.bar\n", "False"),
        ("app_installed_com.foo", "Error: Could not access the Package Manager\n", ""),
        ("test_app_notifications_enabled", "Error: No UID for com.example.testapp\n", ""),
        ("wifi_network_forgotten", "cmd: Can't find service: wifi\n", ""),
        (
            "wifi_enabled",
            "cmd: Failure calling service settings\n",
            "cmd: Failure calling service settings",
        ),
        ("chrome_cache_cleared", "du: no such file\n", "False"),
    ],
)
def test_queries_read_what_real_devices_print(query: str, printed: str, answer: str) -> None:
    found = find_query(query)
    assert found is not None
    assert found.read(printed) == answer


def test_a_task_without_a_validator_cannot_be_judged() -> None:
    with pytest.raises(ValueError, match="cannot be judged"):
        judge(BY_ID["train_68_create_app_folder"], lambda _command: "")
    assert not BY_ID["train_68_create_app_folder"].is_judged


def test_a_custom_task_is_judged_like_any_other() -> None:
    (task,) = load_tasks(
        {
            "source_type": "custom",
            "custom_tasks": [
                {
                    "task_id": "show_taps",
                    "description": "Show where I tap.",
                    "validation_query": "setting_system/show_touches",
                    "expected": 1,
                    "setup": ["settings put system show_touches 0"],
                }
            ],
        }
    )
    assert isinstance(task, Task)
    sim = AndroidSim()
    sim.open(task, 0)
    assert judge(task, sim.shell).success is False
    sim.shell("settings put system show_touches 1")
    assert judge(task, sim.shell).success is True
