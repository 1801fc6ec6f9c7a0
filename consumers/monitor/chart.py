"""Small SVG line charts over steps; colours come from the style sheet."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from consumers.monitor.html import Html, Node, tag
from consumers.monitor.layout import number
from consumers.monitor.plain_text import excerpt

WIDTH, HEIGHT = 420, 150
LEFT, RIGHT, TOP, BOTTOM = 54, 10, 10, 22
NUM_STYLES = 3
"""Of lines (style.css: series0 ...)."""


@dataclass(frozen=True, slots=True)
class Series:
    """Points (step, value) by step; values that are not finite are omitted."""

    name: str
    points: Sequence[tuple[float, float]]
    band: Sequence[float] = ()
    """Half-height of the error bar of each point; empty: none."""


def chart(
    title: str, *series: Series, low: float | None = None, high: float | None = None
) -> Html | None:
    """A line with a dot per point for each series, from `low` to `high` or over the values' range.

    Several series have a legend. None if no value is finite.
    """
    lines = [(item.name, points) for item in series if (points := _finite(item))]
    every = sorted(point for _, points in lines for point in points)
    if not every:
        return None
    bottom = min(y for _, y, _ in every) if low is None else low
    top = max(y for _, y, _ in every) if high is None else high
    if top <= bottom:
        bottom, top = bottom - 0.5, top + 0.5
    first, last = every[0][0], every[-1][0]

    def across(x: float) -> float:
        return round(LEFT + (x - first) / ((last - first) or 1) * (WIDTH - LEFT - RIGHT), 1)

    def up(y: float) -> float:
        clipped = min(max(y, bottom), top)
        # In halves: the range may be larger than any float.
        part = (clipped / 2 - bottom / 2) / (top / 2 - bottom / 2)
        return round(HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM), 1)

    parts: list[Node] = []
    for value in (bottom, bottom / 2 + top / 2, top):
        parts.append(
            tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=up(value), y2=up(value), class_="grid")
        )
        parts.append(
            tag("text", number(value, digits=2), x=LEFT - 6, y=up(value) + 4, class_="label end")
        )
    parts += [
        tag("text", f"{step:g}", x=across(step), y=HEIGHT - 5, class_="label middle")
        for step in dict.fromkeys((first, last))
    ]
    for place, (name, points) in enumerate(lines):
        parts += [
            tag("line", x1=across(x), x2=across(x), y1=up(y - band), y2=up(y + band), class_="band")
            for x, y, band in points
            if band
        ]
        line = " ".join(f"{across(x)},{up(y)}" for x, y, _ in points)
        parts.append(tag("polyline", points=line, class_=f"line {_style(place)}"))
        parts += [
            tag(
                "circle",
                tag("title", f"{name} {y:.4g} at step {x:g}"),
                cx=across(x),
                cy=up(y),
                r=3,
                class_=f"dot {_style(place)}",
            )
            for x, y, _ in points
        ]
    drawing = tag(
        "svg", *parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=title, class_="chart"
    )
    return tag(
        "figure", tag("figcaption", excerpt(title), _legend([name for name, _ in lines])), drawing
    )


def _finite(series: Series) -> list[tuple[float, float, float]]:
    bands = series.band or [0.0] * len(series.points)
    return [
        (x, y, band if isfinite(band) else 0.0)
        for (x, y), band in zip(series.points, bands, strict=True)
        if isfinite(y)
    ]


def _legend(names: Sequence[str]) -> Node:
    if len(names) < 2:  # noqa: PLR2004  # one line needs no legend
        return None
    return [
        tag("span", tag("span", "●", class_=f"key {_style(place)}"), f" {name}", class_="legend")
        for place, name in enumerate(names)
    ]


def _style(place: int) -> str:
    return f"series{place % NUM_STYLES}"
