"""Renderers for widgets of pages: app bars, rows, switches, sliders, fields, buttons, keys."""

from PIL import Image, ImageDraw

from producer.agents.android.sim.painting.drawing import (
    ACCENT,
    WHITE,
    contrasting_color,
    draw_text,
    icon_tile,
    paste,
    rounded_rectangle,
    theme,
    transparent,
)
from producer.agents.android.sim.painting.glyphs import glyph
from producer.agents.android.sim.screens.widget import SLIDER_LEFT, SLIDER_RIGHT, Look

ICON_TILE_PX = 52
ICON_TILE_X = 8
TEXT_X = 72
SWITCH_W, SWITCH_H = 60, 34
SWITCH_X = 288
SLIDER_Y = 46


def _row_background(look: Look) -> Image.Image:
    return Image.new("RGB", (look.width, look.height), theme(dark=look.dark).background)


def _draw_row_label(image: Image.Image, look: Look, width_px: int) -> None:
    middle = look.height // 2
    if look.glyph:
        paste(
            image,
            icon_tile(look.glyph, ICON_TILE_PX, look.color),
            (ICON_TILE_X, middle - ICON_TILE_PX // 2),
        )
    colors, x = theme(dark=look.dark), TEXT_X if look.glyph else 20
    draw_text(
        image,
        (x, middle - 11 if look.sub else middle),
        look.label,
        20,
        colors.text,
        width_px=width_px,
    )
    if look.sub:
        draw_text(image, (x, middle + 13), look.sub, 15, colors.faint, width_px=width_px)


def row(look: Look) -> Image.Image:
    """A row that opens a page (chevron), or plain text in state `plain`."""
    image = _row_background(look)
    _draw_row_label(image, look, look.width - TEXT_X - 40)
    if look.state != "plain":
        icon = glyph("chevron", 18, theme(dark=look.dark).faint, WHITE)
        paste(image, icon, (look.width - 28, look.height // 2 - 9))
    return image


def draw_switch(image: Image.Image, x: int, y: int, look: Look) -> None:
    """A switch, 60 x 34 px: blue, knob on the right when on; grey, knob on the left when off."""
    is_on = look.state == "on"
    paste(
        image,
        rounded_rectangle(
            SWITCH_W, SWITCH_H, SWITCH_H // 2, ACCENT if is_on else theme(dark=look.dark).off
        ),
        (x, y),
    )
    knob = SWITCH_H - 8
    paste(
        image,
        rounded_rectangle(knob, knob, knob // 2, WHITE),
        (x + SWITCH_W - knob - 4 if is_on else x + 4, y + 4),
    )


def switch(look: Look) -> Image.Image:
    """A row with a switch."""
    image = _row_background(look)
    _draw_row_label(image, look, SWITCH_X - TEXT_X - 8)
    draw_switch(image, SWITCH_X, (look.height - SWITCH_H) // 2, look)
    return image


def main_switch(look: Look) -> Image.Image:
    """The main switch of a page: a filled bar whose color shows the state."""
    image = _row_background(look)
    is_on = look.state == "on"
    tint = (
        ((200, 224, 255) if not look.dark else (22, 58, 104))
        if is_on
        else ((222, 224, 229) if not look.dark else (48, 50, 57))
    )
    paste(image, rounded_rectangle(look.width - 8, look.height - 8, 26, tint), (4, 4))
    paste(
        image,
        icon_tile(look.glyph, ICON_TILE_PX, look.color),
        (14, (look.height - ICON_TILE_PX) // 2),
    )
    draw_text(
        image, (80, look.height // 2), look.label, 21, theme(dark=look.dark).text, width_px=196
    )
    draw_switch(image, SWITCH_X - 6, (look.height - SWITCH_H) // 2, look)
    return image


def slider(look: Look) -> Image.Image:
    """A row with a slider; the state is its value in percent."""
    image = _row_background(look)
    colors = theme(dark=look.dark)
    paste(
        image,
        icon_tile(look.glyph, ICON_TILE_PX, look.color),
        (ICON_TILE_X, (look.height - ICON_TILE_PX) // 2),
    )
    draw_text(image, (TEXT_X, 16), look.label, 18, colors.text)
    draw_text(image, (look.width - 16, 16), f"{look.state}%", 16, colors.faint, anchor="rm")
    knob_x = SLIDER_LEFT + round((SLIDER_RIGHT - SLIDER_LEFT) * int(look.state) / 100)
    paste(
        image,
        rounded_rectangle(SLIDER_RIGHT - SLIDER_LEFT + 16, 12, 6, colors.off),
        (SLIDER_LEFT - 8, SLIDER_Y - 6),
    )
    paste(
        image,
        rounded_rectangle(knob_x - SLIDER_LEFT + 16, 12, 6, ACCENT),
        (SLIDER_LEFT - 8, SLIDER_Y - 6),
    )
    paste(image, rounded_rectangle(30, 30, 15, ACCENT), (knob_x - 15, SLIDER_Y - 15))
    paste(image, rounded_rectangle(16, 16, 8, WHITE), (knob_x - 8, SLIDER_Y - 8))
    return image


def radio(look: Look) -> Image.Image:
    """A row with a radio button."""
    image = _row_background(look)
    _draw_row_label(image, look, 200)
    is_selected = look.state == "selected"
    x, y = look.width - 52, look.height // 2 - 16
    paste(
        image,
        rounded_rectangle(32, 32, 16, ACCENT if is_selected else theme(dark=look.dark).off),
        (x, y),
    )
    paste(image, rounded_rectangle(24, 24, 12, theme(dark=look.dark).background), (x + 4, y + 4))
    if is_selected:
        paste(image, rounded_rectangle(16, 16, 8, ACCENT), (x + 8, y + 8))
    return image


def app_bar(look: Look) -> Image.Image:
    """The bar above a page, with its title."""
    colors = theme(dark=look.dark)
    image = Image.new("RGB", (look.width, look.height), colors.card)
    draw_text(
        image,
        (64 if look.glyph else 20, look.height // 2),
        look.label,
        25,
        colors.text,
        width_px=look.width - 80,
    )
    ImageDraw.Draw(image).line((0, look.height - 1, look.width, look.height - 1), fill=colors.off)
    return image


def icon(look: Look) -> Image.Image:
    """An icon alone (the arrow of an app bar, a navigation button)."""
    image = transparent(look.width, look.height)
    size = min(30, look.height - 14)
    icon = glyph(look.glyph, size, look.color, (128, 128, 128))
    image.alpha_composite(icon, ((look.width - size) // 2, (look.height - size) // 2))
    return image


def block(look: Look) -> Image.Image:
    """A rectangle of one color."""
    return Image.new("RGB", (look.width, look.height), look.color)


def text(look: Look) -> Image.Image:
    """Centered text; the state is its size in pixels."""
    image = transparent(look.width, look.height)
    draw_text(
        image,
        (look.width / 2, look.height / 2),
        look.label,
        int(look.state or 20),
        look.color,
        width_px=look.width - 8,
        anchor="mm",
    )
    return image


def field(look: Look) -> Image.Image:
    """A text field; a thick blue border and a cursor when focused."""
    image = transparent(look.width, look.height)
    colors = theme(dark=look.dark)
    has_focus = look.state == "focused"
    radius = look.height // 2
    paste(
        image,
        rounded_rectangle(look.width, look.height, radius, ACCENT if has_focus else colors.off),
        (0, 0),
    )
    edge = 3 if has_focus else 1
    paste(
        image,
        rounded_rectangle(
            look.width - 2 * edge, look.height - 2 * edge, radius - edge, colors.card
        ),
        (edge, edge),
    )
    x = 16
    if look.glyph:
        image.alpha_composite(
            glyph(look.glyph, 24, colors.faint, colors.card), (14, look.height // 2 - 12)
        )
        x = 46
    shown = look.label + ("|" if has_focus else "")
    draw_text(
        image,
        (x, look.height / 2),
        shown or look.sub,
        19,
        colors.text if shown else colors.faint,
        width_px=look.width - x - 12,
    )
    return image


def button(look: Look) -> Image.Image:
    """A filled button."""
    image = transparent(look.width, look.height)
    paste(
        image,
        rounded_rectangle(look.width, look.height, min(look.height // 2, 24), look.color),
        (0, 0),
    )
    foreground = contrasting_color(look.color)
    if look.glyph and look.label:
        image.alpha_composite(
            glyph(look.glyph, 26, foreground, look.color), (16, look.height // 2 - 13)
        )
        draw_text(
            image, (52, look.height / 2), look.label, 19, foreground, width_px=look.width - 60
        )
    elif look.glyph:
        size = round(min(look.width, look.height) * 0.56)
        image.alpha_composite(
            glyph(look.glyph, size, foreground, look.color),
            ((look.width - size) // 2, (look.height - size) // 2),
        )
    else:
        draw_text(
            image,
            (look.width / 2, look.height / 2),
            look.label,
            int(look.state or 19),
            foreground,
            width_px=look.width - 12,
            anchor="mm",
        )
    return image


def key(look: Look) -> Image.Image:
    """A key of the keyboard."""
    colors = theme(dark=look.dark)
    image = Image.new(
        "RGB", (look.width, look.height), (212, 216, 224) if not look.dark else (28, 30, 35)
    )
    paste(
        image,
        rounded_rectangle(
            look.width - 4, look.height - 6, 6, colors.card if look.state != "deed" else ACCENT
        ),
        (2, 3),
    )
    foreground = WHITE if look.state == "deed" else colors.text
    if look.glyph:
        paste(
            image,
            glyph(look.glyph, 22, foreground, ACCENT),
            (look.width // 2 - 11, look.height // 2 - 11),
        )
    else:
        draw_text(image, (look.width / 2, look.height / 2), look.label, 20, foreground, anchor="mm")
    return image
