"""A screenshot with the agent's actions drawn on it: one SVG in the screen's own pixels."""

from collections.abc import Mapping, Sequence

from consumers.monitor.blobs import NoScreenshotError, Screenshots
from consumers.monitor.html import Html, Node, tag

BLOB_PREFIX = "blob:sha256:"
SCROLL_PX = 60
"""Length of a scroll's arrow; the list of actions has the real distance."""


def screen(
    store: Screenshots, uri: str | None, actions: Sequence[object] = (), caption: str = ""
) -> Html:
    """The screenshot `uri`, or a sentence in its place if the store does not have it."""
    digest = (uri or "").removeprefix(BLOB_PREFIX)
    try:
        width, height = store.size_px(digest)
    except NoScreenshotError:
        return tag(
            "figure",
            tag("p", "Screenshot not available.", class_="missing"),
            tag("figcaption", caption),
            class_="screen",
        )
    unit = width / 100
    marks: list[Node] = [_mark(action, unit) for action in actions if isinstance(action, Mapping)]
    picture = tag("image", href=f"/blob/{digest}", x=0, y=0, width=width, height=height)
    drawing = tag(
        "svg",
        picture,
        *marks,
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        aria_label=caption,
    )
    return tag("figure", drawing, tag("figcaption", caption), class_="screen")


def _mark(action: Mapping[str, object], unit: float) -> Html | None:
    """The drawing of one action (`schemas.actions`, as JSON); None if it has no coordinates."""
    points = _points(action)
    if not points:
        return None
    title = tag("title", str(action.get("type")))
    (x, y), *rest = points
    target = tag("circle", cx=x, cy=y, r=4 * unit, class_="mark", stroke_width=unit)
    if not rest:
        dot = tag("circle", cx=x, cy=y, r=unit, class_="point")
        second = (
            tag("circle", cx=x, cy=y, r=6 * unit, class_="mark", stroke_width=unit / 2)
            if action.get("type") != "click"
            else None
        )
        return tag("g", title, target, second, dot)
    path = tag(
        "polyline",
        points=" ".join(f"{px},{py}" for px, py in points),
        class_="mark",
        stroke_width=unit,
    )
    end = tag("circle", cx=rest[-1][0], cy=rest[-1][1], r=1.5 * unit, class_="point")
    return tag(
        "g",
        title,
        tag("circle", cx=x, cy=y, r=2 * unit, class_="mark", stroke_width=unit),
        path,
        end,
    )


def _points(action: Mapping[str, object]) -> list[tuple[float, float]]:
    path = action.get("path")
    if isinstance(path, Sequence) and not isinstance(path, str):
        pairs = [tuple(point) for point in path if isinstance(point, Sequence) and len(point) == 2]  # noqa: PLR2004  # x and y
        return [
            (x, y) for x, y in pairs if isinstance(x, int | float) and isinstance(y, int | float)
        ]
    x, y = action.get("x"), action.get("y")
    if not isinstance(x, int | float) or not isinstance(y, int | float):
        return []
    to_x, to_y = action.get("to_x"), action.get("to_y")
    if isinstance(to_x, int | float) and isinstance(to_y, int | float):
        return [(x, y), (to_x, to_y)]
    across, down = action.get("scroll_x"), action.get("scroll_y")
    if isinstance(across, int | float) and isinstance(down, int | float) and (across or down):
        longest = max(abs(across), abs(down))
        # The arrow shows the finger, which moves opposite to the scroll.
        return [(x, y), (x - across / longest * SCROLL_PX, y - down / longest * SCROLL_PX)]
    return [(x, y)]
