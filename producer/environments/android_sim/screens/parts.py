"""Parts that many screens share.

The status bar, the navigation bar, title bars, scrolled lists, the keyboard.
"""

from collections.abc import Sequence

from producer.environments.android_sim.screens.widget import (
    NAV_PX,
    NAV_TOP_PX,
    STATUS_PX,
    WIDTH_PX,
    Look,
    Widget,
)
from producer.environments.android_sim.state.apps import Color
from producer.environments.android_sim.state.effects import Focus, Key, Press
from producer.environments.android_sim.state.phone import Phone

TITLE_PX = 56
CONTENT_TOP_PX = STATUS_PX + TITLE_PX
ROW_PX = 64
KEY_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
KEY_PX = 48
KEYBOARD_TOP_PX = NAV_TOP_PX - 4 * KEY_PX
BLACK_INK: Color = (40, 42, 48)
WHITE_INK: Color = (255, 255, 255)
NAV_BUTTONS = (("back", "back"), ("circle", "home"), ("square", "recents"))


def is_dark(phone: Phone) -> bool:
    """Whether the dark theme is in force."""
    return phone.get("secure", "ui_night_mode") == "2"


def bars(phone: Phone, *, ink: Color, nav_ground: Color | None = None) -> list[Widget]:
    """The status bar and the three navigation buttons; they lie above everything."""
    signs = (
        ("minus", "zen_mode"),
        ("airplane", "airplane_mode_on"),
        ("bluetooth", "bluetooth_on"),
        ("wifi", "wifi_on"),
    )
    shown = " ".join(sign for sign, key in signs if phone.get("global", key) not in {"0", "null"})
    percent = f"{phone.look.battery_percent}%"
    widgets = []
    if nav_ground is not None:
        widgets.append(Widget(Look("block", WIDTH_PX, NAV_PX, color=nav_ground), 0, NAV_TOP_PX))
        widgets.append(Widget(Look("block", WIDTH_PX, STATUS_PX, color=nav_ground), 0, 0))
    widgets.append(
        Widget(
            Look("status", WIDTH_PX, STATUS_PX, phone.look.clock, percent, color=ink, state=shown),
            0,
            0,
        )
    )
    width = WIDTH_PX // len(NAV_BUTTONS)
    for index, (sign, deed) in enumerate(NAV_BUTTONS):
        look = Look("bare", width, NAV_PX, glyph=sign, color=ink)
        widgets.append(Widget(look, index * width, NAV_TOP_PX, f"nav_{deed}", Press(deed)))
    return widgets


def page_bars(phone: Phone, title: str, *, with_arrow: bool) -> list[Widget]:
    """Title bar, status bar and navigation bar of a page."""
    dark = is_dark(phone)
    ink = WHITE_INK if dark else BLACK_INK
    ground: Color = (38, 40, 47) if dark else WHITE_INK
    widgets = [
        Widget(
            Look(
                "title", WIDTH_PX, TITLE_PX, title, glyph="arrow" if with_arrow else "", dark=dark
            ),
            0,
            STATUS_PX,
        )
    ]
    if with_arrow:
        widgets.append(
            Widget(
                Look("bare", 56, TITLE_PX, glyph="arrow", color=ink),
                0,
                STATUS_PX,
                "back_arrow",
                Press("back"),
            )
        )
    return widgets + bars(phone, ink=ink, nav_ground=ground)


def scrolled(
    phone: Phone, parts: Sequence[Widget], top_px: int, bottom_px: int
) -> tuple[list[Widget], int]:
    """The parts of a list (placed from y = 0) that are visible between top and bottom, and how far the list can be scrolled."""
    height = max((part.y + part.look.height for part in parts), default=0)
    max_scroll = max(0, height - (bottom_px - top_px))
    offset = min(phone.scroll_px.get(phone.screen, 0), max_scroll)
    shown = []
    for part in parts:
        y = part.y - offset + top_px
        if y + part.look.height > top_px and y < bottom_px:
            shown.append(
                Widget(part.look, part.x, y, part.name, part.effect, part.held, part.resource_id)
            )
    return shown, max_scroll


def text_field(
    phone: Phone,
    name: str,
    box: tuple[int, int, int, int],
    hint: str,
    *,
    sign: str = "",
    resource_id: str = "",
    idle_text: str = "",
) -> Widget:
    """A text field at x, y, width, height.

    Without the focus it may show another text than the one being typed.
    """
    x, y, width, height = box
    state = "focused" if phone.focus == name else ""
    shown = idle_text if idle_text and not state else phone.fields.get(name, "")
    look = Look("field", width, height, shown, hint, sign, state=state, dark=is_dark(phone))
    return Widget(look, x, y, name, Focus(name), resource_id=resource_id)


def keyboard(phone: Phone) -> list[Widget]:
    """The keyboard, when a text field has the focus."""
    if phone.focus is None:
        return []
    dark, name = is_dark(phone), phone.focus
    ground: Color = (28, 30, 35) if dark else (212, 216, 224)
    widgets = [Widget(Look("block", WIDTH_PX, 4 * KEY_PX, color=ground), 0, KEYBOARD_TOP_PX)]
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
                    Key(letter, name),
                )
            )
    bottom = KEYBOARD_TOP_PX + 3 * KEY_PX
    specials = (
        (0, 72, "key_erase", "", "erase", "backspace"),
        (72, 144, "key_space", "space", "", " "),
        (216, 60, "key_dot", ".", "", "."),
    )
    for x, width, key_name, label, sign, character in specials:
        widgets.append(
            Widget(
                Look("key", width, KEY_PX, label, glyph=sign, dark=dark),
                x,
                bottom,
                key_name,
                Key(character, name),
            )
        )
    enter = Look("key", 84, KEY_PX, glyph="enter", state="deed", dark=dark)
    return [*widgets, Widget(enter, 276, bottom, "key_enter", Press("submit"))]
