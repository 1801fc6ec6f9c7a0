"""How each kind of widget is drawn."""

from collections.abc import Callable
from functools import lru_cache

from PIL import Image

from producer.agents.android.sim.painting.drawing import (
    ACCENT,
    DARK,
    LIGHT,
    WHITE,
    Canvas,
    contrasting_color,
    font,
)
from producer.agents.android.sim.screens.widget import SLIDER_LEFT, SLIDER_RIGHT, Look
from producer.agents.android.sim.state.apps import Color

ICON_TILE_PX = 52
ICON_TILE_X = 8
TEXT_X = 72
SWITCH_W, SWITCH_H = 60, 34
SWITCH_X = 288
SLIDER_Y = 46
ICON_PX = 66
SHADOW = (20, 24, 32)
MAIN_SWITCH_COLORS: dict[tuple[bool, bool], Color] = {
    (True, False): (200, 224, 255),
    (True, True): (22, 58, 104),
    (False, False): (222, 224, 229),
    (False, True): (48, 50, 57),
}
"""Maps (is on, is dark) to the bar's color."""


def _row(look: Look) -> Canvas:
    return Canvas(look, (DARK if look.dark else LIGHT).background)


def _draw_row_label(canvas: Canvas, look: Look, width_px: int) -> None:
    middle, colors = look.height // 2, canvas.theme
    if look.glyph:
        canvas.tile(look, ICON_TILE_PX, x=ICON_TILE_X)
    x, y = TEXT_X if look.glyph else 20, middle - 11 if look.sub else middle
    canvas.text((x, y), look.label, 20, colors.text, width_px=width_px)
    if look.sub:
        canvas.text((x, middle + 13), look.sub, 15, colors.faint, width_px=width_px)


def row(look: Look) -> Canvas:
    """A row that opens a page (chevron), or plain text in state `plain`."""
    canvas = _row(look)
    _draw_row_label(canvas, look, look.width - TEXT_X - 40)
    if look.state != "plain":
        canvas.glyph("chevron", 18, canvas.theme.faint, WHITE, x=look.width - 28)
    return canvas


