"""Renderers for widgets of the launcher, the shade, recents, camera, gallery and messages."""

from PIL import Image, ImageDraw

from producer.agents.android.sim.painting.drawing import (
    ACCENT,
    WHITE,
    draw_text,
    font,
    icon_tile,
    paste,
    rounded_rectangle,
    theme,
    transparent,
)
from producer.agents.android.sim.painting.glyphs import glyph
from producer.agents.android.sim.screens.widget import Look

ICON_PX = 66
SHADOW = (20, 24, 32)


def _draw_text_on_wallpaper(
    image: Image.Image, x: float, y: float, text: str, size_px: int
) -> None:
    draw = ImageDraw.Draw(image)
    draw.text(
        (x, y),
        text,
        font=font(size_px),
        fill=WHITE,
        anchor="mm",
        stroke_width=1,
        stroke_fill=SHADOW,
    )


def app_icon(look: Look) -> Image.Image:
    """A launcher icon with its label below; no label in the dock."""
    image = transparent(look.width, look.height)
    top = 2 if look.label else (look.height - ICON_PX) // 2
    image.alpha_composite(
        icon_tile(look.glyph, ICON_PX, look.color), ((look.width - ICON_PX) // 2, top)
    )
    if look.label and look.state == "drawer":
        draw_text(
            image,
            (look.width / 2, ICON_PX + 14),
            look.label,
            14,
            theme(dark=look.dark).text,
            width_px=look.width,
            anchor="mm",
        )
    elif look.label:
        _draw_text_on_wallpaper(image, look.width / 2, ICON_PX + 14, look.label, 14)
    return image


def clock(look: Look) -> Image.Image:
    """The clock of the home screen."""
    image = transparent(look.width, look.height)
    _draw_text_on_wallpaper(image, look.width / 2, 24, look.label, 40)
    _draw_text_on_wallpaper(image, look.width / 2, 57, look.sub, 16)
    return image


def page_dots(look: Look) -> Image.Image:
    """Page indicator; state `1/3` is the first of three pages."""
    image = transparent(look.width, look.height)
    current, total = (int(part) for part in look.state.split("/"))
    left = look.width // 2 - total * 9
    for number in range(total):
        size = 10 if number + 1 == current else 6
        paste(
            image,
            rounded_rectangle(
                size, size, size // 2, WHITE if number + 1 == current else (200, 204, 212)
            ),
            (left + number * 18, 7 - size // 2),
        )
    return image


def status_bar(look: Look) -> Image.Image:
    """Clock on the left; status icons (state, space-separated) and battery on the right."""
    image = transparent(look.width, look.height)
    middle = look.height // 2
    draw_text(image, (12, middle), look.label, 15, look.color)
    draw_text(image, (look.width - 10, middle), look.sub, 14, look.color, anchor="rm")
    x = look.width - 66
    image.alpha_composite(glyph("battery", 16, look.color, (120, 120, 120)), (x, middle - 8))
    for name in look.state.split():
        x -= 22
        image.alpha_composite(glyph(name, 16, look.color, (120, 120, 120)), (x, middle - 8))
    return image


def tile(look: Look) -> Image.Image:
    """A quick settings tile: blue when on, grey when off."""
    image = transparent(look.width, look.height)
    is_on = look.state == "on"
    color = ACCENT if is_on else (72, 76, 86)
    paste(image, rounded_rectangle(look.width, look.height, 22, color), (0, 0))
    if look.label:
        image.alpha_composite(
            icon_tile(look.glyph, 48, look.color, is_round=True), (8, (look.height - 48) // 2)
        )
        draw_text(
            image, (64, look.height / 2 - 11), look.label, 16, WHITE, width_px=look.width - 70
        )
        draw_text(image, (64, look.height / 2 + 12), "On" if is_on else "Off", 14, (225, 230, 240))
    else:
        image.alpha_composite(
            icon_tile(look.glyph, 52, look.color, is_round=True),
            ((look.width - 52) // 2, (look.height - 52) // 2),
        )
    return image


def notification(look: Look) -> Image.Image:
    """A notification."""
    image = transparent(look.width, look.height)
    paste(image, rounded_rectangle(look.width, look.height, 18, (58, 61, 70)), (0, 0))
    image.alpha_composite(icon_tile(look.glyph, 50, look.color), (10, (look.height - 50) // 2))
    draw_text(image, (72, look.height / 2 - 12), look.label, 18, WHITE, width_px=look.width - 84)
    draw_text(
        image, (72, look.height / 2 + 13), look.sub, 15, (190, 195, 205), width_px=look.width - 84
    )
    return image


def card(look: Look) -> Image.Image:
    """An app in recents: its icon and name above a preview."""
    image = transparent(look.width, look.height)
    paste(image, rounded_rectangle(look.width, look.height, 22, (236, 238, 243)), (0, 0))
    image.alpha_composite(icon_tile(look.glyph, 60, look.color), (12, 10))
    draw_text(image, (86, 40), look.label, 23, (24, 26, 31), width_px=look.width - 100)
    paste(
        image,
        rounded_rectangle(
            look.width - 24,
            look.height - 90,
            12,
            look.color if look.color != WHITE else (120, 170, 250),
        ),
        (12, 80),
    )
    return image


def large_icon(look: Look) -> Image.Image:
    """A large icon in the middle of a page."""
    image = transparent(look.width, look.height)
    size = min(look.width, look.height)
    image.alpha_composite(
        icon_tile(look.glyph, size, look.color),
        ((look.width - size) // 2, (look.height - size) // 2),
    )
    return image


def photo(look: Look) -> Image.Image:
    """A photo: hills under a sky of the given color."""
    width, height = look.width, look.height
    red, green, blue = look.color
    image = Image.new("RGB", (width, height), look.color)
    draw = ImageDraw.Draw(image)
    draw.ellipse(
        (width * 0.62, height * 0.12, width * 0.82, height * 0.12 + width * 0.2),
        fill=(255, 241, 190),
    )
    draw.polygon(
        (0, height, 0, height * 0.7, width * 0.35, height * 0.4, width * 0.8, height),
        fill=(red // 2, green // 2, blue // 2),
    )
    draw.polygon(
        (width * 0.4, height, width * 0.75, height * 0.5, width, height * 0.72, width, height),
        fill=(red // 3, green // 3, blue // 3),
    )
    return image


def message_bubble(look: Look) -> Image.Image:
    """A text message."""
    image = transparent(look.width, look.height)
    paste(image, rounded_rectangle(look.width, look.height, 18, look.color), (0, 0))
    draw_text(image, (16, look.height / 2), look.label, 18, WHITE, width_px=look.width - 28)
    return image


def shutter(look: Look) -> Image.Image:
    """The camera's shutter button."""
    image = transparent(look.width, look.height)
    paste(image, rounded_rectangle(look.width, look.height, look.width // 2, WHITE), (0, 0))
    paste(
        image,
        rounded_rectangle(look.width - 12, look.height - 12, look.width // 2 - 6, (225, 45, 45)),
        (6, 6),
    )
    return image
