"""The settings app: pages of `state.settings_tree`, plus rows that depend on the device."""

from producer.agents.android.sim.screens.parts import (
    CONTENT_TOP_PX,
    ROW_PX,
    is_dark,
    page_bars,
    scrolled,
)
from producer.agents.android.sim.screens.widget import (
    NAV_TOP_PX,
    SLIDER_LEFT,
    SLIDER_RIGHT,
    WIDTH_PX,
    Look,
    Scene,
    Widget,
)
from producer.agents.android.sim.state.apps import APPS, BY_PACKAGE, CHROME, TEST_APP
from producer.agents.android.sim.state.effects import (
    AppCommand,
    Effect,
    JoinNetwork,
    MoveSlider,
    OpenPage,
    PutSetting,
    ToggleSwitch,
)
from producer.agents.android.sim.state.phone import MAX_BRIGHTNESS, VOLUME_STEPS, Phone
from producer.agents.android.sim.state.settings_tree import BLUE, INDIGO, PAGES, Row

APPS_FIRST = (CHROME, TEST_APP)
"""Listed first on the apps page, like recently used apps on a device."""
GREY = (120, 126, 138)


def page(phone: Phone) -> Scene:
    """The open page of the settings app."""
    kind, _, argument = phone.page.partition(":")
    definition = PAGES[kind]
    rows = [_widget(phone, row) for row in _ordered(phone, kind)]
    rows += _DEVICE_ROWS[kind](phone, argument) if kind in _DEVICE_ROWS else []
    placed, y = [], 0
    for row in rows:
        placed.append(Widget(row.look, row.x, y, row.name, row.effect, row.long_press_effect))
        y += row.look.height
    shown, max_scroll = scrolled(phone, placed, CONTENT_TOP_PX, NAV_TOP_PX)
    background = (16, 17, 21) if is_dark(phone) else (246, 247, 250)
    return Scene(
        background,
        (*shown, *page_bars(phone, definition.title, with_arrow=kind != "root")),
        max_scroll,
    )


def _ordered(phone: Phone, kind: str) -> list[Row]:
    rows = PAGES[kind].rows
    if kind != "root":
        return list(rows)
    by_name = {row.name: row for row in rows}
    has_developer = phone.get("global", "development_settings_enabled") == "1"
    return [
        by_name[name]
        for name in phone.appearance.root_order
        if name != "developer" or has_developer
    ]


def _widget(phone: Phone, row: Row) -> Widget:
    stored, dark = phone.get(row.namespace, row.key), is_dark(phone)
    effect: Effect
    match row.kind:
        case "link":
            name, kind, state, effect = f"{row.name}_row", "row", "", OpenPage(row.target)
        case "switch" | "main_switch":
            name, kind, state, effect = (
                f"{row.name}_switch",
                row.kind,
                "on" if stored == row.on else "off",
                ToggleSwitch(row),
            )
        case "slider":
            highest = VOLUME_STEPS if row.namespace == "volume" else MAX_BRIGHTNESS
            state = str(percent_of(stored, highest))
            name, kind = f"{row.name}_slider", "slider"
            effect = MoveSlider(row.namespace, row.key, SLIDER_LEFT, SLIDER_RIGHT)
        case "radio":
            state = "selected" if stored == row.on else "off"
            name, kind, effect = (
                f"{row.name}_choice",
                "radio",
                PutSetting(row.namespace, row.key, row.on),
            )
    height = 76 if kind == "main_switch" else ROW_PX
    look = Look(
        kind,
        WIDTH_PX,
        height,
        row.label,
        _second_line(phone, row),
        row.glyph,
        row.color,
        state,
        dark,
    )
    return Widget(look, 0, 0, name, effect)


def percent_of(stored: str, highest: int) -> int:
    """A stored level as a percent for a slider; 0 for text that is not a number."""
    return round(100 * min(highest, max(0, int(stored))) / highest) if stored.isdecimal() else 0


def _second_line(phone: Phone, row: Row) -> str:
    match row.name:
        case "wifi" if row.kind == "link":
            return (
                (phone.connected or "Not connected")
                if phone.get("global", "wifi_on") != "0"
                else "Off"
            )
        case "bluetooth" if row.kind == "link":
            return "On" if phone.get("global", "bluetooth_on") == "1" else "Off"
        case "battery":
            return f"{phone.appearance.battery_percent}%"
        case _:
            return ""


