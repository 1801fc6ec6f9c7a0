"""The device queries, by name."""

import re
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qs, urlsplit
from xml.etree import ElementTree

from producer.agents.android.query import (
    HOST,
    LANGUAGE,
    PACKAGE,
    PACKAGE_PATTERN,
    TEXT,
    TRUE_OR_FALSE,
    Answer,
    Query,
    QueryFamily,
    Reader,
    one_of,
    whole_number,
)
from producer.task import joined_goals, split_joined
from schemas.advice import did_you_mean

LAUNCHER_WORDS = ("launcher", "nexuslauncher", "trebuchet")
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
"""(pattern of the resumed component, its name in tasks) pairs."""
TEST_PACKAGE = "com.example.testapp"
"""The package that `app_installed_test_app` checks."""
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
"""What `current_activity` can answer."""


def _setting(place: str, answer: Answer, read: Reader = str) -> Query:
    """A query for the setting at `place`, which is NAMESPACE KEY."""
    return Query(f"settings get {place}", lambda printed: read(printed.strip()), answer)


def _flag(place: str) -> Query:
    def read(value: str) -> str:
        is_flag = value == "null" or value.isdigit()
        return str(value not in {"0", "null"}) if is_flag else value

    return _setting(place, TRUE_OR_FALSE, read)


def _one_of(true: str, false: str) -> Reader:
    """True or False, depending on which pattern matches the output.

    If neither matches, for example after an error, the answer is empty and no task is solved.
    """

    def read(printed: str) -> str:
        if re.search(true, printed, re.MULTILINE):
            return str(True)
        return str(False) if re.search(false, printed, re.MULTILINE) else ""

    return read


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    return match.group(1) if match else ""


def _window(read: Reader, answer: Answer = TRUE_OR_FALSE) -> Query:
    """A query that reads the component with the focus."""
    focus = r"mCurrentFocus=Window\{\S+ \S+ ([^}\s]+)\}"
    return Query("dumpsys window", lambda printed: read(_found(focus, printed)), answer)


def _is_home(focus: str) -> str:
    name = focus.lower()
    return str(any(word in name for word in LAUNCHER_WORDS) and "recents" not in name)


def _activities(read: Reader, answer: Answer = TRUE_OR_FALSE) -> Query:
    return Query("dumpsys activity activities", read, answer)


def _resumed(printed: str) -> str:
    return _found(
        r"(?:mResumedActivity: |topResumedActivity=)ActivityRecord\{\S+ \S+ (\S+)", printed
    )


def _activity(printed: str) -> str:
    if package := _found(r"dat=package:(\S+)", printed):
        return f"app_info_{package}"
    component = _resumed(printed)
    names = (name for pattern, name in ACTIVITY_NAMES if re.search(pattern, component))
    return next(names, component)


def _media_type(printed: str) -> str:
    name = _found(r"dat=\S*?([^/\s]+) typ=image", printed)
    if not name:
        return ""
    return "image_screenshot" if name.lower().startswith("screenshot") else "image"


def _views(printed: str) -> list[ElementTree.Element]:
    text = printed.rpartition("UI hierchary")[0].strip()
    try:
        return list(ElementTree.fromstring(text).iter("node")) if text else []  # noqa: S314  # a hostile device can only spoil its own verdict
    except ElementTree.ParseError:
        return []


def _tree(
    read: Callable[[list[ElementTree.Element]], str], answer: Answer = TRUE_OR_FALSE
) -> Query:
    return Query("uiautomator dump /dev/tty", lambda printed: read(_views(printed)), answer)


def _has_view(identifier: str) -> Query:
    return _tree(lambda views: str(any(view.get("resource-id") == identifier for view in views)))


def _view_text(views: list[ElementTree.Element], identifier: str) -> str:
    texts = (view.get("text", "") for view in views if view.get("resource-id") == identifier)
    return next(texts, "")


def _is_primary_home(views: list[ElementTree.Element]) -> str:
    described = (view.get("content-desc", "") for view in views)
    return str(any(re.match(r"Home screen 1 of \d", words) for words in described))


