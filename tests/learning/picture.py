"""A line chart as SVG: sampled success by step."""

from collections.abc import Sequence

WIDTH, HEIGHT, MARGIN = 640, 280, 40
COLORS = {"rl": "#1565c0", "shuffled": "#9e9e9e", "rejection": "#e65100"}
LABELS = {"rl": "RL", "shuffled": "shuffled rewards", "rejection": "rejection sampling"}


def draw(curves: Sequence[tuple[str, int, Sequence[float]]]) -> str:
    """(kind, seed, success of each step, 0 to 1) of each training -> an SVG document."""
    steps = max(len(curve) for _, _, curve in curves)

    def across(step: int) -> float:
        return MARGIN + (step - 1) / max(steps - 1, 1) * (WIDTH - 2 * MARGIN)

    def up(success: float) -> float:
        return HEIGHT - MARGIN - success * (HEIGHT - 2 * MARGIN)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for success in (0, 0.25, 0.5, 0.75, 1):
        y = up(success)
        parts += [
            f'<line x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{y}" y2="{y}" stroke="#ddd"/>',
            f'<text x="{MARGIN - 6}" y="{y + 4}" text-anchor="end">{success:g}</text>',
        ]
    for step in (1, steps):
        parts.append(
            f'<text x="{across(step)}" y="{HEIGHT - MARGIN + 18}" text-anchor="middle">'
            f"step {step}</text>"
        )
    for kind, seed, curve in curves:
        points = " ".join(
            f"{across(step):.1f},{up(success):.1f}" for step, success in enumerate(curve, 1)
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{COLORS[kind]}"/>')
        parts.append(
            f'<text x="{across(len(curve)) + 5}" y="{up(curve[-1]) + 4:.1f}" fill="{COLORS[kind]}">'
            f"{seed}</text>"
        )
    for place, kind in enumerate(dict.fromkeys(kind for kind, _, _ in curves)):
        parts.append(
            f'<text x="{MARGIN + 160 * place}" y="{MARGIN - 16}" fill="{COLORS[kind]}">'
            f"{LABELS[kind]}, by seed</text>"
        )
    return "\n".join([*parts, "</svg>", ""])
