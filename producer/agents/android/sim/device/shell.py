"""The phone's shell: the commands that validators and task set-ups use, with a device's output."""

import shlex
from collections.abc import Callable, Sequence
from typing import NamedTuple

from producer.agents.android.sim.device import dumps
from producer.agents.android.sim.device.gestures import perform
from producer.agents.android.sim.state.apps import BY_PACKAGE, SETTINGS
from producer.agents.android.sim.state.phone import VOLUME_STEPS, Notification, Phone
from producer.agents.android.sim.state.settings_tree import PAGES
from producer.environments.environment import ActionRefusedError
from schemas.actions import Swipe

NAMESPACES = ("global", "system", "secure")


class Printed(NamedTuple):
    """The result of a command."""

    text: str
    """Stdout and stderr."""
    status: int = 0
    """Exit status; 0 on success."""


def run(phone: Phone, command: str) -> Printed:
    """Run one command. Unknown or invalid commands print an error and return a nonzero status."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        return Printed(f"/system/bin/sh: syntax error: {error}\n", 1)
    if not words:
        return Printed("")
    handler = COMMANDS.get(words[0])
    if handler is None:
        return Printed(f"/system/bin/sh: {words[0]}: inaccessible or not found\n", 127)
    return handler(phone, words[1:])


def _settings(phone: Phone, words: Sequence[str]) -> Printed:
    match words:
        case ["get", namespace, key] if namespace in NAMESPACES:
            return Printed(phone.get(namespace, key) + "\n")
        case ["put", namespace, key, value] if namespace in NAMESPACES:
            phone.put(namespace, key, value)
            return Printed("")
        case ["delete", namespace, key] if namespace in NAMESPACES:
            removed = phone.settings.get(namespace, {}).pop(key, None)
            return Printed(f"Deleted {int(removed is not None)} rows\n")
        case ["list", namespace] if namespace in NAMESPACES:
            return Printed(
                "".join(
                    f"{key}={value}\n"
                    for key, value in sorted(phone.settings.get(namespace, {}).items())
                )
            )
        case _:
            return Printed(f"Invalid command: settings {' '.join(words)}\n", 255)


def _dumpsys(phone: Phone, words: Sequence[str]) -> Printed:
    match words:
        case ["window", *_]:
            return Printed(dumps.window(phone))
        case ["activity", "activities"]:
            return Printed(dumps.activities(phone))
        case ["audio"]:
            return Printed(dumps.audio(phone))
        case ["notification", *_]:
            return Printed(dumps.notification(phone))
        case ["wallpaper"]:
            return Printed(dumps.wallpaper(phone))
        case _:
            return Printed(f"Can't find service: {' '.join(words)}\n", 1)


def _pm(phone: Phone, words: Sequence[str]) -> Printed:
    match words:
        case ["list", "packages", *rest]:
            return Printed(
                "".join(
                    f"package:{name}\n"
                    for name in sorted(phone.installed)
                    if all(part in name for part in rest)
                )
            )
        case ["uninstall", package] if package in phone.installed:
            phone.uninstall(package)
            return Printed("Success\n")
        case ["install-existing", package] if package in BY_PACKAGE:
            phone.installed.add(package)
            return Printed(f"Package {package} installed for user: 0\n")
        case _:
            return Printed(f"Failure [not installed: {' '.join(words)}]\n", 1)


def _am(phone: Phone, words: Sequence[str]) -> Printed:
    match words:
        case ["force-stop", package]:
            phone.stop(package)
            return Printed("")
        case ["start", "-n", target]:
            package, _, name = target.partition("/")
            full = name.removeprefix(package)
            if package == SETTINGS:
                pages = [page.name for page in PAGES.values() if page.activity == full]
                page = pages[0] if pages else None
            else:
                page = (
                    "main"
                    if package in phone.installed and full == BY_PACKAGE[package].activity
                    else None
                )
            if page is None:
                return Printed(
                    f"Error type 3\nError: Activity class {{{target}}} does not exist.\n", 1
                )
            phone.launch(package, page)
            return Printed(f"Starting: Intent {{ cmp={target} }}\n")
        case _:
            return Printed(f"Unknown command: am {' '.join(words)}\n", 255)


def _monkey(phone: Phone, words: Sequence[str]) -> Printed:
    """`monkey -p PACKAGE 1`: start an app without knowing its activity."""
    match words:
        case ["-p", package, *_] if package in phone.installed:
            phone.launch(package, "root" if package == SETTINGS else "main")
            return Printed("Events injected: 1\n")
        case _:
            return Printed("** No activities found to run, monkey aborted.\n", 252)


def _input(phone: Phone, words: Sequence[str]) -> Printed:
    keys: dict[str, Callable[[], None]] = {
        "KEYCODE_HOME": phone.home,
        "3": phone.home,
        "KEYCODE_BACK": phone.back,
        "4": phone.back,
        "KEYCODE_APP_SWITCH": phone.show_recents,
        "187": phone.show_recents,
    }
    match words:
        case ["keyevent", name] if name in keys:
            keys[name]()
            return Printed("")
        case ["swipe", *points] if len(points) >= 4 and all(  # noqa: PLR2004  # x1 y1 x2 y2
            point.isdecimal() for point in points
        ):  # x1 y1 x2 y2
            x, y, to_x, to_y = (int(point) for point in points[:4])
            try:
                perform(phone, Swipe(x=x, y=y, to_x=to_x, to_y=to_y))
            except ActionRefusedError as error:
                return Printed(f"Error: {error}\n", 1)
            return Printed("")
        case ["text", text] if phone.focus is not None:
            phone.fields[phone.focus] = phone.fields.get(phone.focus, "") + text.replace("%s", " ")
            return Printed("")
        case _:
            return Printed(f"Error: Unknown command: input {' '.join(words)}\n", 1)


def _cmd(phone: Phone, words: Sequence[str]) -> Printed:  # noqa: PLR0911  # one answer per service
    match words:
        case ["wifi", "status"]:
            is_on = phone.get("global", "wifi_on") != "0"
            joined = (
                f'Wifi is connected to "{phone.connected}"'
                if phone.connected
                else "Wifi is not connected"
            )
            return Printed(
                f"Wifi is {'enabled' if is_on else 'disabled'}\n" + (f"{joined}\n" if is_on else "")
            )
        case ["wifi", "list-networks"]:
            rows = "".join(
                f"{number}            {name}                 wpa2-psk\n"
                for number, name in enumerate(phone.saved_networks)
            )
            return Printed(
                "Network Id      SSID                         Security type\n" + rows
                if rows
                else "No networks\n"
            )
        case ["appops", "get", package, "POST_NOTIFICATION"] if package in phone.installed:
            return Printed(
                "POST_NOTIFICATION:"
                f" {'ignore' if package in phone.blocked_notifications else 'allow'}\n"
            )
        case [
            "appops",
            "set",
            package,
            "POST_NOTIFICATION",
            "allow" | "ignore" as mode,
        ] if package in phone.installed:
            (
                phone.blocked_notifications.discard
                if mode == "allow"
                else phone.blocked_notifications.add
            )(package)
            return Printed("")
        case ["notification", "post", "-t", title, tag, text] if tag:
            phone.notifications.insert(0, Notification("com.android.email", title, text))
            return Printed(f"posting:\n  Notification(tag={tag})\n")
        case [
            "media_session",
            "volume",
            "--stream",
            "3",
            "--set",
            index,
        ] if index.isdecimal() and int(index) <= VOLUME_STEPS:
            phone.put("volume", "music", index)
            return Printed(f"[V] will set volume to index={index}\n")
        case ["statusbar", "collapse"]:
            phone.overlay = None
            return Printed("")
        case ["statusbar", "expand-notifications"]:
            phone.overlay = "notifications"
            return Printed("")
        case _:
            return Printed(f"cmd: Can't find service: {' '.join(words)}\n", 20)


def _pidof(phone: Phone, words: Sequence[str]) -> Printed:
    running = [
        str(4000 + sum(map(ord, package)) % 5000) for package in words if package in phone.stacks
    ]
    return Printed(" ".join(running) + "\n") if running else Printed("", 1)


def _ls(phone: Phone, words: Sequence[str]) -> Printed:
    paths = [word for word in words if not word.startswith("-")]
    if not paths:
        return Printed("acct  data  dev  etc  proc  sdcard  storage  system  vendor\n")
    folder = _resolve(paths[0]).rstrip("/")
    names = sorted(
        {
            name.removeprefix(folder + "/").partition("/")[0]
            for name in phone.files
            if name.startswith(folder + "/")
        }
    )
    if folder in phone.files:
        return Printed(paths[0] + "\n")
    if not names and folder not in {
        "/sdcard",
        "/sdcard/Pictures",
        "/sdcard/Pictures/Screenshots",
        "/sdcard/DCIM/Camera",
    }:
        return Printed(f"ls: {paths[0]}: No such file or directory\n", 1)
    return Printed("".join(f"{name}\n" for name in names))


def _test(phone: Phone, words: Sequence[str]) -> Printed:
    match words:
        case ["-e" | "-f", path]:
            return Printed("", int(_resolve(path) not in phone.files))
        case _:
            return Printed("test: syntax error\n", 2)


def _rm(phone: Phone, words: Sequence[str]) -> Printed:
    for word in words:
        if not word.startswith("-"):
            phone.files -= {
                name
                for name in phone.files
                if name == _resolve(word) or name.startswith(_resolve(word).rstrip("/") + "/")
            }
    return Printed("")


def _du(phone: Phone, words: Sequence[str]) -> Printed:
    """`du -sk /data/data/PACKAGE/cache`: size in KiB."""
    match words:
        case ["-sk", path] if (
            path.startswith("/data/data/") and path.split("/")[3] in phone.cache_kib
        ):
            return Printed(f"{phone.cache_kib[path.split('/')[3]]}\t{path}\n")
        case _:
            return Printed(f"du: {' '.join(words)}: No such file or directory\n", 1)


def _content(phone: Phone, words: Sequence[str]) -> Printed:
    """`content query --uri content://com.android.contacts/contacts`: names, oldest first."""
    match words:
        case ["query", "--uri", "content://com.android.contacts/contacts", *_]:
            return Printed(
                "".join(
                    f"Row: {number} display_name={name}\n"
                    for number, name in enumerate(phone.contacts)
                )
                or "No result found.\n"
            )
        case _:
            return Printed(f"[ERROR] Unsupported operation: {' '.join(words)}\n", 1)


def _wpa_cli(phone: Phone, words: Sequence[str]) -> Printed:
    if list(words) != ["disconnect"]:
        return Printed("Unknown command\n", 1)
    phone.connected = None
    return Printed("OK\n")


def _uiautomator(phone: Phone, words: Sequence[str]) -> Printed:
    if list(words) != ["dump", "/dev/tty"]:
        return Printed("Usage: uiautomator dump /dev/tty\n", 1)
    return Printed(dumps.view_tree(phone))


def _screencap(phone: Phone, words: Sequence[str]) -> Printed:
    """`screencap -p FILE`."""
    match words:
        case ["-p", path]:
            phone.files.add(_resolve(path))
            return Printed("")
        case _:
            return Printed("usage: screencap [-hp] FILENAME\n", 1)


def _resolve(path: str) -> str:
    return path.replace("/storage/emulated/0", "/sdcard", 1)


COMMANDS: dict[str, Callable[[Phone, Sequence[str]], Printed]] = {
    "settings": _settings,
    "dumpsys": _dumpsys,
    "pm": _pm,
    "am": _am,
    "monkey": _monkey,
    "input": _input,
    "cmd": _cmd,
    "pidof": _pidof,
    "ls": _ls,
    "test": _test,
    "rm": _rm,
    "du": _du,
    "content": _content,
    "wpa_cli": _wpa_cli,
    "uiautomator": _uiautomator,
    "screencap": _screencap,
}
