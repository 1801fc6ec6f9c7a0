"""The launcher: home pages, dock, app drawer with search, and the long-press menu of an icon."""

from producer.agents.android.sim.screens.parts import (
    BLACK_TEXT,
    WHITE_TEXT,
    bars,
    is_dark,
    keyboard,
    scrolled,
    text_field,
)
from producer.agents.android.sim.screens.widget import (
    NAV_TOP_PX,
    WIDTH_PX,
    Look,
    Scene,
    Widget,
)
from producer.agents.android.sim.state.apps import BY_PACKAGE, SETTINGS, TEST_APP
from producer.agents.android.sim.state.effects import (
    AppCommand,
    Effect,
    LaunchApp,
    OpenIconMenu,
    OpenPage,
    PressButton,
)
from producer.agents.android.sim.state.phone import Phone

CELL_W, CELL_H = 90, 94
GRID_TOP_PX = 106
DOTS_TOP_PX = 486
DOCK_TOP_PX = 508
DOCK_PX = 80
NUM_COLUMNS = 4
DRAWER_TOP_PX = 92


def home(phone: Phone) -> Scene:
    """The visible home page."""
    widgets = [
        Widget(Look("clock", WIDTH_PX, 72, phone.appearance.clock, phone.appearance.date), 0, 30)
    ]
    for cell, package in sorted(phone.home_cells[phone.home_page].items()):
        row, column = divmod(cell, NUM_COLUMNS)
        widgets.append(_icon(package, column * CELL_W, GRID_TOP_PX + row * CELL_H))
    current, total = phone.home_page + 1, len(phone.home_cells)
    widgets.append(
        Widget(Look("page_dots", WIDTH_PX, 14, state=f"{current}/{total}"), 0, DOTS_TOP_PX)
    )
    for index, package in enumerate(phone.dock):
        app = BY_PACKAGE[package]
        look = Look("app_icon", CELL_W, DOCK_PX, glyph=app.glyph, color=app.color)
        widgets.append(
            Widget(
                look,
                index * CELL_W,
                DOCK_TOP_PX,
                f"{app.key}_icon",
                LaunchApp(package),
                OpenIconMenu(package),
            )
        )
    widgets += bars(phone, text_color=WHITE_TEXT) + _menu(phone)
    return Scene(
        phone.get("wallpaper", "name"),
        tuple(widgets),
        description=f"Home screen {current} of {total}",
    )


def drawer(phone: Phone) -> Scene:
    """The app drawer: apps by label, filtered by the search."""
    dark = is_dark(phone)
    items = []
    for index, package in enumerate(phone.drawer_matches()):
        row, column = divmod(index, NUM_COLUMNS)
        items.append(_icon(package, column * CELL_W, row * CELL_H, "drawer", dark=dark))
    shown, max_scroll = scrolled(phone, items, DRAWER_TOP_PX, NAV_TOP_PX)
    background = (16, 17, 21) if dark else (246, 247, 250)
    search = text_field(
        phone,
        "drawer_search",
        (16, 36, WIDTH_PX - 32, 48),
        "Search apps",
        glyph="search",
        resource_id="search_container_all_apps",
    )
    head = Widget(Look("block", WIDTH_PX, DRAWER_TOP_PX, color=background), 0, 0)
    over = bars(phone, text_color=WHITE_TEXT if dark else BLACK_TEXT, background=background)
    return Scene(
        background,
        (*shown, head, search, *keyboard(phone), *over, *_menu(phone)),
        max_scroll,
        "apps_list_view",
    )


def _icon(package: str, x: int, y: int, state: str = "", *, dark: bool = False) -> Widget:
    app = BY_PACKAGE[package]
    look = Look(
        "app_icon",
        CELL_W,
        CELL_H,
        app.label,
        glyph=app.glyph,
        color=app.color,
        state=state,
        dark=dark,
    )
    return Widget(look, x, y, f"{app.key}_icon", LaunchApp(package), OpenIconMenu(package))


def _menu(phone: Phone) -> list[Widget]:
    if phone.menu is None:
        return []
    app = BY_PACKAGE[phone.menu]
    entries: list[tuple[str, str, str, Effect]] = [
        ("menu_app_info", "App info", "lines", OpenPage(f"app_info:{app.package}", SETTINGS))
    ]
    if app.package == TEST_APP:
        entries.append(
            ("menu_uninstall", "Uninstall", "cross", AppCommand("uninstall", app.package))
        )
    scrim = Widget(
        Look("block", WIDTH_PX, NAV_TOP_PX, color=(30, 32, 38)),
        0,
        0,
        "menu_close",
        PressButton("back"),
    )
    widgets = [
        scrim,
        Widget(Look("large_icon", WIDTH_PX, 110, glyph=app.glyph, color=app.color), 0, 120),
    ]
    widgets.append(
        Widget(Look("text", WIDTH_PX, 40, app.label, color=WHITE_TEXT, state="24"), 0, 240)
    )
    for index, (name, label, glyph, effect) in enumerate(entries):
        look = Look("button", 280, 64, label, glyph=glyph, color=(255, 255, 255))
        widgets.append(Widget(look, 40, 300 + index * 76, name, effect))
    return widgets