def _icon_in_drawer(views: list[ElementTree.Element]) -> str:
    """The package of the settings app if the app drawer shows its icon, else empty."""
    is_drawer = any(view.get("resource-id", "").endswith(":id/apps_list_view") for view in views)
    is_shown = is_drawer and any(view.get("text") == "Settings" for view in views)
    return "com.android.settings" if is_shown else ""


def _url(views: list[ElementTree.Element]) -> SplitResult:
    """The URL in the address bar; empty while the user is typing in it."""
    bar = "com.android.chrome:id/url_bar"
    is_typing = any(
        view.get("resource-id") == bar and view.get("focused") == "true" for view in views
    )
    url = "" if is_typing else _view_text(views, bar)
    return urlsplit(url if "//" in url else f"//{url}")


def _domain(views: list[ElementTree.Element]) -> str:
    return (_url(views).hostname or "").removeprefix("www.")


def _search(views: list[ElementTree.Element]) -> str:
    return parse_qs(_url(views).query).get("q", [""])[0]


def _music_volume(printed: str) -> str:
    block = printed.partition("- STREAM_MUSIC:")[2]
    index, highest = _found(r"streamVolume:(\d+)", block), _found(r"Max: (\d+)", block)
    has_volume = index and highest and int(highest)
    return str(round(100 * int(index) / int(highest))) if has_volume else ""


QUERIES: dict[str, Query] = {
    "current_app": _window(lambda focus: focus.partition("/")[0], PACKAGE),
    "current_activity": _activities(_activity, ACTIVITY),
    "is_home_screen": _window(_is_home),
    "is_recents_screen": _window(lambda focus: str("recents" in focus.lower())),
    "is_primary_home": _tree(_is_primary_home),
    "is_quick_settings_open": _has_view("com.android.systemui:id/quick_settings_panel"),
    "is_notifications_open": _has_view("com.android.systemui:id/notification_stack_scroller"),
    "found_icon": _tree(_icon_in_drawer, one_of("com.android.settings")),
    "wifi_enabled": _flag("global wifi_on"),
    "bluetooth_enabled": _flag("global bluetooth_on"),
    "airplane_mode": _flag("global airplane_mode_on"),
    "dnd_enabled": _flag("global zen_mode"),
    "auto_time_enabled": _flag("global auto_time"),
    "battery_saver_enabled": _flag("global low_power"),
    "usb_debugging_enabled": _flag("global adb_enabled"),
    "auto_rotate_enabled": _flag("system accelerometer_rotation"),
    "call_vibration_enabled": _flag("system vibrate_when_ringing"),
    "location_enabled": _flag("secure location_mode"),
    "dark_theme_enabled": Query(
        "settings get secure ui_night_mode", _one_of(r"^2$", r"^([01]|null)$")
    ),
    "brightness_level": _setting("system screen_brightness", whole_number(255)),
    "screen_timeout": _setting(
        "system screen_off_timeout", whole_number(2**31 - 1, " milliseconds")
    ),
    "system_language": _setting(
        "system system_locales", LANGUAGE, lambda value: re.split("[-_,]", value)[0]
    ),
    "media_volume": Query("dumpsys audio", _music_volume, whole_number(100, " percent")),
    "notification_count": Query(
        "dumpsys notification",
        lambda printed: (
            str(printed.count("NotificationRecord(")) if "Notification" in printed else ""
        ),
        whole_number(),
    ),
    "wifi_connected": Query(
        "cmd wifi status", _one_of(r"Wifi is connected to", r"Wifi is (not connected|disabled)")
    ),
    "wifi_network_forgotten": Query("cmd wifi list-networks", _one_of(r"^No networks", r"^\d+\s")),
    "chrome_cache_cleared": Query(
        "du -sk /data/data/com.android.chrome/cache",
        lambda printed: str(0 <= int(_found(r"^(\d+)", printed) or "-1") <= 16),  # noqa: PLR2004
    ),
    "current_url_domain": _tree(_domain, HOST),
    "search_query": _tree(_search, TEXT),
    "is_composing_message": _activities(
        lambda printed: str("LaunchConversationActivity" in _resumed(printed))
    ),
    "has_message_draft": _tree(
        lambda views: str(bool(_view_text(views, "com.android.messaging:id/compose_message_text")))
    ),
    "last_created_contact": Query(
        "content query --uri content://com.android.contacts/contacts --projection display_name",
        lambda printed: (re.findall(r"display_name=(.*)", printed) or [""])[-1].strip(),
        TEXT,
    ),
    "last_contact_search_query": _tree(
        lambda views: _view_text(views, "com.android.contacts:id/search_view"), TEXT
    ),
    "last_screenshot_taken": Query(
        "ls /sdcard/Pictures/Screenshots", lambda printed: str(".png" in printed)
    ),
    "current_media_type": _activities(_media_type, one_of("image", "image_screenshot")),
    "test_app_notifications_enabled": Query(
        "cmd appops get com.example.testapp POST_NOTIFICATION",
        _one_of(r": allow", r": (ignore|deny)"),
    ),
}


