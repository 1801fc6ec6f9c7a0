"""The launcher: home pages, dock, app drawer with search, and the long-press menu of an icon."""

from producer.agents.android.sim.screens.parts import (
    WHITE_TEXT,
    background_of,
    bars,
    is_dark,
    keyboard,
    scrolled,
    text,
    text_color_of,
    text_field,
)
from producer.agents.android.sim.screens.settings import uninstall
from producer.agents.android.sim.screens.widget import NAV_TOP_PX, WIDTH_PX, Look, Scene, Widget, do
from producer.agents.android.sim.state.apps import BY_PACKAGE, SETTINGS, TEST_APP
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
    clock = Look("clock", WIDTH_PX, 72, phone.appearance.clock, phone.appearance.date)
    widgets = [clock.at(0, 30)]
    for cell, package in sorted(phone.home_cells[phone.home_page].items()):
        row, column = divmod(cell, NUM_COLUMNS)
        widgets.append(_icon(package, column * CELL_W, GRID_TOP_PX + row * CELL_H))
    current, total = phone.home_page + 1, len(phone.home_cells)
    widgets.append(Look("page_dots", WIDTH_PX, 14, state=f"{current}/{total}").at(0, DOTS_TOP_PX))
    widgets += [
        _icon(package, index * CELL_W, DOCK_TOP_PX, in_dock=True)
        for index, package in enumerate(phone.dock)
    ]
    widgets += bars(phone, text_color=WHITE_TEXT) + _menu(phone)
    return Scene(
        phone.get("wallpaper", "name"),
        tuple(widgets),
        description=f"Home screen {current} of {total}",
    )


def drawer(phone: Phone) -> Scene:
    """The app drawer: apps by label, filtered by the search."""
    items = []
    for index, package in enumerate(phone.drawer_matches()):
        row, column = divmod(index, NUM_COLUMNS)
        items.append(_icon(package, column * CELL_W, row * CELL_H, "drawer", dark=is_dark(phone)))
    shown, max_scroll = scrolled(phone, items, DRAWER_TOP_PX, NAV_TOP_PX)
    background = background_of(phone)
    search = text_field(phone, "drawer_search")
    head = Look("block", WIDTH_PX, DRAWER_TOP_PX, color=background).at(0, 0)
    over = bars(phone, text_color=text_color_of(phone), background=background)
    widgets = (*shown, head, search, *keyboard(phone), *over, *_menu(phone))
    return Scene(background, widgets, max_scroll, "apps_list_view")


def _icon(
    package: str, x: int, y: int, state: str = "", *, dark: bool = False, in_dock: bool = False
) -> Widget:
    """An app's icon; in the dock without its label."""
    app = BY_PACKAGE[package]
    height, label = (DOCK_PX, "") if in_dock else (CELL_H, app.label)
    look = Look("app_icon", CELL_W, height, label, "", app.glyph, app.color, state, dark)
    launch, open_menu = do(Phone.launch, package), do(Phone.open_menu, package)
    return look.at(x, y, f"{app.key}_icon", launch, long_press=open_menu)


def _menu(phone: Phone) -> list[Widget]:
    if phone.menu is None:
        return []
    app = BY_PACKAGE[phone.menu]
    open_info = do(Phone.launch, SETTINGS, f"app_info:{app.package}")
    entries = [("menu_app_info", "App info", "lines", open_info)]
    if app.package == TEST_APP:
        entries.append(("menu_uninstall", "Uninstall", "cross", do(uninstall, app.package)))
    scrim = Look("block", WIDTH_PX, NAV_TOP_PX, color=(30, 32, 38))
    widgets = [
        scrim.at(0, 0, "menu_close", do(Phone.back)),
        Look("large_icon", WIDTH_PX, 110, glyph=app.glyph, color=app.color).at(0, 120),
        text(app.label, WHITE_TEXT, 24, y=240, height=40),
    ]
    for index, (name, label, glyph, effect) in enumerate(entries):
        look = Look("button", 280, 64, label, glyph=glyph, color=WHITE_TEXT)
        widgets.append(look.at(40, 300 + index * 76, name, effect))
    return widgets
