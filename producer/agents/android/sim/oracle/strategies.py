"""Strategies: for each device query, the next action towards the answer that a task expects.

Stateless: a strategy chooses from the phone's current state, so it recovers from any wrong turn.
"""

from collections.abc import Callable

from producer.agents.android.sim.oracle.navigator import BACK, HOME, RECENTS, SWIPES, Navigator
from producer.agents.android.sim.state.apps import (
    BY_PACKAGE,
    CHROME,
    CONTACTS,
    GALLERY,
    LAUNCHER,
    MESSAGES,
    TEST_APP,
)
from producer.agents.android.sim.state.phone import MAX_BRIGHTNESS
from producer.agents.android.sim.state.settings_tree import ACTIVITY_PAGES, PAGE_OF
from producer.task import Task
from schemas.actions import Action, KeyPress, Terminate, Type, Wait


class NoOracleError(Exception):
    """The task's device query has no strategy."""


Strategy = Callable[[Navigator, Task], Action]
VIA_TILE = "tile"
VIA_SEARCH = "search"
VIA_RECENTS = "recents"
"""Task tags for the way that the instruction asks for."""


def _wanted(task: Task) -> str:
    return task.expected_result or ""


def _wanted_name(task: Task) -> str:
    """The expected answer, normalised: names of apps, pages and choices are in lower case."""
    return _wanted(task).strip().lower()


def _app(nav: Navigator, task: Task) -> Action:
    package = _wanted_name(task)
    if package == LAUNCHER:
        return nav.to_home() or HOME
    if (
        VIA_RECENTS in task.tags
        and package in nav.phone.recents
        and nav.phone.foreground != package
    ):
        is_open = nav.phone.overlay == "recents" and not nav.phone.is_asleep
        return (
            nav.tap_or_scroll(f"{BY_PACKAGE[package].key}_card")
            if is_open
            else nav.dismiss_overlays() or RECENTS
        )
    if VIA_SEARCH in task.tags and nav.dismiss_overlays() is None:
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


def _activity(nav: Navigator, task: Task) -> Action:
    wanted = _wanted_name(task)
    if wanted.startswith("app_info_"):
        return nav.to_settings(f"app_info:{wanted.removeprefix('app_info_')}") or Wait()
    if wanted not in ACTIVITY_PAGES:
        message = f"no oracle for task {task.task_id}: no strategy for the activity {wanted!r}"
        raise NoOracleError(message)
    return nav.to_settings(ACTIVITY_PAGES[wanted]) or Wait()


def _switch(name: str) -> Strategy:
    def strategy(nav: Navigator, task: Task) -> Action:
        if VIA_TILE in task.tags:
            is_expanded = nav.phone.overlay == "quick_settings"
            return nav.to_shade(expanded=is_expanded) or nav.tap(f"{name}_tile") or SWIPES["down"]
        return nav.to_settings(PAGE_OF[name]) or nav.tap_or_scroll(f"{name}_switch")

    return strategy


def _slider(name: str, highest: int) -> Strategy:
    def strategy(nav: Navigator, task: Task) -> Action:
        level = int(_wanted(task))
        share = 0.0 if level <= 1 else level / highest
        return nav.to_settings(PAGE_OF[name]) or nav.slide(f"{name}_slider", share)

    return strategy


def _choice(page: str, prefix: str) -> Strategy:
    def strategy(nav: Navigator, task: Task) -> Action:
        return nav.to_settings(page) or nav.tap_or_scroll(f"{prefix}_{_wanted_name(task)}_choice")

    return strategy


def _app_info(package: str, button: str) -> Strategy:
    def strategy(nav: Navigator, task: Task) -> Action:  # noqa: ARG001  # a Strategy
        if package not in nav.phone.installed:
            return Terminate(status="failure")
        return nav.to_settings(f"app_info:{package}") or nav.tap_or_scroll(button)

    return strategy


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
    """Type `text` into a field; None if it is already there."""
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
    if (action := nav.to_app(MESSAGES)) is not None:
        return action
    if nav.phone.page == "compose":
        return _fill(nav, "message_text", "hello") or Wait()
    return nav.tap("new_message") or BACK


def _new_contact(nav: Navigator, task: Task) -> Action:
    if (action := nav.to_app(CONTACTS)) is not None:
        return action
    if nav.phone.page == "create":
        return _fill(nav, "contact_name", _wanted(task)) or nav.tap("save_contact") or BACK
    return nav.tap("new_contact") or BACK


def _search_contact(nav: Navigator, task: Task) -> Action:
    if (action := nav.to_app(CONTACTS)) is not None:
        return action
    return (
        _fill(nav, "contact_search", _wanted(task)) if nav.phone.page == "main" else BACK
    ) or Wait()


def _screenshot(nav: Navigator, task: Task) -> Action:  # noqa: ARG001
    return nav.tap("take_screenshot") or RECENTS


def _open_screenshot(nav: Navigator, task: Task) -> Action:
    if not any("Screenshots" in name for name in nav.phone.files):
        return _screenshot(nav, task)
    if (action := nav.to_app(GALLERY)) is not None:
        return action
    screenshot = next((name for name in nav.elements if name.startswith("screenshot_")), None)
    return (nav.tap(screenshot) if screenshot else None) or (
        SWIPES["up"] if nav.phone.page == "main" else BACK
    )


STRATEGIES: dict[str, Strategy] = {
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
"""Maps a device query to the strategy for reaching the answer that the task expects."""
