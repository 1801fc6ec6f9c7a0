"""Plots best-of-N over N, as an SVG file that any browser shows."""

import math
from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

from producer.process_rewards.best_of_n import STRATEGIES, BestOfN

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 56, 150, 40, 48
COLOURS: Final = ("#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad", "#555555")
"""Colours of the strategies and, last, of pass@N."""
NUM_TICKS: Final = 5
CEILING: Final = "pass@N"


def best_of_n_svg(results: Sequence[BestOfN], title: str = "Best-of-N by strategy") -> str:
    """Draw the share of right answers over N, one line per strategy, and pass@N dashed.

    Raises ValueError without results.
    """
    if not results:
        message = "expected at least one N to plot"
        raise ValueError(message)
    results = sorted(results)
    series: dict[str, list[float]] = {
        **{str(name): [result.by_strategy[name] for result in results] for name in STRATEGIES},
        CEILING: [result.pass_at_n for result in results],
    }
    xs = _xs([result.num_candidates for result in results])
    lowest, highest = _bounds([value for values in series.values() for value in values])

    def y_of(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (highest - value) / (highest - lowest)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' font-family="sans-serif" font-size="12" role="img" aria-label="{escape(title)}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>',
    ]
    for tick in range(NUM_TICKS + 1):
        value = lowest + (highest - lowest) * tick / NUM_TICKS
        parts += [
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y_of(value):.1f}" y2="{y_of(value):.1f}"'
            ' stroke="#dddddd"/>',
            f'<text x="{LEFT - 8}" y="{y_of(value) + 4:.1f}" text-anchor="end">{value:.2f}</text>',
        ]
    parts += [
        f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">'
        f"{one.num_candidates}</text>"
        for x, one in zip(xs, results, strict=True)
    ]
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">'
        "N completions a question</text>"
    )
    for at, (name, values) in enumerate(series.items()):
        points = [(x, y_of(value)) for x, value in zip(xs, values, strict=True)]
        parts += _line(name, points, COLOURS[at], TOP + 10 + 20 * at)
    return "\n".join([*parts, "</svg>", ""])


def _xs(sizes: Sequence[int]) -> list[float]:
    """Positions of the sizes on a logarithmic axis; a single size is centred."""
    logs = [math.log2(size) for size in sizes]
    width = WIDTH - LEFT - RIGHT
    if logs[0] == logs[-1]:
        return [LEFT + width / 2] * len(logs)
    return [LEFT + width * (log - logs[0]) / (logs[-1] - logs[0]) for log in logs]


def _bounds(values: Sequence[float]) -> tuple[float, float]:
    """The range of the values, rounded to twentieths and at least a tenth wide."""
    lowest = max(0.0, math.floor(min(values) * 20) / 20)
    highest = min(1.0, math.ceil(max(values) * 20) / 20)
    if highest - lowest < 0.1:  # noqa: PLR2004  # as said
        lowest, highest = max(0.0, highest - 0.1), min(1.0, max(lowest, 0.0) + 0.1)
    return lowest, highest


def _line(
    name: str, points: Sequence[tuple[float, float]], colour: str, legend_y: int
) -> list[str]:
    dash = ' stroke-dasharray="6 4"' if name == CEILING else ""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    x = WIDTH - RIGHT + 16
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>',
        *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points),
        f'<line x1="{x}" x2="{x + 22}" y1="{legend_y}" y2="{legend_y}" stroke="{colour}"'
        f' stroke-width="2"{dash}/>',
        f'<text x="{x + 28}" y="{legend_y + 4}">{escape(name)}</text>',
    ]
