"""Widgets that many screens share: system bars, app bars, scrolled lists, text fields, keyboard."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from producer.agents.android.sim.screens.widget import (
    NAV_PX,
    NAV_TOP_PX,
    STATUS_PX,
    WHITE,
    WIDTH_PX,
    Look,
    Widget,
    do,
)
from producer.agents.android.sim.state.apps import Color
from producer.agents.android.sim.state.phone import Phone

TITLE_PX = 56
CONTENT_TOP_PX = STATUS_PX + TITLE_PX
ROW_PX = 64
KEY_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
KEY_PX = 48
KEYBOARD_TOP_PX = NAV_TOP_PX - 4 * KEY_PX
BLACK_TEXT: Color = (40, 42, 48)
WHITE_TEXT: Color = WHITE
NAV_BUTTONS = (
    ("back", "nav_back", Phone.back),
    ("circle", "nav_home", Phone.home),
    ("square", "nav_recents", Phone.show_recents),
)
STATUS_ICONS = (
    ("minus", "zen_mode"),
    ("airplane", "airplane_mode_on"),
    ("bluetooth", "bluetooth_on"),
    ("wifi", "wifi_on"),
)


class TextField(NamedTuple):
    """Where a text field is, and what it shows while it is empty."""

    x: int
    """Left edge, px, and the distance from the right edge of the screen."""
    y: int
    height: int
    hint: str
    resource_id: str
    glyph: str = ""


FIELDS = {
    "drawer_search": TextField(16, 36, 48, "Search apps", "search_container_all_apps", "search"),
    "url_bar": TextField(10, 34, 50, "Search or type URL", "url_bar", "search"),
    "message_to": TextField(10, 96, 52, "To: name or number", "recipient_text_view"),
    "message_text": TextField(10, NAV_TOP_PX - 60, 52, "Text message", "compose_message_text"),
    "contact_name": TextField(10, 100, 56, "Name", "contact_name", "person"),
    "contact_search": TextField(10, 86, 50, "Search contacts", "search_view", "search"),
}


def is_dark(phone: Phone) -> bool:
    """Whether the dark theme is on."""
    return phone.get("secure", "ui_night_mode") == "2"


def background_of(phone: Phone) -> Color:
    """The theme's background color for pages."""
    return (16, 17, 21) if is_dark(phone) else (246, 247, 250)


def text_color_of(phone: Phone) -> Color:
    """The theme's color for text on pages."""
    return WHITE_TEXT if is_dark(phone) else BLACK_TEXT


def text(label: str, color: Color, size_px: int, y: int, height: int) -> Widget:
    """A centered line across the screen."""
    return Look("text", WIDTH_PX, height, label, color=color, state=str(size_px)).at(0, y)


def bars(phone: Phone, *, text_color: Color, background: Color | None = None) -> list[Widget]:
    """The status bar and the three navigation buttons, which are drawn on top of everything."""
    widgets = []
    if background is not None:
        widgets.append(Look("block", WIDTH_PX, NAV_PX, color=background).at(0, NAV_TOP_PX))
        widgets.append(Look("block", WIDTH_PX, STATUS_PX, color=background).at(0, 0))
    shown = " ".join(
        glyph for glyph, key in STATUS_ICONS if phone.get("global", key) not in {"0", "null"}
    )
    clock, percent = phone.appearance.clock, f"{phone.appearance.battery_percent}%"
    status = Look("status_bar", WIDTH_PX, STATUS_PX, clock, percent, "", text_color, shown)
    widgets.append(status.at(0, 0))
    width = WIDTH_PX // len(NAV_BUTTONS)
    for index, (icon, name, press) in enumerate(NAV_BUTTONS):
        look = Look("icon", width, NAV_PX, glyph=icon, color=text_color)
        widgets.append(look.at(index * width, NAV_TOP_PX, name, do(press)))
    return widgets


def page_bars(phone: Phone, title: str, *, with_arrow: bool) -> list[Widget]:
    """App bar, status bar and navigation bar of a page."""
    dark, color = is_dark(phone), text_color_of(phone)
    arrow = "arrow" if with_arrow else ""
    widgets = [Look("app_bar", WIDTH_PX, TITLE_PX, title, glyph=arrow, dark=dark).at(0, STATUS_PX)]
    if with_arrow:
        icon = Look("icon", 56, TITLE_PX, glyph=arrow, color=color)
        widgets.append(icon.at(0, STATUS_PX, "back_arrow", do(Phone.back)))
    background: Color = (38, 40, 47) if dark else WHITE_TEXT
    return widgets + bars(phone, text_color=color, background=background)


def scrolled(
    phone: Phone, items: Sequence[Widget], top_px: int, bottom_px: int
) -> tuple[list[Widget], int]:
    """Scroll a list.

    `items` are positioned from y = 0. Returns the items visible between top and bottom at their
    position on the screen, and the maximum scroll in pixels.
    """
    height = max((item.y + item.look.height for item in items), default=0)
    max_scroll = max(0, height - (bottom_px - top_px))
    offset = min(phone.scroll_px.get(phone.screen, 0), max_scroll)
    placed = [replace(item, y=item.y - offset + top_px) for item in items]
    shown = [item for item in placed if item.y + item.look.height > top_px and item.y < bottom_px]
    return shown, max_scroll


def text_field(phone: Phone, name: str, *, y: int | None = None, idle_text: str = "") -> Widget:
    """A text field, at `y` if given. Without the focus it shows `idle_text`, if any."""
    field, state = FIELDS[name], "focused" if phone.focus == name else ""
    shown = idle_text if idle_text and not state else phone.fields.get(name, "")
    width = WIDTH_PX - 2 * field.x
    look = Look(
        "field", width, field.height, shown, field.hint, field.glyph, WHITE, state, is_dark(phone)
    )
    top = field.y if y is None else y
    focus = do(Phone.focus_field, name)
    return look.at(field.x, top, name, focus, resource_id=field.resource_id)


def keyboard(phone: Phone) -> list[Widget]:
    """The keyboard, if a text field is focused."""
    if phone.focus is None:
        return []
    dark, name = is_dark(phone), phone.focus
    background: Color = (28, 30, 35) if dark else (212, 216, 224)
    widgets = [Look("block", WIDTH_PX, 4 * KEY_PX, color=background).at(0, KEYBOARD_TOP_PX)]
    for line, letters in enumerate(KEY_ROWS):
        left, y = (WIDTH_PX - 36 * len(letters)) // 2, KEYBOARD_TOP_PX + line * KEY_PX
        for index, letter in enumerate(letters):
            look = Look("key", 36, KEY_PX, letter, dark=dark)
            effect = do(Phone.write, name, letter)
            widgets.append(look.at(left + 36 * index, y, f"key_{letter}", effect))
    bottom = KEYBOARD_TOP_PX + 3 * KEY_PX
    specials = (
        (0, 72, "key_erase", "", "erase", do(Phone.erase, name)),
        (72, 144, "key_space", "space", "", do(Phone.write, name, " ")),
        (216, 60, "key_dot", ".", "", do(Phone.write, name, ".")),
    )
    for x, width, key_name, label, glyph, effect in specials:
        look = Look("key", width, KEY_PX, label, glyph=glyph, dark=dark)
        widgets.append(look.at(x, bottom, key_name, effect))
    # "deed" is a word in the vocabulary of the demo policy (through Element.state); keep it.
    enter = Look("key", 84, KEY_PX, glyph="enter", state="deed", dark=dark)
    return [*widgets, enter.at(276, bottom, "key_enter", do(Phone.submit))]
