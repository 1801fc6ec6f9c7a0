"""Screens that cover any app: notification shade, quick settings, recents, and screen off."""

from producer.agents.android.sim.screens.parts import WHITE_TEXT, bars, scrolled, text
from producer.agents.android.sim.screens.settings import percent_of
from producer.agents.android.sim.screens.widget import (
    NAV_PX,
    NAV_TOP_PX,
    WIDTH_PX,
    Look,
    MoveSlider,
    Scene,
    Widget,
    do,
)
from producer.agents.android.sim.state.apps import BY_PACKAGE, Color
from producer.agents.android.sim.state.phone import MAX_BRIGHTNESS, Phone
from producer.agents.android.sim.state.settings_tree import AMBER, SWITCHES

SHADE: Color = (26, 28, 34)
YELLOW: Color = (255, 214, 64)
NUM_COMPACT_TILES = 4
CARD_PX = 150
CARDS_TOP_PX, CARDS_BOTTOM_PX = 32, 518
RECENTS_BACKGROUND: Color = (58, 66, 92)
SHORT_LABELS = {
    "wifi": "Wi-Fi",
    "bluetooth": "Bluetooth",
    "dnd": "Silent",
    "auto_rotate": "Rotate",
    "location": "Location",
}


def _scene(
    phone: Phone, background: Color, widgets: list[Widget], view: str, max_scroll: int = 0
) -> Scene:
    over = bars(phone, text_color=WHITE_TEXT)
    return Scene(background, (*widgets, *over), max_scroll, description=view)


def _tile(phone: Phone, name: str, box: tuple[int, int, int, int], *, with_label: bool) -> Widget:
    """A tile in `box` (x, y, width, height)."""
    x, y, width, height = box
    row = SWITCHES[name]
    state = "on" if phone.get(row.namespace, row.key) == row.on else "off"
    label = SHORT_LABELS.get(name, row.label) if with_label else ""
    look = Look("tile", width, height, label, "", row.glyph, row.color, state)
    return look.at(x, y, f"{name}_tile", do(Phone.toggle, row))


def notifications(phone: Phone) -> Scene:
    """The half-open shade: four tiles and the notifications."""
    tiles = phone.appearance.tile_order[:NUM_COMPACT_TILES]
    widgets = [
        _tile(phone, name, (10 + index * 87, 40, 78, 72), with_label=False)
        for index, name in enumerate(tiles)
    ]
    for index, note in enumerate(phone.notifications):
        app = BY_PACKAGE[note.package]
        look = Look("notification", WIDTH_PX - 20, 76, note.title, note.text, app.glyph, app.color)
        effect = do(Phone.open_notification, index)
        widgets.append(look.at(10, 130 + index * 84, f"{app.key}_notification", effect))
    if phone.notifications:
        clear, y = Look("button", 180, 60, "Clear all", color=YELLOW), len(phone.notifications) * 84
        widgets.append(clear.at(90, 134 + y, "clear_all", do(Phone.clear_notifications)))
    else:
        widgets.append(text("No notifications", (190, 195, 205), 20, y=200, height=60))
    return _scene(phone, SHADE, widgets, "notification_stack_scroller")


def quick_settings(phone: Phone) -> Scene:
    """The fully open shade: all tiles with labels, and the brightness slider."""
    widgets = [text("Quick settings", WHITE_TEXT, 22, y=32, height=36)]
    for index, name in enumerate(phone.appearance.tile_order):
        row, column = divmod(index, 2)
        box = (12 + column * 172, 76 + row * 94, 164, 84)
        widgets.append(_tile(phone, name, box, with_label=True))
    percent = str(percent_of(phone.get("system", "screen_brightness"), MAX_BRIGHTNESS))
    look = Look("slider", WIDTH_PX, 68, "Brightness", "", "sun", AMBER, percent, dark=True)
    effect = MoveSlider("system", "screen_brightness")
    widgets.append(look.at(0, 470, "brightness_slider", effect))
    return _scene(phone, (16, 17, 21), widgets, "quick_settings_panel")


def recents(phone: Phone) -> Scene:
    """Recently used apps, newest first."""
    cards = []
    for index, package in enumerate(phone.recents):
        app = BY_PACKAGE[package]
        look = Look("card", 310, CARD_PX, app.label, glyph=app.glyph, color=app.color)
        y = 6 + index * (CARD_PX + 10)
        cards.append(look.at(25, y, f"{app.key}_card", do(Phone.launch, package)))
    widgets, max_scroll = scrolled(phone, cards, CARDS_TOP_PX, CARDS_BOTTOM_PX)
    bottom_px = NAV_TOP_PX - CARDS_BOTTOM_PX + NAV_PX
    for y, height in ((0, CARDS_TOP_PX), (CARDS_BOTTOM_PX, bottom_px)):
        widgets.append(Look("block", WIDTH_PX, height, color=RECENTS_BACKGROUND).at(0, y))
    if not phone.recents:
        widgets.append(text("No recent apps", (210, 215, 225), 20, y=260, height=60))
    shot = Look("button", 160, 56, "Screenshot", glyph="shot", color=WHITE_TEXT, state="17")
    clear = Look("button", 160, 56, "Clear all", color=YELLOW)
    widgets.append(shot.at(14, 528, "take_screenshot", do(_take_screenshot)))
    widgets.append(clear.at(186, 528, "clear_recents", do(Phone.clear_recents)))
    return _scene(phone, RECENTS_BACKGROUND, widgets, "overview_panel", max_scroll)


def _take_screenshot(phone: Phone) -> None:
    phone.overlay = None
    phone.take_screenshot()


def asleep() -> Scene:
    """A black screen."""
    return Scene((0, 0, 0), ())