def _is_running(package: str) -> Query:
    return Query(f"pidof {package}", lambda printed: str(bool(printed.strip())))


def _is_installed(package: str) -> Query:
    name = re.escape(TEST_PACKAGE if package == "test_app" else package)
    return Query("pm list packages", _one_of(rf"^package:{name}$", r"^package:"))


def _any_setting(path: str) -> Query:
    return _setting(path.replace("/", " ", 1), TEXT)


PARAMETRIC: dict[str, QueryFamily] = {
    "app_running_": QueryFamily(_is_running, "PACKAGE", PACKAGE_PATTERN),
    "app_installed_": QueryFamily(_is_installed, "PACKAGE", rf"test_app|{PACKAGE_PATTERN}"),
    "setting_": QueryFamily(_any_setting, "NAMESPACE/KEY", r"(?:global|system|secure)/[\w.:-]+"),
}
"""Prefixes of the queries whose name ends in a parameter."""


def find_query(name: str) -> Query | None:
    """The query with this name, which may end in a parameter (`app_running_com.android.chrome`).

    None if there is none.
    """
    if name in QUERIES:
        return QUERIES[name]
    for prefix, family in PARAMETRIC.items():
        parameter = name.removeprefix(prefix)
        if parameter != name and re.fullmatch(family.pattern, parameter, re.IGNORECASE):
            return family.make(parameter)
    return None


def find_queries(name: str) -> list[Query] | None:
    """The queries in `name`, which `&` separates: `wifi_enabled & current_app`.

    None if one of them does not exist.
    """
    found = [find_query(part) for part in split_joined(name)]
    queries = [query for query in found if query is not None]
    return queries if len(queries) == len(found) else None


class DescribedQuery(NamedTuple):
    """A query as the documentation and `cua-train tasks queries` show it."""

    query: str
    """The query's name, with a parameter in capitals."""
    answers: str
    """The values it can answer."""
    commands: tuple[str, ...]
    """The shell commands that it runs on the device."""


def describe_queries() -> list[DescribedQuery]:
    """Every query, with the parametric ones last."""
    named = list(QUERIES.items())
    named += [
        (f"{prefix}{family.parameter}", family.make(family.parameter))
        for prefix, family in PARAMETRIC.items()
    ]
    return [
        DescribedQuery(name, query.answer.description, (query.command,)) for name, query in named
    ]


def describe_unknown_query(name: str) -> str:
    """Explain that `name` is unknown, naming the closest query, or all if none is close."""
    joined = name
    name = next((part for part in split_joined(joined) if find_query(part) is None), joined)
    if not name:
        return (
            "no device query is given"
            if not joined.strip()
            else f"{joined!r} has an empty query before or after &"
        )
    names = [describe_query.query for describe_query in describe_queries()]
    hint = did_you_mean(name, names) or f" The queries are {', '.join(names)}"
    return f"unknown device query {name!r}.{hint}"


def describe_wrong_answer(name: str, expected: str) -> str | None:
    """Why the queries of `name` can never answer `expected`; None if they can or do not exist.

    The text begins with the name of the offending field.
    """
    queries = find_queries(name)
    if queries is None:
        return None
    try:
        goals = joined_goals(name, expected)
    except ValueError as error:
        return str(error)
    names = [part for part, _ in goals]
    if repeated := next((part for part in names if names.count(part) > 1), None):
        return f"validation_query: {repeated} occurs twice"
    for query, (part, answer) in zip(queries, goals, strict=True):
        if not query.answer.allows(answer):
            return f"expected: {part} answers {query.answer.description}, never {answer!r}"
    return None