def _draw_switch(canvas: Canvas, x: int, look: Look) -> None:
    """A switch, 60 x 34 px: blue, knob on the right when on; grey, knob on the left when off."""
    is_on, y, knob = look.state == "on", (look.height - SWITCH_H) // 2, SWITCH_H - 8
    color = ACCENT if is_on else canvas.theme.off
    canvas.box(color, SWITCH_H // 2, (x, y), (SWITCH_W, SWITCH_H))
    knob_x = x + SWITCH_W - knob - 4 if is_on else x + 4
    canvas.box(WHITE, knob // 2, (knob_x, y + 4), (knob, knob))


def switch(look: Look) -> Canvas:
    """A row with a switch."""
    canvas = _row(look)
    _draw_row_label(canvas, look, SWITCH_X - TEXT_X - 8)
    _draw_switch(canvas, SWITCH_X, look)
    return canvas


def main_switch(look: Look) -> Canvas:
    """The main switch of a page: a filled bar whose color shows the state."""
    canvas = _row(look)
    tint = MAIN_SWITCH_COLORS[look.state == "on", look.dark]
    canvas.box(tint, 26, (4, 4), (look.width - 8, look.height - 8))
    canvas.tile(look, ICON_TILE_PX, x=14)
    canvas.text((80, look.height // 2), look.label, 21, canvas.theme.text, width_px=196)
    _draw_switch(canvas, SWITCH_X - 6, look)
    return canvas


def slider(look: Look) -> Canvas:
    """A row with a slider; the state is its value in percent."""
    canvas = _row(look)
    colors, track, left = canvas.theme, SLIDER_RIGHT - SLIDER_LEFT, SLIDER_LEFT - 8
    canvas.tile(look, ICON_TILE_PX, x=ICON_TILE_X)
    canvas.text((TEXT_X, 16), look.label, 18, colors.text)
    canvas.text((look.width - 16, 16), f"{look.state}%", 16, colors.faint, anchor="rm")
    knob_x = SLIDER_LEFT + round(track * int(look.state) / 100)
    canvas.box(colors.off, 6, (left, SLIDER_Y - 6), (track + 16, 12))
    canvas.box(ACCENT, 6, (left, SLIDER_Y - 6), (knob_x - SLIDER_LEFT + 16, 12))
    canvas.box(ACCENT, 15, (knob_x - 15, SLIDER_Y - 15), (30, 30))
    canvas.box(WHITE, 8, (knob_x - 8, SLIDER_Y - 8), (16, 16))
    return canvas


def radio(look: Look) -> Canvas:
    """A row with a radio button."""
    canvas = _row(look)
    _draw_row_label(canvas, look, 200)
    is_selected, colors = look.state == "selected", canvas.theme
    x, y = look.width - 52, look.height // 2 - 16
    canvas.box(ACCENT if is_selected else colors.off, 16, (x, y), (32, 32))
    canvas.box(colors.background, 12, (x + 4, y + 4), (24, 24))
    if is_selected:
        canvas.box(ACCENT, 8, (x + 8, y + 8), (16, 16))
    return canvas


def app_bar(look: Look) -> Canvas:
    """The bar above a page, with its title."""
    colors = DARK if look.dark else LIGHT
    canvas = Canvas(look, colors.card)
    at = (64 if look.glyph else 20, look.height // 2)
    canvas.text(at, look.label, 25, colors.text, width_px=look.width - 80)
    canvas.draw.line((0, look.height - 1, look.width, look.height - 1), fill=colors.off)
    return canvas


def icon(look: Look) -> Canvas:
    """An icon alone (the arrow of an app bar, a navigation button)."""
    canvas = Canvas(look)
    canvas.glyph(look.glyph, min(30, look.height - 14), look.color, (128, 128, 128))
    return canvas


def block(look: Look) -> Canvas:
    """A rectangle of one color."""
    return Canvas(look, look.color)


def text(look: Look) -> Canvas:
    """Centered text; the state is its size in pixels."""
    canvas = Canvas(look)
    canvas.centered_text(look.label, int(look.state), look.color, width_px=look.width - 8)
    return canvas


def field(look: Look) -> Canvas:
    """A text field; a thick blue border and a cursor when focused."""
    canvas = Canvas(look)
    colors, has_focus, radius = canvas.theme, look.state == "focused", look.height // 2
    canvas.fill(ACCENT if has_focus else colors.off, radius)
    edge = 3 if has_focus else 1
    inner = (look.width - 2 * edge, look.height - 2 * edge)
    canvas.box(colors.card, radius - edge, (edge, edge), inner)
    x = 16
    if look.glyph:
        canvas.glyph(look.glyph, 24, colors.faint, colors.card, x=14)
        x = 46
    shown = look.label + ("|" if has_focus else "")
    color = colors.text if shown else colors.faint
    canvas.text((x, radius), shown or look.sub, 19, color, width_px=look.width - x - 12)
    return canvas


def button(look: Look) -> Canvas:
    """A filled button."""
    canvas = Canvas(look)
    canvas.fill(look.color, min(look.height // 2, 24))
    color = contrasting_color(look.color)
    if look.glyph and look.label:
        canvas.glyph(look.glyph, 26, color, look.color, x=16)
        canvas.text((52, look.height / 2), look.label, 19, color, width_px=look.width - 60)
    elif look.glyph:
        canvas.glyph(look.glyph, round(min(look.width, look.height) * 0.56), color, look.color)
    else:
        canvas.centered_text(look.label, int(look.state or 19), color, width_px=look.width - 12)
    return canvas


def key(look: Look) -> Canvas:
    """A key of the keyboard."""
    canvas = Canvas(look, (28, 30, 35) if look.dark else (212, 216, 224))
    colors, is_deed = canvas.theme, look.state == "deed"
    canvas.box(ACCENT if is_deed else colors.card, 6, (2, 3), (look.width - 4, look.height - 6))
    color = WHITE if is_deed else colors.text
    if look.glyph:
        canvas.glyph(look.glyph, 22, color, ACCENT)
    else:
        canvas.centered_text(look.label, 20, color)
    return canvas


def _draw_text_on_wallpaper(canvas: Canvas, y: float, text: str, size_px: int) -> None:
    canvas.draw.text(
        (canvas.width / 2, y),
        text,
        font=font(size_px),
        fill=WHITE,
        anchor="mm",
        stroke_width=1,
        stroke_fill=SHADOW,
    )


def app_icon(look: Look) -> Canvas:
    """A launcher icon with its label below; no label in the dock."""
    canvas = Canvas(look)
    canvas.tile(look, ICON_PX, y=2 if look.label else None)
    at = (look.width / 2, ICON_PX + 14)
    if look.label and look.state == "drawer":
        canvas.text(at, look.label, 14, canvas.theme.text, width_px=look.width, anchor="mm")
    elif look.label:
        _draw_text_on_wallpaper(canvas, ICON_PX + 14, look.label, 14)
    return canvas


def clock(look: Look) -> Canvas:
    """The clock of the home screen."""
    canvas = Canvas(look)
    _draw_text_on_wallpaper(canvas, 24, look.label, 40)
    _draw_text_on_wallpaper(canvas, 57, look.sub, 16)
    return canvas


def page_dots(look: Look) -> Canvas:
    """Page indicator; state `1/3` is the first of three pages."""
    canvas = Canvas(look)
    current, total = (int(part) for part in look.state.split("/"))
    left = look.width // 2 - total * 9
    for number in range(total):
        size, color = (10, WHITE) if number + 1 == current else (6, (200, 204, 212))
        canvas.box(color, size // 2, (left + number * 18, 7 - size // 2), (size, size))
    return canvas


def status_bar(look: Look) -> Canvas:
    """Clock on the left; status icons (state, space-separated) and battery on the right."""
    canvas = Canvas(look)
    middle = look.height // 2
    canvas.text((12, middle), look.label, 15, look.color)
    canvas.text((look.width - 10, middle), look.sub, 14, look.color, anchor="rm")
    for index, name in enumerate(("battery", *look.state.split())):
        canvas.glyph(name, 16, look.color, (120, 120, 120), x=look.width - 66 - 22 * index)
    return canvas


def tile(look: Look) -> Canvas:
    """A quick settings tile: blue when on, grey when off."""
    canvas = Canvas(look)
    is_on, middle = look.state == "on", look.height / 2
    canvas.fill(ACCENT if is_on else (72, 76, 86), 22)
    if look.label:
        canvas.tile(look, 48, x=8, is_round=True)
        canvas.text((64, middle - 11), look.label, 16, WHITE, width_px=look.width - 70)
        canvas.text((64, middle + 12), "On" if is_on else "Off", 14, (225, 230, 240))
    else:
        canvas.tile(look, 52, is_round=True)
    return canvas


def notification(look: Look) -> Canvas:
    """A notification."""
    canvas = Canvas(look)
    middle, width = look.height / 2, look.width - 84
    canvas.fill((58, 61, 70), 18)
    canvas.tile(look, 50, x=10)
    canvas.text((72, middle - 12), look.label, 18, WHITE, width_px=width)
    canvas.text((72, middle + 13), look.sub, 15, (190, 195, 205), width_px=width)
    return canvas


def card(look: Look) -> Canvas:
    """An app in recents: its icon and name above a preview."""
    canvas = Canvas(look)
    canvas.fill((236, 238, 243), 22)
    canvas.tile(look, 60, x=12, y=10)
    canvas.text((86, 40), look.label, 23, (24, 26, 31), width_px=look.width - 100)
    preview = look.color if look.color != WHITE else (120, 170, 250)
    canvas.box(preview, 12, (12, 80), (look.width - 24, look.height - 90))
    return canvas


def large_icon(look: Look) -> Canvas:
    """A large icon in the middle of a page."""
    canvas = Canvas(look)
    canvas.tile(look, min(look.width, look.height))
    return canvas


def photo(look: Look) -> Canvas:
    """A photo: hills under a sky of the given color."""
    width, height = look.width, look.height
    red, green, blue = look.color
    canvas = Canvas(look, look.color)
    canvas.draw.ellipse(
        (width * 0.62, height * 0.12, width * 0.82, height * 0.12 + width * 0.2),
        fill=(255, 241, 190),
    )
    canvas.draw.polygon(
        (0, height, 0, height * 0.7, width * 0.35, height * 0.4, width * 0.8, height),
        fill=(red // 2, green // 2, blue // 2),
    )
    canvas.draw.polygon(
        (width * 0.4, height, width * 0.75, height * 0.5, width, height * 0.72, width, height),
        fill=(red // 3, green // 3, blue // 3),
    )
    return canvas


def message_bubble(look: Look) -> Canvas:
    """A text message."""
    canvas = Canvas(look)
    canvas.fill(look.color, 18)
    canvas.text((16, look.height / 2), look.label, 18, WHITE, width_px=look.width - 28)
    return canvas


def shutter(look: Look) -> Canvas:
    """The camera's shutter button."""
    canvas = Canvas(look)
    canvas.fill(WHITE, look.width // 2)
    inner = (look.width - 12, look.height - 12)
    canvas.box((225, 45, 45), look.width // 2 - 6, (6, 6), inner)
    return canvas


_KINDS: tuple[Callable[[Look], Canvas], ...] = (
    *(row, switch, main_switch, slider, radio, app_bar, icon, block, text, field, button, key),
    *(app_icon, clock, page_dots, status_bar, tile, notification, card, large_icon, photo),
    *(message_bubble, shutter),
)
RENDERERS = {draw.__name__: draw for draw in _KINDS}
"""Maps the kind of a look to the function that draws it."""


@lru_cache(maxsize=1024)
def render_widget(look: Look) -> Image.Image:
    """The widget's image: RGB, or RGBA if the widget is transparent. Cached."""
    return RENDERERS[look.kind](look).image
