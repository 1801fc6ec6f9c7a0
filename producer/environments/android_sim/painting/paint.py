"""From a scene to pixels and to a PNG file.

Every part is drawn once per look, every screen once per scene; the rest is copying.

Same scene, same bytes: nothing here depends on time, order or earlier scenes.
"""

import struct
import zlib
from collections.abc import Callable
from functools import lru_cache

from PIL import Image, ImageDraw

from producer.environments.android_sim.painting import home, lists
from producer.environments.android_sim.screens.widget import HEIGHT_PX, WIDTH_PX, Look, Scene
from producer.environments.android_sim.state.apps import Color
from producer.environments.android_sim.state.settings_tree import WALLPAPERS

PAINTERS: dict[str, Callable[[Look], Image.Image]] = {
    "row": lists.row,
    "switch": lists.switch,
    "main_switch": lists.main_switch,
    "slider": lists.slider,
    "radio": lists.radio,
    "title": lists.title,
    "bare": lists.bare,
    "block": lists.block,
    "text": lists.text,
    "field": lists.field,
    "button": lists.button,
    "key": lists.key,
    "app_icon": home.app_icon,
    "clock": home.clock,
    "dots": home.dots,
    "status": home.status,
    "tile": home.tile,
    "note": home.note,
    "card": home.card,
    "hero": home.hero,
    "photo": home.photo,
    "speech": home.speech,
    "shutter": home.shutter,
}
ROW_BYTES = WIDTH_PX * 3
NO_FILTER = b"\x00"
"""PNG's row filter that stores pixels as they are. On flat screens it is quicker and smaller than
differences to the row above."""


@lru_cache(maxsize=1024)
def _part(look: Look) -> Image.Image:
    return PAINTERS[look.kind](look)


@lru_cache(maxsize=32)
def _backdrop(backdrop: str | Color) -> Image.Image:
    if not isinstance(backdrop, str):
        return Image.new("RGB", (WIDTH_PX, HEIGHT_PX), backdrop)
    red, green, blue = next(color for name, _, color in WALLPAPERS if name == backdrop)
    slope = Image.linear_gradient("L").resize((WIDTH_PX, HEIGHT_PX))
    dark = Image.new("RGB", (WIDTH_PX, HEIGHT_PX), (red // 3, green // 3, blue // 3))
    picture = Image.composite(
        dark, Image.new("RGB", (WIDTH_PX, HEIGHT_PX), (red, green, blue)), slope
    )
    pen = ImageDraw.Draw(picture)
    pen.polygon(
        (0, 640, 0, 470, 120, 400, 240, 470, 360, 420, 360, 640),
        fill=(red // 3, green // 3, blue // 3),
    )
    pen.polygon(
        (0, 640, 0, 560, 150, 510, 360, 580, 360, 640), fill=(red // 4, green // 4, blue // 4)
    )
    return picture


def draw(scene: Scene) -> Image.Image:
    """The screen as an RGB picture of its own (the caller may change it)."""
    picture = _backdrop(scene.backdrop).copy()
    for widget in scene.widgets:
        part = _part(widget.look)
        picture.paste(part, (widget.x, widget.y), part if part.mode == "RGBA" else None)
    return picture


@lru_cache(maxsize=512)
def png(scene: Scene) -> bytes:
    """The screen as a PNG file, RGB, 8 bits."""
    return _encode(draw(scene))


def _encode(picture: Image.Image) -> bytes:
    # Pillow's own encoder tries every row filter on every row, which takes longer than all the rest
    # (2.2 ms against 1.2 ms).
    raw = picture.tobytes()
    rows = b"".join(
        NO_FILTER + raw[start : start + ROW_BYTES] for start in range(0, len(raw), ROW_BYTES)
    )
    header = struct.pack(">IIBBBBB", picture.width, picture.height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + _chunk(b"IDAT", zlib.compress(rows, 1))
        + _chunk(b"IEND", b"")
    )


def _chunk(name: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + name
        + content
        + struct.pack(">I", zlib.crc32(name + content))
    )
