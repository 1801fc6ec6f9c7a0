"""The phone's shell: the commands that validators and task set-ups use, with a device's output."""

import shlex
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

from producer.agents.android.sim.device import dumps
from producer.agents.android.sim.device.gestures import perform
from producer.agents.android.sim.state.apps import BY_PACKAGE, SETTINGS
from producer.agents.android.sim.state.phone import VOLUME_STEPS, Notification, Phone
from producer.agents.android.sim.state.settings_tree import PAGES
from producer.environments.environment import ActionRefusedError
from schemas.actions import Swipe

NAMESPACES = ("global", "system", "secure")
FOLDERS = ("/sdcard", "/sdcard/Pictures", "/sdcard/Pictures/Screenshots", "/sdcard/DCIM/Camera")
CONTACTS_URI = "content://com.android.contacts/contacts"


class Printed(NamedTuple):
    """The result of a command."""

    text: str
    """Stdout and stderr."""
    status: int = 0
    """Exit status; 0 on success."""


class _FailedError(Exception):
    """A command failed: holds what it prints and its exit status."""


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
    try:
        return Printed(handler(phone, words[1:]))
    except _FailedError as failed:
        return Printed(*failed.args)


def _fail(text: str, status: int = 1) -> NoReturn:
    message = f"{text}\n" if text else ""
    raise _FailedError(message, status)


def _settings(phone: Phone, words: Sequence[str]) -> str:
    match words:
        case ["get", namespace, key] if namespace in NAMESPACES:
            return phone.get(namespace, key) + "\n"
        case ["put", namespace, key, value] if namespace in NAMESPACES:
            phone.put(namespace, key, value)
            return ""
        case ["delete", namespace, key] if namespace in NAMESPACES:
            removed = phone.settings.get(namespace, {}).pop(key, None)
            return f"Deleted {int(removed is not None)} rows\n"
        case ["list", namespace] if namespace in NAMESPACES:
            stored = sorted(phone.settings.get(namespace, {}).items())
            return "".join(f"{key}={value}\n" for key, value in stored)
        case _:
            _fail(f"Invalid command: settings {' '.join(words)}", 255)


def _dumpsys(phone: Phone, words: Sequence[str]) -> str:
    match words:
        case ["window", *_]:
            return dumps.window(phone)
        case ["activity", "activities"]:
            return dumps.activities(phone)
        case ["audio"]:
            return dumps.audio(phone)
        case ["notification", *_]:
            return dumps.notification(phone)
        case ["wallpaper"]:
            return dumps.wallpaper(phone)
        case _:
            _fail(f"Can't find service: {' '.join(words)}")


def _pm(phone: Phone, words: Sequence[str]) -> str:
    match words:
        case ["list", "packages", *rest]:
            names = sorted(phone.installed)
            listed = [name for name in names if all(part in name for part in rest)]
            return "".join(f"package:{name}\n" for name in listed)
        case ["uninstall", package] if package in phone.installed:
            phone.uninstall(package)
            return "Success\n"
        case ["install-existing", package] if package in BY_PACKAGE:
            phone.installed.add(package)
            return f"Package {package} installed for user: 0\n"
        case _:
            _fail(f"Failure [not installed: {' '.join(words)}]")


def _am(phone: Phone, words: Sequence[str]) -> str:
    match words:
        case ["force-stop", package]:
            phone.stop(package)
            return ""
        case ["start", "-n", target]:
            package, _, name = target.partition("/")
            page = _page_of(phone, package, name.removeprefix(package))
            if page is None:
                _fail(f"Error type 3\nError: Activity class {{{target}}} does not exist.")
            phone.launch(package, page)
            return f"Starting: Intent {{ cmp={target} }}\n"
        case _:
            _fail(f"Unknown command: am {' '.join(words)}", 255)


def _page_of(phone: Phone, package: str, activity: str) -> str | None:
    """The page that the activity shows; None if there is no such activity."""
    if package == SETTINGS:
        return next((page.name for page in PAGES.values() if page.activity == activity), None)
    is_main = package in phone.installed and activity == BY_PACKAGE[package].activity
    return "main" if is_main else None


def _monkey(phone: Phone, words: Sequence[str]) -> str:
    """`monkey -p PACKAGE 1`: start an app without knowing its activity."""
    match words:
        case ["-p", package, *_] if package in phone.installed:
            phone.launch(package, "root" if package == SETTINGS else "main")
            return "Events injected: 1\n"
        case _:
            _fail("** No activities found to run, monkey aborted.", 252)


def _input(phone: Phone, words: Sequence[str]) -> str:
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
        case ["swipe", x, y, to_x, to_y, *rest] if all(
            word.isdecimal() for word in (x, y, to_x, to_y, *rest)
        ):
            try:
                perform(phone, Swipe(x=int(x), y=int(y), to_x=int(to_x), to_y=int(to_y)))
            except ActionRefusedError as error:
                _fail(f"Error: {error}")
        case ["text", text] if phone.focus is not None:
            phone.write(phone.focus, text.replace("%s", " "))
        case _:
            _fail(f"Error: Unknown command: input {' '.join(words)}")
    return ""


