"""`Canvas`: themes, fonts, text with ellipsis, rounded rectangles and icons on one widget."""

from functools import lru_cache
from typing import NamedTuple

from PIL import Image, ImageDraw, ImageFont

from producer.agents.android.sim.painting.glyphs import glyph
from producer.agents.android.sim.screens.widget import Look
from producer.agents.android.sim.state.apps import Color

ACCENT: Color = (0, 122, 255)
"""Color of every switch, tile and slider that is on."""
OFF_LIGHT: Color = (190, 194, 202)
OFF_DARK: Color = (88, 92, 102)
WHITE: Color = (255, 255, 255)
BLACK: Color = (20, 22, 26)
MAX_TEXT_LENGTH = 120
"""Maximum characters. Longer text never fits the screen and is slow to measure."""
BRIGHT_BACKGROUND = 185
"""Luminance (0-255) above which text and icons are drawn dark."""


class Theme(NamedTuple):
    """Colors of the light or the dark theme."""

    background: Color
    card: Color
    text: Color
    faint: Color
    off: Color


LIGHT = Theme((246, 247, 250), WHITE, (24, 26, 31), (98, 103, 114), OFF_LIGHT)
DARK = Theme((16, 17, 21), (38, 40, 47), (236, 238, 242), (158, 163, 174), OFF_DARK)


@lru_cache(maxsize=32)
def font(size_px: int) -> ImageFont.FreeTypeFont:
    """Pillow's bundled font, so that screens are the same on every machine."""
    loaded = ImageFont.load_default(size_px)
    # Pillow built without FreeType falls back to a bitmap font of one size.
    assert isinstance(loaded, ImageFont.FreeTypeFont)  # noqa: S101
    return loaded


def ellipsize(text: str, size_px: int, width_px: int) -> str:
    """The text, cut with "..." where it is wider than `width_px`."""
    if font(size_px).getlength(text) <= width_px:
        return text
    while text and font(size_px).getlength(text + "...") > width_px:
        text = text[:-1]
    return text.rstrip() + "..."


class Canvas:
    """The image of one widget. Positions are in px from its upper left corner."""

    def __init__(self, look: Look, background: Color | None = None) -> None:
        """Create an image: RGB on `background`, or transparent RGBA if it is None."""
        self.width, self.height = look.width, look.height
        self.theme = DARK if look.dark else LIGHT
        size = (look.width, look.height)
        self.image = (
            Image.new("RGBA", size, (0, 0, 0, 0))
            if background is None
            else Image.new("RGB", size, background)
        )

    @property
    def draw(self) -> ImageDraw.ImageDraw:
        """Pillow's drawing object, for other shapes."""
        return ImageDraw.Draw(self.image)

    def box(self, color: Color, radius_px: int, at: tuple[int, int], size: tuple[int, int]) -> None:
        """Draw a rounded rectangle of this size with its upper left corner at `at`."""
        self._add(rounded_rectangle(*size, radius_px, color), at)

    def fill(self, color: Color, radius_px: int) -> None:
        """Cover the whole widget with a rounded rectangle."""
        self.box(color, radius_px, (0, 0), (self.width, self.height))

    def glyph(
        self, name: str, size_px: int, color: Color, hole: Color, *, x: int | None = None
    ) -> None:
        """Draw a pictogram, centered or from left edge `x`; `hole` is the color behind it."""
        self._add(glyph(name, size_px, color, hole), self._middle(size_px, x))

    def tile(
        self,
        look: Look,
        size_px: int,
        *,
        x: int | None = None,
        y: int | None = None,
        is_round: bool = False,
    ) -> None:
        """Draw the look's pictogram on a square or disc of its color, centered unless placed."""
        left, top = self._middle(size_px, x)
        drawn = icon_tile(look.glyph, size_px, look.color, is_round=is_round)
        self._add(drawn, (left, top if y is None else y))

    def text(
        self,
        at: tuple[float, float],
        text: str,
        size_px: int,
        color: Color,
        *,
        width_px: int = 1000,
        anchor: str = "lm",
    ) -> None:
        """One line of text at a point; `anchor` is Pillow's (`lm`: left, middle)."""
        line = ellipsize(text[:MAX_TEXT_LENGTH].replace("\n", " "), size_px, width_px)
        self.draw.text(at, line, font=font(size_px), fill=color, anchor=anchor)

    def centered_text(self, text: str, size_px: int, color: Color, *, width_px: int = 1000) -> None:
        """One line in the middle of the widget."""
        at = (self.width / 2, self.height / 2)
        self.text(at, text, size_px, color, width_px=width_px, anchor="mm")

    def _middle(self, size_px: int, x: int | None) -> tuple[int, int]:
        left = (self.width - size_px) // 2 if x is None else x
        return left, (self.height - size_px) // 2

    def _add(self, overlay: Image.Image, at: tuple[int, int]) -> None:
        if self.image.mode == "RGBA":
            self.image.alpha_composite(overlay, at)
        else:
            self.image.paste(overlay, at, overlay)


@lru_cache(maxsize=512)
def icon_tile(name: str, size_px: int, color: Color, *, is_round: bool = False) -> Image.Image:
    """A rounded square (or disc) with a pictogram on it, RGBA."""
    big = size_px * 4
    mask = Image.new("L", (big, big), 0)
    ImageDraw.Draw(mask).rounded_rectangle(
        (0, 0, big - 1, big - 1), big // 2 if is_round else big // 4, fill=255
    )
    image = Image.new("RGBA", (size_px, size_px), (*color, 0))
    image.paste(color, (0, 0), mask.resize((size_px, size_px), Image.Resampling.BOX))
    inner = round(size_px * 0.66)
    icon = glyph(name, inner, contrasting_color(color), color)
    edge = (size_px - inner) // 2
    image.alpha_composite(icon, (edge, edge))
    return image


def contrasting_color(background: Color) -> Color:
    """Black or white, whichever is readable on the background."""
    return (
        BLACK
        if 0.299 * background[0] + 0.587 * background[1] + 0.114 * background[2] > BRIGHT_BACKGROUND
        else WHITE
    )


@lru_cache(maxsize=256)
def rounded_rectangle(width_px: int, height_px: int, radius_px: int, color: Color) -> Image.Image:
    """An anti-aliased rounded rectangle, RGBA, transparent outside."""
    big = Image.new("L", (width_px * 4, height_px * 4), 0)
    ImageDraw.Draw(big).rounded_rectangle(
        (0, 0, width_px * 4 - 1, height_px * 4 - 1), radius_px * 4, fill=255
    )
    image = Image.new("RGBA", (width_px, height_px), (*color, 0))
    image.paste(color, (0, 0), big.resize((width_px, height_px), Image.Resampling.BOX))
    return image
