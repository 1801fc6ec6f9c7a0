"""Checks, before a run begins, that a phone can be used."""

from producer.agents.adb.leases import busy
from producer.agents.adb.server import AdbServer
from producer.environments.environment import EnvironmentFailedError
from producer.environments.screens import as_screenshot


def screen_of(server: AdbServer, serial: str) -> tuple[int, int]:
    """Width and height of a phone's screen, px. Raises EnvironmentFailedError if unusable."""
    if not server.has_shell(serial):
        message = f"phone {serial} is older than Android 7, whose shell reports no exit status"
        raise EnvironmentFailedError(message)
    if any(busy(server, (serial,))):
        message = f"phone {serial} is used by another process"
        raise EnvironmentFailedError(message)
    shown = as_screenshot(server.run(serial, "screencap -p").stdout, f"phone {serial}")
    return shown.width_px, shown.height_px
