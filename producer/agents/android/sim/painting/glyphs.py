"""Pictograms for icons, rows and tiles, defined on a 24 x 24 grid and drawn at any size."""

from functools import lru_cache

from PIL import Image, ImageDraw

from producer.agents.android.sim.state.apps import Color

GRID = 24
OVERSAMPLING = 4

# Strokes are separated by "|". A stroke: shape, color (f: foreground, g: background, or #rrggbb),
# grid numbers: disc x y r, ring x y r w, line w x y x y ..., area x y x y ..., rect x y x y r,
# arc x y x y start end w.
GLYPHS: dict[str, str] = {
    "gear": (
        "line f 4 12 1 12 23|line f 4 1 12 23 12|line f 4 4 4 20 20|line f 4 4 20 20 4|disc f 12 12"
        " 8|disc g 12 12 4"
    ),
    "chrome": (
        "disc #db4437 12 12 11|area #0f9d58 12 12 1.5 9 3 19 8 23 12 23|area #ffcd40 12 12 12 23 20"
        " 20 23 12 22 8|disc #ffffff 12 12 6|disc #4285f4 12 12 4.5"
    ),
    "handset": "line f 5 5 6 8 13 18 19|disc f 5 6 3.5|disc f 18 19 3.5|line g 2 11 7 17 13",
    "bubble": (
        "rect f 2 3 22 17 4|area f 6 15 6 23 14 16|disc g 7.5 10 1.6|disc g 12 10 1.6|disc g 16.5"
        " 10 1.6"
    ),
    "camera": "rect f 1 6 23 20 3|rect f 8 3 16 8 1|disc #26c6da 12 13 5.5|disc #0d47a1 12 13 3",
    "flower": (
        "disc #e53935 12 6 4.6|disc #43a047 18 12 4.6|disc #1e88e5 12 18 4.6|disc #8e24aa 6 12"
        " 4.6|disc f 12 12 3.4"
    ),
    "person": "disc f 12 8 5|area f 2 22 3 17 8 14 16 14 21 17 22 22",
    "clock": "disc f 12 12 10|line g 2.4 12 12 12 5|line g 2.4 12 12 17 14",
    "plusminus": (
        "line f 3 3 7 11 7|line f 3 7 3 7 11|line f 3 14 7 21 7|line f 3 4 14 10 20|line f 3 10 14"
        " 4 20|line f 3 14 15 21 15|line f 3 14 20 21 20"
    ),
    "calendar": (
        "rect f 2 3 22 22 3|rect g 4 9 20 20 1|rect f 6 11 10 14 0|rect f 13 11 17 14 0|rect f 6 16"
        " 10 19 0"
    ),
    "folder": "rect f 1 4 11 10 2|rect f 1 7 23 20 2|line g 1.4 1 10 23 10",
    "note": (
        "disc f 7 18 4|disc f 18 15 4|line f 2.6 10 18 10 4|line f 2.6 21 15 21 2|line f 4 9 5 22 3"
    ),
    "pin": "disc f 12 9 7.5|area f 5 11 19 11 12 23|disc g 12 9 3",
    "envelope": "rect f 1 4 23 20 2|line g 2 2 6 12 14 22 6",
    "lines": "rect f 3 1 21 23 2|line g 2 6 7 18 7|line g 2 6 12 18 12|line g 2 6 17 14 17",
    "flask": (
        "line f 3 9 2 15 2|area f 10 2 14 2 14 9 22 22 2 22 10 9|disc g 10 17 1.8|disc g 14 14 1.4"
    ),
    "wifi": "arc f 1 4 23 26 215 325 3|arc f 5 9 19 23 215 325 3|disc f 12 19 2.6",
    "bluetooth": "line f 2.6 6 7 18 17 12 22 12 2 18 7 6 17",
    "airplane": (
        "area f 11 1 13 1 14 8 23 14 23 16 14 13 13 19 16 21 16 23 12 22 8 23 8 21 11 19 10 13 1 16"
        " 1 14 10 8"
    ),
    "sun": (
        "disc f 12 12 5.5|line f 2.4 12 0 12 4|line f 2.4 12 20 12 24|line f 2.4 0 12 4 12|line f"
        " 2.4 20 12 24 12|line f 2.4 3.5 3.5 6 6|line f 2.4 18 18 20.5 20.5|line f 2.4 3.5 20.5 6"
        " 18|line f 2.4 18 6 20.5 3.5"
    ),
    "moon": "disc f 11 12 10|disc g 16 8.5 8.5",
    "speaker": (
        "area f 2 9 7 9 13 3 13 21 7 15 2 15|arc f 9 6 19 18 305 55 2.4|arc f 7 2 23 22 305 55 2.4"
    ),
    "battery": "rect f 7 4 17 23 2|rect f 10 1 14 5 1|rect g 9.5 7 14.5 13 0",
    "grid": "rect f 2 2 10 10 2|rect f 14 2 22 10 2|rect f 2 14 10 22 2|rect f 14 14 22 22 2",
    "disk": (
        "rect f 2 2 22 9 2|rect f 2 10.5 22 17.5 2|rect f 2 19 22 23 2|disc g 18 5.5 1.5|disc g 18"
        " 14 1.5"
    ),
    "globe": "ring f 12 12 11 2.2|line f 2 1 12 23 12|ring f 12 12 5 1.8|line f 2 12 1 12 23",
    "lock": "rect f 3 10 21 23 3|arc f 6 1 18 17 180 360 3|disc g 12 16 2.4",
    "braces": (
        "line f 2.6 9 2 6 3 6 10 3 12 6 14 6 21 9 22|line f 2.6 15 2 18 3 18 10 21 12 18 14 18 21"
        " 15 22"
    ),
    "rotate": "arc f 2 2 22 22 300 200 3|area f 1 6 9 12 0 15|rect f 9 7 15 17 1",
    "hourglass": (
        "area f 4 1 20 1 12 12|area f 12 12 20 23 4 23|line f 2.4 3 1.5 21 1.5|line f 2.4 3 22.5 21"
        " 22.5"
    ),
    "bell": "disc f 12 9 7|area f 5 9 19 9 22 19 2 19|disc f 12 21 2.5",
    "minus": "disc f 12 12 11|line g 4 6 12 18 12",
    "leaf": "area f 20 2 22 10 18 18 9 20 4 17 4 10 9 5|line g 2 4 22 10 13 16 8",
    "target": "ring f 12 12 11 2.4|ring f 12 12 6 2.4|disc f 12 12 2",
    "search": "ring f 10 10 8 3|line f 3.4 16 16 22 22",
    "back": "area f 17 3 17 21 4 12",
    "circle": "ring f 12 12 9 3",
    "square": "rect f 4 4 20 20 2|rect g 7 7 17 17 1",
    "arrow": "line f 2.6 20 12 4 12|line f 2.6 11 5 4 12 11 19",
    "plus": "line f 4 12 3 12 21|line f 4 3 12 21 12",
    "chevron": "line f 3 8 4 16 12 8 20",
    "enter": "line f 3 20 5 20 13 5 13|area f 8 7 8 19 1 13",
    "erase": "area f 8 4 23 4 23 20 8 20 1 12|line g 2.4 11 8 18 16|line g 2.4 11 16 18 8",
    "cross": "line f 3.4 4 4 20 20|line f 3.4 4 20 20 4",
    "shot": (
        "ring f 12 12 5 2.6|line f 2.6 2 8 2 2 8 2|line f 2.6 16 2 22 2 22 8|line f 2.6 22 16 22 22"
        " 16 22|line f 2.6 8 22 2 22 2 16"
    ),
}


