"""Widgets that many screens share: system bars, app bars, scrolled lists, text fields, keyboard."""

from collections.abc import Sequence

from producer.agents.android.sim.screens.widget import (
    NAV_PX,
    NAV_TOP_PX,
    STATUS_PX,
    WIDTH_PX,
    Look,
    Widget,
)
from producer.agents.android.sim.state.apps import Color
from producer.agents.android.sim.state.effects import FocusField, PressButton, TypeKey
from producer.agents.android.sim.state.phone import Phone

TITLE_PX = 56
CONTENT_TOP_PX = STATUS_PX + TITLE_PX
ROW_PX = 64
KEY_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
KEY_PX = 48
KEYBOARD_TOP_PX = NAV_TOP_PX - 4 * KEY_PX
BLACK_TEXT: Color = (40, 42, 48)
WHITE_TEXT: Color = (255, 255, 255)
NAV_BUTTONS = (("back", "back"), ("circle", "home"), ("square", "recents"))


def is_dark(phone: Phone) -> bool:
    """Whether the dark theme is on."""
    return phone.get("secure", "ui_night_mode") == "2"


def bars(phone: Phone, *, text_color: Color, background: Color | None = None) -> list[Widget]:
    """The status bar and the three navigation buttons, which are drawn on top of everything."""
    status_icons = (
        ("minus", "zen_mode"),
        ("airplane", "airplane_mode_on"),
        ("bluetooth", "bluetooth_on"),
        ("wifi", "wifi_on"),
    )
    shown = " ".join(
        glyph for glyph, key in status_icons if phone.get("global", key) not in {"0", "null"}
    )
    percent = f"{phone.appearance.battery_percent}%"
    widgets = []
    if background is not None:
        widgets.append(Widget(Look("block", WIDTH_PX, NAV_PX, color=background), 0, NAV_TOP_PX))
        widgets.append(Widget(Look("block", WIDTH_PX, STATUS_PX, color=background), 0, 0))
    widgets.append(
        Widget(
            Look(
                "status_bar",
                WIDTH_PX,
                STATUS_PX,
                phone.appearance.clock,
                percent,
                color=text_color,
                state=shown,
            ),
            0,
            0,
        )
    )
    width = WIDTH_PX // len(NAV_BUTTONS)
    for index, (icon, button) in enumerate(NAV_BUTTONS):
        look = Look("icon", width, NAV_PX, glyph=icon, color=text_color)
        widgets.append(
            Widget(look, index * width, NAV_TOP_PX, f"nav_{button}", PressButton(button))
        )
    return widgets


def page_bars(phone: Phone, title: str, *, with_arrow: bool) -> list[Widget]:
    """App bar, status bar and navigation bar of a page."""
    dark = is_dark(phone)
    text_color = WHITE_TEXT if dark else BLACK_TEXT
    background: Color = (38, 40, 47) if dark else WHITE_TEXT
    widgets = [
        Widget(
            Look(
                "app_bar", WIDTH_PX, TITLE_PX, title, glyph="arrow" if with_arrow else "", dark=dark
            ),
            0,
            STATUS_PX,
        )
    ]
    if with_arrow:
        widgets.append(
            Widget(
                Look("icon", 56, TITLE_PX, glyph="arrow", color=text_color),
                0,
                STATUS_PX,
                "back_arrow",
                PressButton("back"),
            )
        )
    return widgets + bars(phone, text_color=text_color, background=background)


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
    shown = []
    for item in items:
        y = item.y - offset + top_px
        if y + item.look.height > top_px and y < bottom_px:
            shown.append(
                Widget(
                    item.look,
                    item.x,
                    y,
                    item.name,
                    item.effect,
                    item.long_press_effect,
                    item.resource_id,
                )
            )
    return shown, max_scroll


def text_field(
    phone: Phone,
    name: str,
    box: tuple[int, int, int, int],
    hint: str,
    *,
    glyph: str = "",
    resource_id: str = "",
    idle_text: str = "",
) -> Widget:
    """A text field in `box` (x, y, width, height); unfocused it shows `idle_text`, if any."""
    x, y, width, height = box
    state = "focused" if phone.focus == name else ""
    shown = idle_text if idle_text and not state else phone.fields.get(name, "")
    look = Look("field", width, height, shown, hint, glyph, state=state, dark=is_dark(phone))
    return Widget(look, x, y, name, FocusField(name), resource_id=resource_id)


def keyboard(phone: Phone) -> list[Widget]:
    """The keyboard, if a text field is focused."""
    if phone.focus is None:
        return []
    dark, name = is_dark(phone), phone.focus
    background: Color = (28, 30, 35) if dark else (212, 216, 224)
    widgets = [Widget(Look("block", WIDTH_PX, 4 * KEY_PX, color=background), 0, KEYBOARD_TOP_PX)]
    for line, letters in enumerate(KEY_ROWS):
        left = (WIDTH_PX - 36 * len(letters)) // 2
        for index, letter in enumerate(letters):
            look = Look("key", 36, KEY_PX, letter, dark=dark)
            widgets.append(
                Widget(
                    look,
                    left + 36 * index,
                    KEYBOARD_TOP_PX + line * KEY_PX,
                    f"key_{letter}",
                    TypeKey(letter, name),
                )
            )
    bottom = KEYBOARD_TOP_PX + 3 * KEY_PX
    specials = (
        (0, 72, "key_erase", "", "erase", "backspace"),
        (72, 144, "key_space", "space", "", " "),
        (216, 60, "key_dot", ".", "", "."),
    )
    for x, width, key_name, label, glyph, character in specials:
        widgets.append(
            Widget(
                Look("key", width, KEY_PX, label, glyph=glyph, dark=dark),
                x,
                bottom,
                key_name,
                TypeKey(character, name),
            )
        )
    # "deed" is a word in the vocabulary of the demo policy (through Element.state); keep it.
    enter = Look("key", 84, KEY_PX, glyph="enter", state="deed", dark=dark)
    return [*widgets, Widget(enter, 276, bottom, "key_enter", PressButton("submit"))]
