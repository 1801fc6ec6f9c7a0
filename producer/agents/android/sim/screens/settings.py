"""The settings app: pages of `state.settings_tree`, plus rows that depend on the device."""

from dataclasses import replace

from producer.agents.android.sim.screens.parts import (
    CONTENT_TOP_PX,
    ROW_PX,
    background_of,
    is_dark,
    page_bars,
    scrolled,
)
from producer.agents.android.sim.screens.widget import (
    NAV_TOP_PX,
    WIDTH_PX,
    Effect,
    Look,
    MoveSlider,
    Scene,
    Widget,
    do,
)
from producer.agents.android.sim.state.apps import APPS, BY_PACKAGE, CHROME, TEST_APP, Color
from producer.agents.android.sim.state.phone import MAX_BRIGHTNESS, VOLUME_STEPS, Phone
from producer.agents.android.sim.state.settings_tree import (
    BLUE,
    BROWN,
    GREEN,
    INDIGO,
    ORANGE,
    PAGES,
    RED,
    TEAL,
    Row,
)

APPS_FIRST = (CHROME, TEST_APP)
"""Apps listed first on the apps page, like recently used apps on a device."""
GREY: Color = (120, 126, 138)


def page(phone: Phone) -> Scene:
    """The page of the settings app that is open."""
    kind, _, argument = phone.page.partition(":")
    rows = [_widget(phone, row) for row in _ordered(phone, kind)]
    rows += _device_rows(phone, kind, argument)
    placed, y = [], 0
    for row in rows:
        placed.append(replace(row, y=y))
        y += row.look.height
    shown, max_scroll = scrolled(phone, placed, CONTENT_TOP_PX, NAV_TOP_PX)
    over = page_bars(phone, PAGES[kind].title, with_arrow=kind != "root")
    return Scene(background_of(phone), (*shown, *over), max_scroll)


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
    stored = phone.get(row.namespace, row.key)
    is_on = stored == row.on
    effect: Effect
    match row.kind:
        case "link":
            state, control, effect = "", "row", do(Phone.open_page, row.target)
        case "switch" | "main_switch":
            state, control, effect = "on" if is_on else "off", "switch", do(Phone.toggle, row)
        case "slider":
            highest = VOLUME_STEPS if row.namespace == "volume" else MAX_BRIGHTNESS
            state, control = str(percent_of(stored, highest)), "slider"
            effect = MoveSlider(row.namespace, row.key)
        case "radio":
            state, control = "selected" if is_on else "off", "choice"
            effect = do(Phone.put, row.namespace, row.key, row.on)
    kind = "row" if row.kind == "link" else row.kind
    height, sub = 76 if kind == "main_switch" else ROW_PX, _second_line(phone, row)
    look = Look(kind, WIDTH_PX, height, row.label, sub, row.glyph, row.color, state, is_dark(phone))
    return look.at(0, 0, f"{row.name}_{control}", effect)


def percent_of(stored: str, highest: int) -> int:
    """A stored level as a percentage for a slider; 0 for text that is not a number."""
    return round(100 * min(highest, max(0, int(stored))) / highest) if stored.isdecimal() else 0


def _second_line(phone: Phone, row: Row) -> str:
    match row.name:
        case "wifi" if row.kind == "link":
            is_on = phone.get("global", "wifi_on") != "0"
            return (phone.connected or "Not connected") if is_on else "Off"
        case "bluetooth" if row.kind == "link":
            return "On" if phone.get("global", "bluetooth_on") == "1" else "Off"
        case "battery":
            return f"{phone.appearance.battery_percent}%"
        case _:
            return ""


def _device_rows(phone: Phone, kind: str, argument: str) -> list[Widget]:
    """The rows of a page that depend on the device."""
    rows: list[Widget] = []
    match kind:
        case "wifi" if phone.get("global", "wifi_on") != "0":
            rows = [_network_row(phone, name) for name in phone.appearance.networks]
        case "network":
            rows = _network_detail(phone, argument)
        case "bluetooth" if phone.get("global", "bluetooth_on") == "1":
            names = ("Headphones", "Car kit")
            rows = [_row(phone, "", name, "Paired", "bluetooth", INDIGO) for name in names]
        case "battery":
            percent = f"{phone.appearance.battery_percent}%"
            rows = [_row(phone, "", percent, "Charge", "battery", GREEN)]
        case "apps":
            rows = _app_rows(phone)
        case "app_info":
            rows = _app_info_rows(phone, argument)
        case "storage":
            photos, apps = f"{len(phone.files)} files", f"{len(phone.installed)} installed"
            rows = [
                _row(phone, "", "Internal storage", "41 GB of 64 GB used", "disk", BROWN),
                _row(phone, "", "Images", photos, "flower", (255, 179, 0)),
                _row(phone, "", "Apps", apps, "grid", TEAL),
            ]
        case _:
            pass
    return rows


