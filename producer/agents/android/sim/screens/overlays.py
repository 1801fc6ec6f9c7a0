"""Screens that cover any app: notification shade, quick settings, recents, and screen off."""

from producer.agents.android.sim.screens.parts import WHITE_TEXT, bars, scrolled
from producer.agents.android.sim.screens.settings import percent_of
from producer.agents.android.sim.screens.widget import (
    NAV_PX,
    NAV_TOP_PX,
    SLIDER_LEFT,
    SLIDER_RIGHT,
    WIDTH_PX,
    Look,
    Scene,
    Widget,
)
from producer.agents.android.sim.state.apps import BY_PACKAGE
from producer.agents.android.sim.state.effects import (
    LaunchApp,
    MoveSlider,
    OpenNotification,
    PressButton,
    ToggleSwitch,
)
from producer.agents.android.sim.state.phone import MAX_BRIGHTNESS, Phone
from producer.agents.android.sim.state.settings_tree import SWITCHES

SHADE = (26, 28, 34)
NUM_COMPACT_TILES = 4
CARD_PX = 150
CARDS_TOP_PX, CARDS_BOTTOM_PX = 32, 518
RECENTS_BACKGROUND = (58, 66, 92)
SHORT_LABELS = {
    "wifi": "Wi-Fi",
    "bluetooth": "Bluetooth",
    "dnd": "Silent",
    "auto_rotate": "Rotate",
    "location": "Location",
}


def _tile(phone: Phone, name: str, width: int, height: int, *, with_label: bool) -> Look:
    row = SWITCHES[name]
    state = "on" if phone.get(row.namespace, row.key) == row.on else "off"
    label = SHORT_LABELS.get(name, row.label) if with_label else ""
    return Look("tile", width, height, label, "", row.glyph, row.color, state)


def notifications(phone: Phone) -> Scene:
    """The half-open shade: four tiles and the notifications."""
    widgets = []
    for index, name in enumerate(phone.appearance.tile_order[:NUM_COMPACT_TILES]):
        look = _tile(phone, name, 78, 72, with_label=False)
        widgets.append(
            Widget(look, 10 + index * 87, 40, f"{name}_tile", ToggleSwitch(SWITCHES[name]))
        )
    for index, note in enumerate(phone.notifications):
        app = BY_PACKAGE[note.package]
        look = Look("notification", WIDTH_PX - 20, 76, note.title, note.text, app.glyph, app.color)
        widgets.append(
            Widget(look, 10, 130 + index * 84, f"{app.key}_notification", OpenNotification(index))
        )
    if phone.notifications:
        y = 134 + len(phone.notifications) * 84
        look = Look("button", 180, 60, "Clear all", color=(255, 214, 64))
        widgets.append(Widget(look, 90, y, "clear_all", PressButton("clear_notifications")))
    else:
        widgets.append(
            Widget(Look("text", WIDTH_PX, 60, "No notifications", color=(190, 195, 205)), 0, 200)
        )
    return Scene(
        SHADE,
        (*widgets, *bars(phone, text_color=WHITE_TEXT)),
        description="notification_stack_scroller",
    )


def quick_settings(phone: Phone) -> Scene:
    """The fully open shade: all tiles with labels, and the brightness slider."""
    widgets = [
        Widget(Look("text", WIDTH_PX, 36, "Quick settings", color=WHITE_TEXT, state="22"), 0, 32)
    ]
    for index, name in enumerate(phone.appearance.tile_order):
        row, column = divmod(index, 2)
        look = _tile(phone, name, 164, 84, with_label=True)
        widgets.append(
            Widget(
                look, 12 + column * 172, 76 + row * 94, f"{name}_tile", ToggleSwitch(SWITCHES[name])
            )
        )
    percent = percent_of(phone.get("system", "screen_brightness"), MAX_BRIGHTNESS)
    look = Look(
        "slider", WIDTH_PX, 68, "Brightness", "", "sun", (249, 178, 18), str(percent), dark=True
    )
    effect = MoveSlider("system", "screen_brightness", SLIDER_LEFT, SLIDER_RIGHT)
    widgets.append(Widget(look, 0, 470, "brightness_slider", effect))
    return Scene(
        (16, 17, 21),
        (*widgets, *bars(phone, text_color=WHITE_TEXT)),
        description="quick_settings_panel",
    )


def recents(phone: Phone) -> Scene:
    """Recently used apps, newest first."""
    cards = []
    for index, package in enumerate(phone.recents):
        app = BY_PACKAGE[package]
        look = Look("card", 310, CARD_PX, app.label, glyph=app.glyph, color=app.color)
        cards.append(
            Widget(look, 25, 6 + index * (CARD_PX + 10), f"{app.key}_card", LaunchApp(package))
        )
    widgets, max_scroll = scrolled(phone, cards, CARDS_TOP_PX, CARDS_BOTTOM_PX)
    widgets.append(Widget(Look("block", WIDTH_PX, CARDS_TOP_PX, color=RECENTS_BACKGROUND), 0, 0))
    widgets.append(
        Widget(
            Look(
                "block", WIDTH_PX, NAV_TOP_PX - CARDS_BOTTOM_PX + NAV_PX, color=RECENTS_BACKGROUND
            ),
            0,
            CARDS_BOTTOM_PX,
        )
    )
    if not phone.recents:
        widgets.append(
            Widget(Look("text", WIDTH_PX, 60, "No recent apps", color=(210, 215, 225)), 0, 260)
        )
    shot = Look("button", 160, 56, "Screenshot", glyph="shot", color=(255, 255, 255), state="17")
    widgets.append(Widget(shot, 14, 528, "take_screenshot", PressButton("take_screenshot")))
    widgets.append(
        Widget(
            Look("button", 160, 56, "Clear all", color=(255, 214, 64)),
            186,
            528,
            "clear_recents",
            PressButton("clear_recents"),
        )
    )
    return Scene(
        RECENTS_BACKGROUND,
        (*widgets, *bars(phone, text_color=WHITE_TEXT)),
        max_scroll,
        "overview_panel",
    )


def asleep() -> Scene:
    """A black screen."""
    return Scene((0, 0, 0), ())
