"""The few strokes every painter uses.

Fonts, colours of the light and the dark theme, text that fits, discs and plates with a sign.
"""

from functools import lru_cache
from typing import NamedTuple

from PIL import Image, ImageDraw, ImageFont

from producer.environments.android_sim.painting.glyphs import glyph
from producer.environments.android_sim.state.apps import Color

ON: Color = (0, 122, 255)
"""Of every switch, tile and slider that is on."""
OFF_LIGHT: Color = (190, 194, 202)
OFF_DARK: Color = (88, 92, 102)
WHITE: Color = (255, 255, 255)
BLACK: Color = (20, 22, 26)
LONGEST_TEXT = 120
"""Characters; more never fit a screen, and measuring them would take longer than drawing it."""
BRIGHT_GROUND = 185
"""Luminance (0-255) above which a sign is drawn dark."""


class Theme(NamedTuple):
    """Colours of the light or the dark theme."""

    ground: Color
    card: Color
    text: Color
    faint: Color
    off: Color


LIGHT = Theme((246, 247, 250), WHITE, (24, 26, 31), (98, 103, 114), OFF_LIGHT)
DARK = Theme((16, 17, 21), (38, 40, 47), (236, 238, 242), (158, 163, 174), OFF_DARK)


def theme(*, dark: bool) -> Theme:
    """The colours in force."""
    return DARK if dark else LIGHT


@lru_cache(maxsize=32)
def font(size_px: int) -> ImageFont.FreeTypeFont:
    """Pillow's own font, which every machine has."""
    made = ImageFont.load_default(size_px)
    assert isinstance(made, ImageFont.FreeTypeFont)  # noqa: S101  # Pillow without FreeType cannot draw text at a size
    return made


def fitted(text: str, size_px: int, width_px: int) -> str:
    """The text, shortened with dots to fit the width."""
    if font(size_px).getlength(text) <= width_px:
        return text
    while text and font(size_px).getlength(text + "...") > width_px:
        text = text[:-1]
    return text.rstrip() + "..."


def write(
    picture: Image.Image,
    at: tuple[float, float],
    text: str,
    size_px: int,
    color: Color,
    *,
    width_px: int = 1000,
    anchor: str = "lm",
) -> None:
    """Text at a point; the anchor is Pillow's (`lm`: left, middle)."""
    line = text[:LONGEST_TEXT].replace("\n", " ")
    pen = ImageDraw.Draw(picture)
    pen.text(at, fitted(line, size_px, width_px), font=font(size_px), fill=color, anchor=anchor)


@lru_cache(maxsize=512)
def plate(name: str, size_px: int, color: Color, *, is_round: bool = False) -> Image.Image:
    """A coloured rounded square (or disc) with a sign on it, RGBA."""
    big = size_px * 4
    mask = Image.new("L", (big, big), 0)
    ImageDraw.Draw(mask).rounded_rectangle(
        (0, 0, big - 1, big - 1), big // 2 if is_round else big // 4, fill=255
    )
    picture = Image.new("RGBA", (size_px, size_px), (*color, 0))
    picture.paste(color, (0, 0), mask.resize((size_px, size_px), Image.Resampling.BOX))
    inner = round(size_px * 0.66)
    sign = glyph(name, inner, ink_on(color), color)
    edge = (size_px - inner) // 2
    picture.alpha_composite(sign, (edge, edge))
    return picture


def ink_on(ground: Color) -> Color:
    """The colour that can be read on a ground."""
    return (
        BLACK
        if 0.299 * ground[0] + 0.587 * ground[1] + 0.114 * ground[2] > BRIGHT_GROUND
        else WHITE
    )


@lru_cache(maxsize=256)
def pill(width_px: int, height_px: int, radius_px: int, color: Color) -> Image.Image:
    """A smooth rounded rectangle, RGBA, transparent outside."""
    big = Image.new("L", (width_px * 4, height_px * 4), 0)
    ImageDraw.Draw(big).rounded_rectangle(
        (0, 0, width_px * 4 - 1, height_px * 4 - 1), radius_px * 4, fill=255
    )
    picture = Image.new("RGBA", (width_px, height_px), (*color, 0))
    picture.paste(color, (0, 0), big.resize((width_px, height_px), Image.Resampling.BOX))
    return picture


def stamp(picture: Image.Image, part: Image.Image, at: tuple[int, int]) -> None:
    """Lay a smooth RGBA part onto a picture."""
    if picture.mode == "RGBA":
        picture.alpha_composite(part, at)
    else:
        picture.paste(part, at, part)


def clear(width_px: int, height_px: int) -> Image.Image:
    """A transparent ground."""
    return Image.new("RGBA", (width_px, height_px), (0, 0, 0, 0))