def _network_row(phone: Phone, name: str) -> Widget:
    if name not in phone.saved_networks:
        return _row(phone, "", name, "Locked", "wifi", GREY)
    if name == phone.connected:
        effect, sub = do(Phone.open_page, f"network:{name}"), "Connected"
    else:
        effect, sub = do(_join, name), "Saved"
    return _row(phone, "saved_network", name, sub, "wifi", BLUE, effect)


def _join(phone: Phone, network: str) -> None:
    phone.connected = network


def _forget(phone: Phone, network: str) -> None:
    phone.saved_networks.remove(network)
    phone.connected = None if phone.connected == network else phone.connected
    phone.back()


def _network_detail(phone: Phone, argument: str) -> list[Widget]:
    sub = "Connected" if argument == phone.connected else "Saved"
    rows = [_row(phone, "", argument, sub, "wifi", BLUE)]
    if argument in phone.saved_networks:
        forget = do(_forget, argument)
        rows.append(_row(phone, "forget_network", "Forget network", "", "cross", RED, forget))
    return rows


def _app_rows(phone: Phone) -> list[Widget]:
    others = (app.package for app in APPS if app.package not in APPS_FIRST)
    listed = [package for package in (*APPS_FIRST, *others) if package in phone.installed]
    rows = []
    for app in (BY_PACKAGE[package] for package in listed):
        size = f"{phone.cache_kib[app.package] // 1024} MB"
        effect = do(Phone.open_page, f"app_info:{app.package}")
        rows.append(_row(phone, f"{app.key}_app", app.label, size, app.glyph, app.color, effect))
    return rows


def _app_info_rows(phone: Phone, argument: str) -> list[Widget]:
    app = BY_PACKAGE[argument]
    rows = [_row(phone, "", app.label, argument, app.glyph, app.color)]
    if argument not in phone.installed:
        return rows
    state = "off" if argument in phone.blocked_notifications else "on"
    bell = Look(
        "switch", WIDTH_PX, ROW_PX, "Notifications", "", "bell", BLUE, state, is_dark(phone)
    )
    rows.append(bell.at(0, 0, "app_notifications_switch", do(_toggle_notifications, argument)))
    is_running = "Running" if argument in phone.stacks else "Stopped"
    stop = do(Phone.stop, argument)
    rows.append(_row(phone, "force_stop", "Force stop", is_running, "cross", RED, stop))
    cache, clear = f"{phone.cache_kib[argument]} KB", do(_clear_cache, argument)
    rows.append(_row(phone, "clear_cache", "Clear cache", cache, "disk", BROWN, clear))
    if argument == TEST_APP:
        remove = do(uninstall, argument)
        rows.append(_row(phone, "uninstall", "Uninstall", "", "erase", ORANGE, remove))
    return rows


def _toggle_notifications(phone: Phone, package: str) -> None:
    phone.blocked_notifications ^= {package}


def _clear_cache(phone: Phone, package: str) -> None:
    phone.cache_kib[package] = 0


def uninstall(phone: Phone, package: str) -> None:
    """Remove an app from its menu or from its page, which closes."""
    phone.menu = None
    phone.uninstall(package)
    if phone.page.startswith("app_info:"):
        phone.back()


def _row(
    phone: Phone,
    name: str,
    label: str,
    sub: str,
    glyph: str,
    color: Color,
    effect: Effect | None = None,
) -> Widget:
    state = "" if effect is not None else "plain"
    look = Look("row", WIDTH_PX, ROW_PX, label, sub, glyph, color, state, is_dark(phone))
    return look.at(0, 0, f"{name}_row" if name else "", effect)
