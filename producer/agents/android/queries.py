"""Device queries by name: which shell commands to run and how to parse their output.

An answer is text (`True`, `255`, `com.android.chrome`), so that tasks in files can state what they
expect.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

from producer.agents.android.query_answers import (
    HOST,
    LANGUAGE,
    PACKAGE,
    PACKAGE_PATTERN,
    TEXT,
    TRUE_OR_FALSE,
    Answer,
    one_of,
    whole_number,
)

LAUNCHER_WORDS = ("launcher", "nexuslauncher", "trebuchet")
Reader = Callable[[Sequence[str]], str]

ACTIVITY_NAMES: tuple[tuple[str, str], ...] = (
    (r"com\.android\.settings/.*WifiSettings", "wifi_settings"),
    (r"com\.android\.settings/.*(Bluetooth|ConnectedDevice)", "bluetooth_settings"),
    (r"com\.android\.settings/.*Display", "display_settings"),
    (r"com\.android\.settings/.*Sound", "sound_settings"),
    (r"com\.android\.settings/.*(PowerUsage|Battery)", "battery"),
    (r"com\.android\.settings/.*Storage", "storage_settings"),
    (r"com\.android\.settings/.*DateTime", "date_time_settings"),
    (r"com\.android\.settings/.*Language", "language_input_settings"),
    (r"com\.android\.settings/.*ChooseLock", "screen_lock_settings"),
    (r"com\.android\.settings/.*Development", "developer_options_settings"),
    (r"com\.android\.settings/.*Location", "location_settings"),
)
"""(pattern of the resumed component, its name in tasks)."""
TEST_PACKAGE = "com.example.testapp"
"""What `app_installed_test_app` asks about."""
ACTIVITY = Answer(
    f"{', '.join(name for _, name in ACTIVITY_NAMES)}, app_info_PACKAGE, or a component as"
    " PACKAGE/CLASS",
    "|".join(
        (
            *(name for _, name in ACTIVITY_NAMES),
            f"app_info_{PACKAGE_PATTERN}",
            rf"{PACKAGE_PATTERN}/[\w.$]+",
        )
    ),
)
"""Of `current_activity`."""


@dataclass(frozen=True, slots=True)
class Query:
    """How to get one answer from a device."""

    commands: tuple[str, ...]
    """Shell commands, run in order."""
    read: Reader
    """Outputs of the commands -> the answer; empty if they cannot be read."""
    answer: Answer = TRUE_OR_FALSE
    """What it can answer."""


@dataclass(frozen=True, slots=True)
class QueryFamily:
    """Queries whose name ends in a parameter."""

    make: Callable[[str], Query]
    """Parameter -> the query."""
    parameter: str
    """What the parameter is called in messages and documents."""
    pattern: str
    """Matches every parameter whole."""


def find_query(name: str) -> Query | None:
    """The query of this name, which may end in a parameter (`app_running_com.android.chrome`).

    None if there is none.
    """
    if name in QUERIES:
        return QUERIES[name]
    for prefix, family in PARAMETRIC.items():
        parameter = name.removeprefix(prefix)
        if parameter != name and re.fullmatch(family.pattern, parameter, re.IGNORECASE):
            return family.make(parameter)
    return None


def _setting(
    namespace: str, key: str, read: Callable[[str], str], answer: Answer = TRUE_OR_FALSE
) -> Query:
    command = f"settings get {namespace} {key}"
    return Query((command,), lambda printed: read(printed[0].strip()), answer)


def _flag(namespace: str, key: str) -> Query:
    return _setting(
        namespace,
        key,
        lambda value: (
            str(value not in {"0", "null"}) if value == "null" or value.isdigit() else value
        ),
    )


def _one_of(true: str, false: str) -> Reader:
    """True or False, depending on which pattern matches the output.

    Neither matches, for example after an error: the answer is empty and no task is solved.
    """

    def read(printed: Sequence[str]) -> str:
        if re.search(true, printed[0], re.MULTILINE):
            return str(True)
        return str(False) if re.search(false, printed[0], re.MULTILINE) else ""

    return read


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    return match.group(1) if match else ""


def _focus(printed: str) -> str:
    return _found(r"mCurrentFocus=Window\{\S+ \S+ ([^}\s]+)\}", printed)


def _resumed(printed: str) -> str:
    return _found(
        r"(?:mResumedActivity: |topResumedActivity=)ActivityRecord\{\S+ \S+ (\S+)", printed
    )


def _activity(printed: Sequence[str]) -> str:
    component = _resumed(printed[0])
    package = _found(r"dat=package:(\S+)", printed[0])
    if package:
        return f"app_info_{package}"
    return next(
        (name for pattern, name in ACTIVITY_NAMES if re.search(pattern, component)), component
    )


def _is_home(printed: Sequence[str]) -> str:
    focus = _focus(printed[0]).lower()
    return str(any(word in focus for word in LAUNCHER_WORDS) and "recents" not in focus)


def _views(printed: str) -> list[ElementTree.Element]:
    text = printed.rpartition("UI hierchary")[0].strip()
    try:
        return list(ElementTree.fromstring(text).iter("node")) if text else []  # noqa: S314  # a hostile device can only spoil its own verdict
    except ElementTree.ParseError:
        return []


def _tree(
    read: Callable[[list[ElementTree.Element]], str], answer: Answer = TRUE_OR_FALSE
) -> Query:
    return Query(("uiautomator dump /dev/tty",), lambda printed: read(_views(printed[0])), answer)


def _has_view(identifier: str) -> Query:
    return _tree(lambda views: str(any(view.get("resource-id") == identifier for view in views)))


def _view_text(views: list[ElementTree.Element], identifier: str) -> str:
    return next(
        (view.get("text", "") for view in views if view.get("resource-id") == identifier), ""
    )


def _is_primary_home(views: list[ElementTree.Element]) -> str:
    return str(
        any(re.match(r"Home screen 1 of \d", view.get("content-desc", "")) for view in views)
    )


def _icon_in_drawer(views: list[ElementTree.Element]) -> str:
    """The package of the settings icon if the app drawer shows it."""
    is_drawer = any(view.get("resource-id", "").endswith(":id/apps_list_view") for view in views)
    return (
        "com.android.settings"
        if is_drawer and any(view.get("text") == "Settings" for view in views)
        else ""
    )


def _url(views: list[ElementTree.Element]) -> str:
    is_typing = any(
        view.get("resource-id") == "com.android.chrome:id/url_bar" and view.get("focused") == "true"
        for view in views
    )
    return "" if is_typing else _view_text(views, "com.android.chrome:id/url_bar")


def _domain(views: list[ElementTree.Element]) -> str:
    shown = _url(views)
    host = urlsplit(shown if "//" in shown else f"//{shown}").hostname or ""
    return host.removeprefix("www.")


def _search(views: list[ElementTree.Element]) -> str:
    shown = _url(views)
    asked = parse_qs(urlsplit(shown if "//" in shown else f"//{shown}").query).get("q")
    return asked[0] if asked else ""


def _volume(stream: str) -> Reader:
    def read(printed: Sequence[str]) -> str:
        block = printed[0].partition(f"- {stream}:")[2]
        index, highest = _found(r"streamVolume:(\d+)", block), _found(r"Max: (\d+)", block)
        return (
            str(round(100 * int(index) / int(highest)))
            if index and highest and int(highest)
            else ""
        )

    return read


def _media_type(printed: Sequence[str]) -> str:
    name = _found(r"dat=\S*?([^/\s]+) typ=image", printed[0])
    return (
        "" if not name else "image_screenshot" if name.lower().startswith("screenshot") else "image"
    )


QUERIES: dict[str, Query] = {
    "current_app": Query(
        ("dumpsys window",), lambda printed: _focus(printed[0]).partition("/")[0], PACKAGE
    ),
    "current_activity": Query(("dumpsys activity activities",), _activity, ACTIVITY),
    "is_home_screen": Query(("dumpsys window",), _is_home),
    "is_recents_screen": Query(
        ("dumpsys window",), lambda printed: str("recents" in _focus(printed[0]).lower())
    ),
    "is_primary_home": _tree(_is_primary_home),
    "is_quick_settings_open": _has_view("com.android.systemui:id/quick_settings_panel"),
    "is_notifications_open": _has_view("com.android.systemui:id/notification_stack_scroller"),
    "found_icon": _tree(_icon_in_drawer, one_of("com.android.settings")),
    "wifi_enabled": _flag("global", "wifi_on"),
    "bluetooth_enabled": _flag("global", "bluetooth_on"),
    "airplane_mode": _flag("global", "airplane_mode_on"),
    "dnd_enabled": _flag("global", "zen_mode"),
    "auto_time_enabled": _flag("global", "auto_time"),
    "battery_saver_enabled": _flag("global", "low_power"),
    "usb_debugging_enabled": _flag("global", "adb_enabled"),
    "auto_rotate_enabled": _flag("system", "accelerometer_rotation"),
    "call_vibration_enabled": _flag("system", "vibrate_when_ringing"),
    "location_enabled": _flag("secure", "location_mode"),
    "dark_theme_enabled": Query(
        ("settings get secure ui_night_mode",), _one_of(r"^2$", r"^([01]|null)$")
    ),
    "brightness_level": _setting("system", "screen_brightness", str, whole_number(255)),
    "screen_timeout": _setting(
        "system", "screen_off_timeout", str, whole_number(2**31 - 1, " milliseconds")
    ),
    "system_language": _setting(
        "system", "system_locales", lambda value: re.split("[-_,]", value)[0], LANGUAGE
    ),
    "media_volume": Query(
        ("dumpsys audio",), _volume("STREAM_MUSIC"), whole_number(100, " percent")
    ),
    "notification_count": Query(
        ("dumpsys notification",),
        lambda printed: (
            str(printed[0].count("NotificationRecord(")) if "Notification" in printed[0] else ""
        ),
        whole_number(),
    ),
    "wifi_connected": Query(
        ("cmd wifi status",),
        _one_of(r"Wifi is connected to", r"Wifi is (not connected|disabled)"),
    ),
    "wifi_network_forgotten": Query(
        ("cmd wifi list-networks",), _one_of(r"^No networks", r"^\d+\s")
    ),
    "chrome_cache_cleared": Query(
        ("du -sk /data/data/com.android.chrome/cache",),
        lambda printed: str(0 <= int(_found(r"^(\d+)", printed[0]) or "-1") <= 16),  # noqa: PLR2004
    ),
    "current_url_domain": _tree(_domain, HOST),
    "search_query": _tree(_search, TEXT),
    "is_composing_message": Query(
        ("dumpsys activity activities",),
        lambda printed: str("LaunchConversationActivity" in _resumed(printed[0])),
    ),
    "has_message_draft": _tree(
        lambda views: str(bool(_view_text(views, "com.android.messaging:id/compose_message_text")))
    ),
    "last_created_contact": Query(
        ("content query --uri content://com.android.contacts/contacts --projection display_name",),
        lambda printed: (re.findall(r"display_name=(.*)", printed[0]) or [""])[-1].strip(),
        TEXT,
    ),
    "last_contact_search_query": _tree(
        lambda views: _view_text(views, "com.android.contacts:id/search_view"), TEXT
    ),
    "last_screenshot_taken": Query(
        ("ls /sdcard/Pictures/Screenshots",), lambda printed: str(".png" in printed[0])
    ),
    "current_media_type": Query(
        ("dumpsys activity activities",), _media_type, one_of("image", "image_screenshot")
    ),
    "test_app_notifications_enabled": Query(
        ("cmd appops get com.example.testapp POST_NOTIFICATION",),
        _one_of(r": allow", r": (ignore|deny)"),
    ),
}

PARAMETRIC: dict[str, QueryFamily] = {
    "app_running_": QueryFamily(
        lambda package: Query((f"pidof {package}",), lambda printed: str(bool(printed[0].strip()))),
        "PACKAGE",
        PACKAGE_PATTERN,
    ),
    "app_installed_": QueryFamily(
        lambda package: Query(
            ("pm list packages",),
            _one_of(
                rf"^package:{re.escape(TEST_PACKAGE if package == 'test_app' else package)}$",
                r"^package:",
            ),
        ),
        "PACKAGE",
        rf"test_app|{PACKAGE_PATTERN}",
    ),
    "setting_": QueryFamily(
        lambda path: Query(
            (f"settings get {path.replace('/', ' ', 1)}",),
            lambda printed: printed[0].strip(),
            TEXT,
        ),
        "NAMESPACE/KEY",
        r"(?:global|system|secure)/[\w.:-]+",
    ),
}
"""Prefixes of queries whose name ends in a parameter."""
