"""Oracles: the next good action for a task, from the phone's true state.

They work from any state, so a noisy agent can follow them.

Pure: nothing is remembered between calls. They exist for warm-up, for checking that tasks can be
solved, and for tests.
"""

from collections.abc import Callable
from random import Random

from producer.codecs.codec import Codec
from producer.codecs.compact import CompactCodec
from producer.environments.android_sim.device.sim import AndroidSim
from producer.environments.android_sim.oracle.navigator import (
    BACK,
    HOME,
    RECENTS,
    SWIPES,
    Navigator,
    tap_at,
)
from producer.environments.android_sim.screens.widget import HEIGHT_PX, WIDTH_PX
from producer.environments.android_sim.state.apps import (
    BY_PACKAGE,
    CHROME,
    CONTACTS,
    GALLERY,
    MESSAGES,
    TEST_APP,
)
from producer.environments.android_sim.state.phone import MAX_BRIGHTNESS
from producer.environments.android_sim.state.settings_tree import PAGE_OF
from producer.task import Task
from producer.validators.judge import judge
from schemas.actions import Action, Click, KeyPress, SystemButton, Terminate, Type, Wait

Goal = Callable[[Navigator, Task], Action]
VIA_TILE = "tile"
VIA_SEARCH = "search"
VIA_RECENTS = "recents"
"""Tags that say which way the instruction asks for."""


class NoOracleError(Exception):
    """There is no oracle for this task."""


def oracle_action(task: Task, sim: AndroidSim, codec: Codec | None = None) -> tuple[str, Action]:
    """The next action and how the codec (default: compact) writes it; both say the same.

    NoOracleError.
    """
    words = codec or CompactCodec()
    action: Action = (
        Terminate(status="success")
        if judge(task, sim.shell).success
        else _towards(task, Navigator(sim))
    )
    text = words.encode(action, WIDTH_PX, HEIGHT_PX)
    read_back = words.parse(text, WIDTH_PX, HEIGHT_PX)[0].action
    assert read_back is not None  # noqa: S101  # a codec reads what it wrote
    return text, read_back


def random_action(random: Random, sim: AndroidSim) -> Action:
    """Something a confused agent might do: half of the time it touches something that is there."""
    elements = sim.visible_elements()
    kind = random.choices(("element", "point", "swipe", "button", "wait"), (50, 15, 20, 12, 3))[0]
    match kind:
        case "element" if elements:
            return tap_at(random.choice(elements))
        case "swipe":
            return random.choice(list(SWIPES.values()))
        case "button":
            return SystemButton(button=random.choice(("home", "back", "recents")))
        case "wait":
            return Wait()
        case _:
            return Click(x=random.randrange(WIDTH_PX), y=random.randrange(HEIGHT_PX))


def _towards(task: Task, nav: Navigator) -> Action:
    query = task.validation_query or ""
    goal = GOALS.get(query)
    if goal is None:
        message = f"there is no oracle for {task.task_id} ({query})"
        raise NoOracleError(message)
    return goal(nav, task)


def _wanted(task: Task) -> str:
    return task.expected_result or ""


def _app(nav: Navigator, task: Task) -> Action:
    package = _wanted(task)
    if (
        VIA_RECENTS in task.tags
        and package in nav.phone.recents
        and nav.phone.foreground != package
    ):
        is_open = nav.phone.overlay == "recents" and not nav.phone.is_asleep
        return (
            nav.tap_or_scroll(f"{BY_PACKAGE[package].key}_card")
            if is_open
            else nav.uncover() or RECENTS
        )
    if VIA_SEARCH in task.tags and nav.uncover() is None:
        if nav.phone.is_drawer_open:
            label = "Chrome" if package == CHROME else package
            return _search_app(nav, package, label)
        if nav.to_home() is None:
            return SWIPES["up"]
    return nav.to_app(package) or Wait()


