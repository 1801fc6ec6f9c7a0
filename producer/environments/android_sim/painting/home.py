"""Painters of the launcher, the shade, recents and the apps' own pictures."""

from PIL import Image, ImageDraw

from producer.environments.android_sim.painting.brush import (
    ON,
    WHITE,
    clear,
    font,
    pill,
    plate,
    stamp,
    theme,
    write,
)
from producer.environments.android_sim.painting.glyphs import glyph
from producer.environments.android_sim.screens.widget import Look

ICON_PX = 66
SHADOW = (20, 24, 32)


def _write_on_wallpaper(picture: Image.Image, x: float, y: float, text: str, size_px: int) -> None:
    pen = ImageDraw.Draw(picture)
    pen.text(
        (x, y),
        text,
        font=font(size_px),
        fill=WHITE,
        anchor="mm",
        stroke_width=1,
        stroke_fill=SHADOW,
    )


def app_icon(look: Look) -> Image.Image:
    """A launcher icon with its name below; without one in the dock."""
    picture = clear(look.width, look.height)
    top = 2 if look.label else (look.height - ICON_PX) // 2
    picture.alpha_composite(
        plate(look.glyph, ICON_PX, look.color), ((look.width - ICON_PX) // 2, top)
    )
    if look.label and look.state == "drawer":
        write(
            picture,
            (look.width / 2, ICON_PX + 14),
            look.label,
            14,
            theme(dark=look.dark).text,
            width_px=look.width,
            anchor="mm",
        )
    elif look.label:
        _write_on_wallpaper(picture, look.width / 2, ICON_PX + 14, look.label, 14)
    return picture


def clock(look: Look) -> Image.Image:
    """The clock of the home screen."""
    picture = clear(look.width, look.height)
    _write_on_wallpaper(picture, look.width / 2, 24, look.label, 40)
    _write_on_wallpaper(picture, look.width / 2, 57, look.sub, 16)
    return picture


def dots(look: Look) -> Image.Image:
    """Which page of how many: state `1/3`."""
    picture = clear(look.width, look.height)
    current, total = (int(part) for part in look.state.split("/"))
    left = look.width // 2 - total * 9
    for number in range(total):
        size = 10 if number + 1 == current else 6
        stamp(
            picture,
            pill(size, size, size // 2, WHITE if number + 1 == current else (200, 204, 212)),
            (left + number * 18, 7 - size // 2),
        )
    return picture


def status(look: Look) -> Image.Image:
    """The bar at the top: the clock at the left, signs (state, separated by blanks) and the battery at the right."""
    picture = clear(look.width, look.height)
    middle = look.height // 2
    write(picture, (12, middle), look.label, 15, look.color)
    write(picture, (look.width - 10, middle), look.sub, 14, look.color, anchor="rm")
    x = look.width - 66
    picture.alpha_composite(glyph("battery", 16, look.color, (120, 120, 120)), (x, middle - 8))
    for name in look.state.split():
        x -= 22
        picture.alpha_composite(glyph(name, 16, look.color, (120, 120, 120)), (x, middle - 8))
    return picture


def tile(look: Look) -> Image.Image:
    """A quick settings tile: blue when on, grey when off."""
    picture = clear(look.width, look.height)
    is_on = look.state == "on"
    color = ON if is_on else (72, 76, 86)
    stamp(picture, pill(look.width, look.height, 22, color), (0, 0))
    if look.label:
        picture.alpha_composite(
            plate(look.glyph, 48, look.color, is_round=True), (8, (look.height - 48) // 2)
        )
        write(picture, (64, look.height / 2 - 11), look.label, 16, WHITE, width_px=look.width - 70)
        write(picture, (64, look.height / 2 + 12), "On" if is_on else "Off", 14, (225, 230, 240))
    else:
        picture.alpha_composite(
            plate(look.glyph, 52, look.color, is_round=True),
            ((look.width - 52) // 2, (look.height - 52) // 2),
        )
    return picture


def note(look: Look) -> Image.Image:
    """A notification."""
    picture = clear(look.width, look.height)
    stamp(picture, pill(look.width, look.height, 18, (58, 61, 70)), (0, 0))
    picture.alpha_composite(plate(look.glyph, 50, look.color), (10, (look.height - 50) // 2))
    write(picture, (72, look.height / 2 - 12), look.label, 18, WHITE, width_px=look.width - 84)
    write(
        picture, (72, look.height / 2 + 13), look.sub, 15, (190, 195, 205), width_px=look.width - 84
    )
    return picture


def card(look: Look) -> Image.Image:
    """An app in recents: its icon and name above a small picture of it."""
    picture = clear(look.width, look.height)
    stamp(picture, pill(look.width, look.height, 22, (236, 238, 243)), (0, 0))
    picture.alpha_composite(plate(look.glyph, 60, look.color), (12, 10))
    write(picture, (86, 40), look.label, 23, (24, 26, 31), width_px=look.width - 100)
    stamp(
        picture,
        pill(
            look.width - 24,
            look.height - 90,
            12,
            look.color if look.color != WHITE else (120, 170, 250),
        ),
        (12, 80),
    )
    return picture


def hero(look: Look) -> Image.Image:
    """The large sign of an app in the middle of its own page."""
    picture = clear(look.width, look.height)
    size = min(look.width, look.height)
    picture.alpha_composite(
        plate(look.glyph, size, look.color), ((look.width - size) // 2, (look.height - size) // 2)
    )
    return picture


def photo(look: Look) -> Image.Image:
    """A picture in the gallery: hills under a sky of its colour."""
    width, height = look.width, look.height
    red, green, blue = look.color
    picture = Image.new("RGB", (width, height), look.color)
    pen = ImageDraw.Draw(picture)
    pen.ellipse(
        (width * 0.62, height * 0.12, width * 0.82, height * 0.12 + width * 0.2),
        fill=(255, 241, 190),
    )
    pen.polygon(
        (0, height, 0, height * 0.7, width * 0.35, height * 0.4, width * 0.8, height),
        fill=(red // 2, green // 2, blue // 2),
    )
    pen.polygon(
        (width * 0.4, height, width * 0.75, height * 0.5, width, height * 0.72, width, height),
        fill=(red // 3, green // 3, blue // 3),
    )
    return picture


def speech(look: Look) -> Image.Image:
    """A message."""
    picture = clear(look.width, look.height)
    stamp(picture, pill(look.width, look.height, 18, look.color), (0, 0))
    write(picture, (16, look.height / 2), look.label, 18, WHITE, width_px=look.width - 28)
    return picture


def shutter(look: Look) -> Image.Image:
    """The camera's button."""
    picture = clear(look.width, look.height)
    stamp(picture, pill(look.width, look.height, look.width // 2, WHITE), (0, 0))
    stamp(
        picture, pill(look.width - 12, look.height - 12, look.width // 2 - 6, (225, 45, 45)), (6, 6)
    )
    return picture