def _network_rows(phone: Phone, argument: str) -> list[Widget]:  # noqa: ARG001  # one signature
    if phone.get("global", "wifi_on") == "0":
        return []
    rows = []
    for name in phone.appearance.networks:
        is_saved, is_connected = name in phone.saved_networks, name == phone.connected
        sub = "Connected" if is_connected else "Saved" if is_saved else "Locked"
        effect: Effect | None = (
            (OpenPage(f"network:{name}") if is_connected else JoinNetwork(name))
            if is_saved
            else None
        )
        slug = "saved_network" if is_saved else ""
        rows.append(_row(phone, slug, name, sub, "wifi", BLUE if is_saved else GREY, effect))
    return rows


def _network_detail(phone: Phone, argument: str) -> list[Widget]:
    rows = [
        _row(
            phone,
            "",
            argument,
            "Connected" if argument == phone.connected else "Saved",
            "wifi",
            BLUE,
            None,
        )
    ]
    if argument in phone.saved_networks:
        rows.append(
            _row(
                phone,
                "forget_network",
                "Forget network",
                "",
                "cross",
                (229, 45, 50),
                JoinNetwork(argument, forget=True),
            )
        )
    return rows


def _bluetooth_device_rows(phone: Phone, argument: str) -> list[Widget]:  # noqa: ARG001
    if phone.get("global", "bluetooth_on") != "1":
        return []
    return [
        _row(phone, "", name, "Paired", "bluetooth", INDIGO, None)
        for name in ("Headphones", "Car kit")
    ]


def _battery_rows(phone: Phone, argument: str) -> list[Widget]:  # noqa: ARG001
    return [
        _row(
            phone,
            "",
            f"{phone.appearance.battery_percent}%",
            "Charge",
            "battery",
            (56, 158, 62),
            None,
        )
    ]


def _app_rows(phone: Phone, argument: str) -> list[Widget]:  # noqa: ARG001
    listed = [package for package in APPS_FIRST if package in phone.installed]
    listed += [
        app.package
        for app in APPS
        if app.package in phone.installed and app.package not in APPS_FIRST
    ]
    apps = [BY_PACKAGE[package] for package in listed]
    return [
        _row(
            phone,
            f"{app.key}_app",
            app.label,
            f"{phone.cache_kib[app.package] // 1024} MB",
            app.glyph,
            app.color,
            OpenPage(f"app_info:{app.package}"),
        )
        for app in apps
    ]


def _app_info_rows(phone: Phone, argument: str) -> list[Widget]:
    app = BY_PACKAGE[argument]
    rows = [_row(phone, "", app.label, argument, app.glyph, app.color, None)]
    if argument not in phone.installed:
        return rows
    is_allowed = argument not in phone.blocked_notifications
    bell = Look(
        "switch",
        WIDTH_PX,
        ROW_PX,
        "Notifications",
        "",
        "bell",
        BLUE,
        "on" if is_allowed else "off",
        is_dark(phone),
    )
    is_running = "Running" if argument in phone.stacks else "Stopped"
    rows.append(
        Widget(bell, 0, 0, "app_notifications_switch", AppCommand("toggle_notifications", argument))
    )
    rows.append(
        _row(
            phone,
            "force_stop",
            "Force stop",
            is_running,
            "cross",
            (229, 45, 50),
            AppCommand("stop", argument),
        )
    )
    cache = f"{phone.cache_kib[argument]} KB"
    rows.append(
        _row(
            phone,
            "clear_cache",
            "Clear cache",
            cache,
            "disk",
            (121, 85, 72),
            AppCommand("clear_cache", argument),
        )
    )
    if argument == TEST_APP:
        rows.append(
            _row(
                phone,
                "uninstall",
                "Uninstall",
                "",
                "erase",
                (245, 124, 0),
                AppCommand("uninstall", argument),
            )
        )
    return rows


def _storage_rows(phone: Phone, argument: str) -> list[Widget]:  # noqa: ARG001
    photos = f"{len(phone.files)} files"
    return [
        _row(phone, "", "Internal storage", "41 GB of 64 GB used", "disk", (121, 85, 72), None),
        _row(phone, "", "Images", photos, "flower", (255, 179, 0), None),
        _row(phone, "", "Apps", f"{len(phone.installed)} installed", "grid", (0, 150, 136), None),
    ]


def _row(
    phone: Phone,
    name: str,
    label: str,
    sub: str,
    glyph: str,
    color: tuple[int, int, int],
    effect: Effect | None,
) -> Widget:
    state = "" if effect is not None else "plain"
    look = Look("row", WIDTH_PX, ROW_PX, label, sub, glyph, color, state, is_dark(phone))
    return Widget(look, 0, 0, f"{name}_row" if name else "", effect)


_DEVICE_ROWS = {
    "wifi": _network_rows,
    "network": _network_detail,
    "bluetooth": _bluetooth_device_rows,
    "battery": _battery_rows,
    "apps": _app_rows,
    "app_info": _app_info_rows,
    "storage": _storage_rows,
}