def _search_app(nav: Navigator, package: str, label: str) -> Action:
    searched = nav.phone.fields.get("drawer_search", "")
    if searched.lower() == label.lower():
        return nav.to_app(package) or Wait()
    if searched:
        return HOME
    return (
        Type(text=label.lower())
        if nav.phone.focus == "drawer_search"
        else nav.tap("drawer_search") or HOME
    )


ACTIVITY_PAGES: dict[str, str] = {
    "battery": "battery",
    "wifi_settings": "wifi",
    "bluetooth_settings": "bluetooth",
    "display_settings": "display",
    "sound_settings": "sound",
    "language_input_settings": "language",
    "date_time_settings": "date_time",
    "storage_settings": "storage",
    "screen_lock_settings": "screen_lock",
    "developer_options_settings": "developer",
    "location_settings": "location",
}


def _activity(nav: Navigator, task: Task) -> Action:
    wanted = _wanted(task)
    page = (
        f"app_info:{wanted.removeprefix('app_info_')}"
        if wanted.startswith("app_info_")
        else ACTIVITY_PAGES[wanted]
    )
    return nav.to_settings(page) or Wait()


def _switch(name: str) -> Goal:
    def goal(nav: Navigator, task: Task) -> Action:
        if VIA_TILE in task.tags:
            is_expanded = nav.phone.overlay == "quick_settings"
            return nav.to_shade(expanded=is_expanded) or nav.tap(f"{name}_tile") or SWIPES["down"]
        return nav.to_settings(PAGE_OF[name]) or nav.tap_or_scroll(f"{name}_switch")

    return goal


def _slider(name: str, highest: int) -> Goal:
    def goal(nav: Navigator, task: Task) -> Action:
        level = int(_wanted(task))
        share = 0.0 if level <= 1 else level / highest
        return nav.to_settings(PAGE_OF[name]) or nav.slide(f"{name}_slider", share)

    return goal


def _choice(page: str, prefix: str) -> Goal:
    def goal(nav: Navigator, task: Task) -> Action:
        return nav.to_settings(page) or nav.tap_or_scroll(f"{prefix}_{_wanted(task)}_choice")

    return goal


def _app_info(package: str, button: str) -> Goal:
    def goal(nav: Navigator, task: Task) -> Action:  # noqa: ARG001  # the same call for every goal
        if package not in nav.phone.installed:
            return Terminate(status="failure")
        return nav.to_settings(f"app_info:{package}") or nav.tap_or_scroll(button)

    return goal


def _clear_notifications(nav: Navigator, task: Task) -> Action:  # noqa: ARG001
    return nav.to_shade(expanded=False) or nav.tap("clear_all") or BACK


def _connect(nav: Navigator, task: Task) -> Action:  # noqa: ARG001
    is_off = nav.phone.get("global", "wifi_on") == "0"
    return nav.to_settings("wifi") or nav.tap_or_scroll(
        "wifi_switch" if is_off else "saved_network_row"
    )


def _forget(nav: Navigator, task: Task) -> Action:
    phone = nav.phone
    if phone.connected is None:
        return _connect(nav, task)
    return nav.to_settings(f"network:{phone.connected}") or nav.tap_or_scroll("forget_network_row")


def _fill(nav: Navigator, field: str, text: str) -> Action | None:
    """Write a text into a field; None when it is there."""
    written = nav.phone.fields.get(field, "")
    if written == text:
        return None
    if nav.phone.focus != field:
        return nav.tap(field) or BACK
    return KeyPress(keys=("backspace",)) if written else Type(text=text)


def _browse(nav: Navigator, task: Task) -> Action:
    return nav.to_app(CHROME) or _fill(nav, "url_bar", _wanted(task)) or KeyPress(keys=("enter",))


def _compose(nav: Navigator, task: Task) -> Action:  # noqa: ARG001
    return nav.to_app(MESSAGES) or nav.tap("new_message") or BACK


