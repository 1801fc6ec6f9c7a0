"""Scene to pixels: renders a scene as an image and as a PNG file.

Each distinct `Look` and each distinct scene is drawn once and cached. The result depends on the
scene alone: the same scene gives the same bytes.
"""

import struct
import zlib
from functools import lru_cache

from PIL import Image, ImageDraw

from producer.agents.android.sim.painting.widgets import render_widget
from producer.agents.android.sim.screens.widget import HEIGHT_PX, WIDTH_PX, Scene
from producer.agents.android.sim.state.apps import Color
from producer.agents.android.sim.state.settings_tree import WALLPAPERS

ROW_BYTES = WIDTH_PX * 3
NO_FILTER = b"\x00"
"""PNG filter type 0 (None). On flat screens it is faster and smaller than filter 2 (Up)."""


@lru_cache(maxsize=32)
def _backdrop(backdrop: str | Color) -> Image.Image:
    if not isinstance(backdrop, str):
        return Image.new("RGB", (WIDTH_PX, HEIGHT_PX), backdrop)
    red, green, blue = next(color for name, _, color in WALLPAPERS if name == backdrop)
    slope = Image.linear_gradient("L").resize((WIDTH_PX, HEIGHT_PX))
    dark = Image.new("RGB", (WIDTH_PX, HEIGHT_PX), (red // 3, green // 3, blue // 3))
    image = Image.composite(
        dark, Image.new("RGB", (WIDTH_PX, HEIGHT_PX), (red, green, blue)), slope
    )
    draw = ImageDraw.Draw(image)
    draw.polygon(
        (0, 640, 0, 470, 120, 400, 240, 470, 360, 420, 360, 640),
        fill=(red // 3, green // 3, blue // 3),
    )
    draw.polygon(
        (0, 640, 0, 560, 150, 510, 360, 580, 360, 640), fill=(red // 4, green // 4, blue // 4)
    )
    return image


def render_image(scene: Scene) -> Image.Image:
    """The screen as a new RGB image, which the caller may modify."""
    image = _backdrop(scene.backdrop).copy()
    for widget in scene.widgets:
        drawn = render_widget(widget.look)
        image.paste(drawn, (widget.x, widget.y), drawn if drawn.mode == "RGBA" else None)
    return image


@lru_cache(maxsize=512)
def render_png(scene: Scene) -> bytes:
    """The screen as a PNG file, RGB, 8 bits per channel."""
    return _encode_png(render_image(scene))


def _encode_png(image: Image.Image) -> bytes:
    # Pillow's encoder tries every filter on every row: 2.2 ms instead of 1.2 ms per screen.
    raw = image.tobytes()
    rows = b"".join(
        NO_FILTER + raw[start : start + ROW_BYTES] for start in range(0, len(raw), ROW_BYTES)
    )
    header = struct.pack(">IIBBBBB", image.width, image.height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _png_chunk(b"IHDR", header)
        + _png_chunk(b"IDAT", zlib.compress(rows, 1))
        + _png_chunk(b"IEND", b"")
    )


def _png_chunk(name: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + name
        + content
        + struct.pack(">I", zlib.crc32(name + content))
    )