@lru_cache(maxsize=512)
def glyph(name: str, size_px: int, foreground: Color, background: Color) -> Image.Image:
    """The pictogram as a square RGBA image with a transparent background."""
    scale = size_px * OVERSAMPLING / GRID
    image = Image.new("RGBA", (size_px * OVERSAMPLING,) * 2, (*foreground, 0))
    draw = ImageDraw.Draw(image)
    for stroke in GLYPHS[name].split("|"):
        shape, color_name, *numbers = stroke.split(" ")
        color = foreground if color_name == "f" else background if color_name == "g" else color_name
        _draw(draw, shape, color, [float(number) for number in numbers], scale)
    return image.resize((size_px, size_px), Image.Resampling.BOX)


def _draw(
    draw: ImageDraw.ImageDraw, shape: str, color: Color | str, numbers: list[float], scale: float
) -> None:
    points = [number * scale for number in numbers]
    match shape:
        case "disc":
            x, y, r = points
            draw.ellipse((x - r, y - r, x + r, y + r), fill=color)
        case "ring":
            x, y, r, w = points
            draw.ellipse((x - r, y - r, x + r, y + r), outline=color, width=round(w))
        case "line":
            draw.line(points[1:], fill=color, width=round(points[0]), joint="curve")
        case "area":
            draw.polygon(points, fill=color)
        case "rect":
            draw.rounded_rectangle(
                (points[0], points[1], points[2], points[3]), points[4], fill=color
            )
        case "arc":
            draw.arc(
                (points[0], points[1], points[2], points[3]),
                numbers[4],
                numbers[5],
                fill=color,
                width=round(points[6]),
            )
        case other:
            message = f"unknown shape: {other}"
            raise AssertionError(message)