def _draft(nav: Navigator, task: Task) -> Action:  # noqa: ARG001
    if (way := nav.to_app(MESSAGES)) is not None:
        return way
    if nav.phone.page == "compose":
        return _fill(nav, "message_text", "hello") or Wait()
    return nav.tap("new_message") or BACK


def _new_contact(nav: Navigator, task: Task) -> Action:
    if (way := nav.to_app(CONTACTS)) is not None:
        return way
    if nav.phone.page == "create":
        return _fill(nav, "contact_name", _wanted(task)) or nav.tap("save_contact") or BACK
    return nav.tap("new_contact") or BACK


def _search_contact(nav: Navigator, task: Task) -> Action:
    if (way := nav.to_app(CONTACTS)) is not None:
        return way
    return (
        _fill(nav, "contact_search", _wanted(task)) if nav.phone.page == "main" else BACK
    ) or Wait()


def _screenshot(nav: Navigator, task: Task) -> Action:  # noqa: ARG001
    return nav.tap("take_screenshot") or RECENTS


def _open_screenshot(nav: Navigator, task: Task) -> Action:
    if not any("Screenshots" in name for name in nav.phone.files):
        return _screenshot(nav, task)
    if (way := nav.to_app(GALLERY)) is not None:
        return way
    shown = next((name for name in nav.elements if name.startswith("screenshot_")), None)
    return (nav.tap(shown) if shown else None) or (
        SWIPES["up"] if nav.phone.page == "main" else BACK
    )


GOALS: dict[str, Goal] = {
    "current_app": _app,
    "current_activity": _activity,
    "is_home_screen": lambda nav, _task: nav.to_home() or HOME,
    "is_primary_home": lambda nav, _task: nav.to_home() or HOME,
    "is_recents_screen": lambda nav, _task: (
        RECENTS if nav.phone.overlay != "recents" and not nav.phone.is_asleep else HOME
    ),
    "is_quick_settings_open": lambda nav, _task: nav.to_shade(expanded=True) or Wait(),
    "is_notifications_open": lambda nav, _task: nav.to_shade(expanded=False) or Wait(),
    "found_icon": lambda nav, _task: nav.to_home() or SWIPES["up"],
    "wifi_enabled": _switch("wifi"),
    "bluetooth_enabled": _switch("bluetooth"),
    "airplane_mode": _switch("airplane"),
    "dnd_enabled": _switch("dnd"),
    "auto_time_enabled": _switch("auto_time"),
    "battery_saver_enabled": _switch("battery_saver"),
    "usb_debugging_enabled": _switch("usb_debugging"),
    "auto_rotate_enabled": _switch("auto_rotate"),
    "call_vibration_enabled": _switch("call_vibration"),
    "location_enabled": _switch("location"),
    "dark_theme_enabled": _switch("dark_theme"),
    "brightness_level": _slider("brightness", MAX_BRIGHTNESS),
    "media_volume": _slider("media_volume", 100),
    "screen_timeout": _choice("screen_timeout", "timeout"),
    "system_language": _choice("language", "language"),
    "notification_count": _clear_notifications,
    "wifi_connected": _connect,
    "wifi_network_forgotten": _forget,
    "chrome_cache_cleared": _app_info(CHROME, "clear_cache_row"),
    "current_url_domain": _browse,
    "search_query": _browse,
    "is_composing_message": _compose,
    "has_message_draft": _draft,
    "last_created_contact": _new_contact,
    "last_contact_search_query": _search_contact,
    "last_screenshot_taken": _screenshot,
    "current_media_type": _open_screenshot,
    "test_app_notifications_enabled": _app_info(TEST_APP, "app_notifications_switch"),
    "app_installed_test_app": _app_info(TEST_APP, "uninstall_row"),
    "app_running_com.android.chrome": _app_info(CHROME, "force_stop_row"),
}
"""Device query -> how to bring about the answer that the task expects."""