def _cmd(phone: Phone, words: Sequence[str]) -> str:
    match words:
        case ["wifi", *rest]:
            return _wifi(phone, rest)
        case ["appops", "get", package, "POST_NOTIFICATION"] if package in phone.installed:
            is_blocked = package in phone.blocked_notifications
            return f"POST_NOTIFICATION: {'ignore' if is_blocked else 'allow'}\n"
        case ["appops", "set", package, "POST_NOTIFICATION", "allow" | "ignore" as mode] if (
            package in phone.installed
        ):
            blocked = phone.blocked_notifications
            (blocked.discard if mode == "allow" else blocked.add)(package)
        case ["notification", "post", "-t", title, tag, text] if tag:
            phone.notifications.insert(0, Notification("com.android.email", title, text))
            return f"posting:\n  Notification(tag={tag})\n"
        case ["media_session", "volume", "--stream", "3", "--set", index] if (
            index.isdecimal() and int(index) <= VOLUME_STEPS
        ):
            phone.put("volume", "music", index)
            return f"[V] will set volume to index={index}\n"
        case ["statusbar", "collapse"]:
            phone.overlay = None
        case ["statusbar", "expand-notifications"]:
            phone.overlay = "notifications"
        case _:
            _fail(f"cmd: Can't find service: {' '.join(words)}", 20)
    return ""


def _wifi(phone: Phone, words: Sequence[str]) -> str:
    match words:
        case ["status"]:
            if phone.get("global", "wifi_on") == "0":
                return "Wifi is disabled\n"
            joined = f'connected to "{phone.connected}"' if phone.connected else "not connected"
            return f"Wifi is enabled\nWifi is {joined}\n"
        case ["list-networks"]:
            rows = "".join(
                f"{number}            {name}                 wpa2-psk\n"
                for number, name in enumerate(phone.saved_networks)
            )
            head = "Network Id      SSID                         Security type\n"
            return head + rows if rows else "No networks\n"
        case _:
            _fail(f"cmd: Can't find service: wifi {' '.join(words)}".rstrip(), 20)


def _pidof(phone: Phone, words: Sequence[str]) -> str:
    running = [package for package in words if package in phone.stacks]
    if not running:
        _fail("")
    return " ".join(str(4000 + sum(map(ord, package)) % 5000) for package in running) + "\n"


def _ls(phone: Phone, words: Sequence[str]) -> str:
    paths = [word for word in words if not word.startswith("-")]
    if not paths:
        return "acct  data  dev  etc  proc  sdcard  storage  system  vendor\n"
    folder = _resolve(paths[0]).rstrip("/")
    if folder in phone.files:
        return paths[0] + "\n"
    inside = [name for name in phone.files if name.startswith(folder + "/")]
    if not inside and folder not in FOLDERS:
        _fail(f"ls: {paths[0]}: No such file or directory")
    names = {name.removeprefix(folder + "/").partition("/")[0] for name in inside}
    return "".join(f"{name}\n" for name in sorted(names))


def _test(phone: Phone, words: Sequence[str]) -> str:
    match words:
        case ["-e" | "-f", path]:
            if _resolve(path) not in phone.files:
                _fail("")
            return ""
        case _:
            _fail("test: syntax error", 2)


def _rm(phone: Phone, words: Sequence[str]) -> str:
    for path in (_resolve(word) for word in words if not word.startswith("-")):
        inside = path.rstrip("/") + "/"
        phone.files -= {name for name in phone.files if name == path or name.startswith(inside)}
    return ""


def _du(phone: Phone, words: Sequence[str]) -> str:
    """`du -sk /data/data/PACKAGE/cache`: size in KiB."""
    match words:
        case ["-sk", path] if (
            path.startswith("/data/data/") and path.split("/")[3] in phone.cache_kib
        ):
            return f"{phone.cache_kib[path.split('/')[3]]}\t{path}\n"
        case _:
            _fail(f"du: {' '.join(words)}: No such file or directory")


def _content(phone: Phone, words: Sequence[str]) -> str:
    """`content query --uri content://com.android.contacts/contacts`: names, oldest first."""
    match words:
        case ["query", "--uri", uri, *_] if uri == CONTACTS_URI:
            rows = enumerate(phone.contacts)
            shown = "".join(f"Row: {number} display_name={name}\n" for number, name in rows)
            return shown or "No result found.\n"
        case _:
            _fail(f"[ERROR] Unsupported operation: {' '.join(words)}")


def _wpa_cli(phone: Phone, words: Sequence[str]) -> str:
    if list(words) != ["disconnect"]:
        _fail("Unknown command")
    phone.connected = None
    return "OK\n"


def _uiautomator(phone: Phone, words: Sequence[str]) -> str:
    if list(words) != ["dump", "/dev/tty"]:
        _fail("Usage: uiautomator dump /dev/tty")
    return dumps.view_tree(phone)


def _screencap(phone: Phone, words: Sequence[str]) -> str:
    """`screencap -p FILE`."""
    match words:
        case ["-p", path]:
            phone.files.add(_resolve(path))
            return ""
        case _:
            _fail("usage: screencap [-hp] FILENAME")


def _resolve(path: str) -> str:
    return path.replace("/storage/emulated/0", "/sdcard", 1)


COMMANDS: dict[str, Callable[[Phone, Sequence[str]], str]] = {
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
