"""Tasks with a set-up, and the shell commands that show what a device keeps of it."""

from dataclasses import replace
from typing import NamedTuple

from producer.task import Task

WIFI_OFF = Task(
    "wifi",
    "Wi-Fi",
    "Turn Wi-Fi on.",
    None,
    None,
    5,
    None,
    None,
    setup=("settings put global wifi_on 0",),
)


class State(NamedTuple):
    """A task with a set-up, and shell commands that show what the device keeps of it."""

    task: Task
    read: str
    set_up: str
    """What `read` prints after the set-up."""
    change: str


PHONES_STATE = State(WIFI_OFF, "settings get global wifi_on", "0", "settings put global wifi_on 1")
DESKTOPS_STATE = State(
    replace(WIFI_OFF, setup=("echo 0 > wifi",)), "cat wifi", "0", "echo 1 > wifi"
)
