"""Painters of what lists and pages are made of.

Bars, rows, switches, sliders, radio buttons, fields, buttons, keys.
"""

from PIL import Image, ImageDraw

from producer.environments.android_sim.painting.brush import (
    ON,
    WHITE,
    clear,
    ink_on,
    pill,
    plate,
    stamp,
    theme,
    write,
)
from producer.environments.android_sim.painting.glyphs import glyph
from producer.environments.android_sim.screens.widget import SLIDER_LEFT, SLIDER_RIGHT, Look

PLATE_PX = 52
PLATE_X = 8
TEXT_X = 72
SWITCH_W, SWITCH_H = 60, 34
SWITCH_X = 288
SLIDER_Y = 46


def _card(look: Look) -> Image.Image:
    return Image.new("RGB", (look.width, look.height), theme(dark=look.dark).ground)


def _head(picture: Image.Image, look: Look, width_px: int) -> None:
    middle = look.height // 2
    if look.glyph:
        stamp(picture, plate(look.glyph, PLATE_PX, look.color), (PLATE_X, middle - PLATE_PX // 2))
    colors, x = theme(dark=look.dark), TEXT_X if look.glyph else 20
    write(
        picture,
        (x, middle - 11 if look.sub else middle),
        look.label,
        20,
        colors.text,
        width_px=width_px,
    )
    if look.sub:
        write(picture, (x, middle + 13), look.sub, 15, colors.faint, width_px=width_px)


def row(look: Look) -> Image.Image:
    """A row that leads to a page."""
    picture = _card(look)
    _head(picture, look, look.width - TEXT_X - 40)
    if look.state != "plain":
        sign = glyph("chevron", 18, theme(dark=look.dark).faint, WHITE)
        stamp(picture, sign, (look.width - 28, look.height // 2 - 9))
    return picture


def draw_switch(picture: Image.Image, x: int, y: int, look: Look) -> None:
    """A switch of 60 x 34 px: blue with its knob at the right when on, grey with it at the left when off."""
    is_on = look.state == "on"
    stamp(
        picture,
        pill(SWITCH_W, SWITCH_H, SWITCH_H // 2, ON if is_on else theme(dark=look.dark).off),
        (x, y),
    )
    knob = SWITCH_H - 8
    stamp(
        picture,
        pill(knob, knob, knob // 2, WHITE),
        (x + SWITCH_W - knob - 4 if is_on else x + 4, y + 4),
    )


def switch(look: Look) -> Image.Image:
    """A row with a switch."""
    picture = _card(look)
    _head(picture, look, SWITCH_X - TEXT_X - 8)
    draw_switch(picture, SWITCH_X, (look.height - SWITCH_H) // 2, look)
    return picture


def main_switch(look: Look) -> Image.Image:
    """The master switch of a page: a filled bar that changes colour as a whole."""
    picture = _card(look)
    is_on = look.state == "on"
    tint = (
        ((200, 224, 255) if not look.dark else (22, 58, 104))
        if is_on
        else ((222, 224, 229) if not look.dark else (48, 50, 57))
    )
    stamp(picture, pill(look.width - 8, look.height - 8, 26, tint), (4, 4))
    stamp(picture, plate(look.glyph, PLATE_PX, look.color), (14, (look.height - PLATE_PX) // 2))
    write(picture, (80, look.height // 2), look.label, 21, theme(dark=look.dark).text, width_px=196)
    draw_switch(picture, SWITCH_X - 6, (look.height - SWITCH_H) // 2, look)
    return picture


def slider(look: Look) -> Image.Image:
    """A row with a slider; the state is its per cent."""
    picture = _card(look)
    colors = theme(dark=look.dark)
    stamp(
        picture, plate(look.glyph, PLATE_PX, look.color), (PLATE_X, (look.height - PLATE_PX) // 2)
    )
    write(picture, (TEXT_X, 16), look.label, 18, colors.text)
    write(picture, (look.width - 16, 16), f"{look.state}%", 16, colors.faint, anchor="rm")
    knob_x = SLIDER_LEFT + round((SLIDER_RIGHT - SLIDER_LEFT) * int(look.state) / 100)
    stamp(
        picture,
        pill(SLIDER_RIGHT - SLIDER_LEFT + 16, 12, 6, colors.off),
        (SLIDER_LEFT - 8, SLIDER_Y - 6),
    )
    stamp(picture, pill(knob_x - SLIDER_LEFT + 16, 12, 6, ON), (SLIDER_LEFT - 8, SLIDER_Y - 6))
    stamp(picture, pill(30, 30, 15, ON), (knob_x - 15, SLIDER_Y - 15))
    stamp(picture, pill(16, 16, 8, WHITE), (knob_x - 8, SLIDER_Y - 8))
    return picture


def radio(look: Look) -> Image.Image:
    """A row that is one of several choices."""
    picture = _card(look)
    _head(picture, look, 200)
    is_chosen = look.state == "selected"
    x, y = look.width - 52, look.height // 2 - 16
    stamp(picture, pill(32, 32, 16, ON if is_chosen else theme(dark=look.dark).off), (x, y))
    stamp(picture, pill(24, 24, 12, theme(dark=look.dark).ground), (x + 4, y + 4))
    if is_chosen:
        stamp(picture, pill(16, 16, 8, ON), (x + 8, y + 8))
    return picture


def title(look: Look) -> Image.Image:
    """The bar above a page."""
    colors = theme(dark=look.dark)
    picture = Image.new("RGB", (look.width, look.height), colors.card)
    write(
        picture,
        (64 if look.glyph else 20, look.height // 2),
        look.label,
        25,
        colors.text,
        width_px=look.width - 80,
    )
    ImageDraw.Draw(picture).line((0, look.height - 1, look.width, look.height - 1), fill=colors.off)
    return picture


def bare(look: Look) -> Image.Image:
    """A sign alone (the arrow of a title bar, a navigation button)."""
    picture = clear(look.width, look.height)
    size = min(30, look.height - 14)
    sign = glyph(look.glyph, size, look.color, (128, 128, 128))
    picture.alpha_composite(sign, ((look.width - size) // 2, (look.height - size) // 2))
    return picture


def block(look: Look) -> Image.Image:
    """A flat colour."""
    return Image.new("RGB", (look.width, look.height), look.color)


def text(look: Look) -> Image.Image:
    """Text alone, in the middle; the state is its size."""
    picture = clear(look.width, look.height)
    write(
        picture,
        (look.width / 2, look.height / 2),
        look.label,
        int(look.state or 20),
        look.color,
        width_px=look.width - 8,
        anchor="mm",
    )
    return picture


def field(look: Look) -> Image.Image:
    """A text field; with the focus it has a thick blue edge and a cursor."""
    picture = clear(look.width, look.height)
    colors = theme(dark=look.dark)
    has_focus = look.state == "focused"
    radius = look.height // 2
    stamp(picture, pill(look.width, look.height, radius, ON if has_focus else colors.off), (0, 0))
    edge = 3 if has_focus else 1
    stamp(
        picture,
        pill(look.width - 2 * edge, look.height - 2 * edge, radius - edge, colors.card),
        (edge, edge),
    )
    x = 16
    if look.glyph:
        picture.alpha_composite(
            glyph(look.glyph, 24, colors.faint, colors.card), (14, look.height // 2 - 12)
        )
        x = 46
    shown = look.label + ("|" if has_focus else "")
    write(
        picture,
        (x, look.height / 2),
        shown or look.sub,
        19,
        colors.text if shown else colors.faint,
        width_px=look.width - x - 12,
    )
    return picture


def button(look: Look) -> Image.Image:
    """A filled button."""
    picture = clear(look.width, look.height)
    stamp(picture, pill(look.width, look.height, min(look.height // 2, 24), look.color), (0, 0))
    ink = ink_on(look.color)
    if look.glyph and look.label:
        picture.alpha_composite(glyph(look.glyph, 26, ink, look.color), (16, look.height // 2 - 13))
        write(picture, (52, look.height / 2), look.label, 19, ink, width_px=look.width - 60)
    elif look.glyph:
        size = round(min(look.width, look.height) * 0.56)
        picture.alpha_composite(
            glyph(look.glyph, size, ink, look.color),
            ((look.width - size) // 2, (look.height - size) // 2),
        )
    else:
        write(
            picture,
            (look.width / 2, look.height / 2),
            look.label,
            int(look.state or 19),
            ink,
            width_px=look.width - 12,
            anchor="mm",
        )
    return picture


def key(look: Look) -> Image.Image:
    """A key of the keyboard."""
    colors = theme(dark=look.dark)
    picture = Image.new(
        "RGB", (look.width, look.height), (212, 216, 224) if not look.dark else (28, 30, 35)
    )
    stamp(
        picture,
        pill(look.width - 4, look.height - 6, 6, colors.card if look.state != "deed" else ON),
        (2, 3),
    )
    ink = WHITE if look.state == "deed" else colors.text
    if look.glyph:
        stamp(
            picture, glyph(look.glyph, 22, ink, ON), (look.width // 2 - 11, look.height // 2 - 11)
        )
    else:
        write(picture, (look.width / 2, look.height / 2), look.label, 20, ink, anchor="mm")
    return picture
