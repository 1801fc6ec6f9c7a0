"""Labels of a screen's patches for the alignment of the vision tower: element name and center.

Axes: N patches of a screen, K words of a name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from producer.agents.android.policy.vocabulary import NUM_COORDINATES, element_label, split_words
from producer.agents.android.sim.screens.widget import HEIGHT_PX, WIDTH_PX, Element
from producer.policy.torch_policy.render import Grid

MAX_LABEL_WORDS = 5
MIN_COVERAGE = 0.2
"""Share of a patch that an element must cover to label it."""
NO_LABEL = -1
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PatchLabels:
    """Labels of one screen."""

    names_NK: Integers
    """Tokens of the element's label and state; NO_LABEL beyond its last word."""
    centers_N2: Integers
    """Its center (x, y) in hundredths of the screen, or NO_LABEL."""


def element_center(element: Element) -> tuple[int, int]:
    """(x, y) in hundredths of the screen, 0 to 99."""
    left, top, right, bottom = element.box
    last = NUM_COORDINATES - 1
    return (
        min(last, (left + right) // 2 * NUM_COORDINATES // WIDTH_PX),
        min(last, (top + bottom) // 2 * NUM_COORDINATES // HEIGHT_PX),
    )


def label_patches(
    elements: Sequence[Element], grid: Grid, vocabulary: Mapping[str, int]
) -> PatchLabels:
    """Label every patch with the element that covers most of it."""
    names_NK = np.full((grid.num_tokens, MAX_LABEL_WORDS), NO_LABEL, dtype=np.int64)
    centers_N2 = np.full((grid.num_tokens, 2), NO_LABEL, dtype=np.int64)
    width, height = WIDTH_PX / grid.columns, HEIGHT_PX / grid.rows
    covered = np.zeros((grid.rows, grid.columns))
    for element in elements:
        left, top, right, bottom = element.box
        words = _label_tokens(element, vocabulary)
        # A list row is recognised by its icon and the beginning of its text; the rest of it is a
        # switch or empty.
        end_column = 2 if right - left > WIDTH_PX // 2 else grid.columns
        for row in range(max(0, int(top // height)), min(grid.rows, int(-(-bottom // height)))):
            high = min(bottom, (row + 1) * height) - max(top, row * height)
            for column in range(
                max(0, int(left // width)), min(end_column, int(-(-right // width)))
            ):
                wide = min(right, (column + 1) * width) - max(left, column * width)
                if wide * high > max(covered[row, column], MIN_COVERAGE * width * height):
                    covered[row, column] = wide * high
                    patch = row * grid.columns + column
                    names_NK[patch] = NO_LABEL
                    names_NK[patch, : len(words)] = words
                    centers_N2[patch] = element_center(element)
    return PatchLabels(names_NK, centers_N2)


def _label_tokens(element: Element, vocabulary: Mapping[str, int]) -> list[int]:
    words = split_words(element_label(element))
    tokens = [vocabulary[word] for word in words if word in vocabulary][: MAX_LABEL_WORDS - 1]
    if element.state in {"on", "off", "selected"}:
        tokens.append(vocabulary[element.state])
    return tokens
