"""Demonstrations as training data: tokens with a loss mask, pixels of every screen, and labels.

Axes: I screens of an episode, N patches of a screen, C pixels of a patch, T tokens, K words of a
name.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from producer.agents.android.policy.demonstrations import DemonstratedTurn, Demonstration
from producer.agents.android.policy.vocabulary import (
    NUM_COORDINATES,
    element_label,
    element_name,
    split_words,
)
from producer.agents.android.sim.screens.widget import Element
from producer.policy.torch_policy.render import Grid, Positions, Renderer, rope_positions

MAX_LABEL_WORDS = 5
MIN_COVERAGE = 0.2
"""Share of a patch that an element must cover to label it."""
NO_LABEL = -1
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PatchLabels:
    """Labels of one screen's patches."""

    names_NK: Integers
    """Token ids of the element's label and state; NO_LABEL beyond its last word."""
    centers_N2: Integers
    """The element's center (x, y) in hundredths of the screen, or NO_LABEL."""


def element_center(element: Element, screen_px: tuple[int, int]) -> tuple[int, int]:
    """(x, y) in hundredths of the screen, which has this width and height; 0 to 99."""
    left, top, right, bottom = element.box
    last = NUM_COORDINATES - 1
    return (
        min(last, (left + right) // 2 * NUM_COORDINATES // screen_px[0]),
        min(last, (top + bottom) // 2 * NUM_COORDINATES // screen_px[1]),
    )


def label_patches(
    elements: Sequence[Element],
    grid: Grid,
    vocabulary: Mapping[str, int],
    screen_px: tuple[int, int],
) -> PatchLabels:
    """Label every patch with the element that covers most of it."""
    names_NK = np.full((grid.num_tokens, MAX_LABEL_WORDS), NO_LABEL, dtype=np.int64)
    centers_N2 = np.full((grid.num_tokens, 2), NO_LABEL, dtype=np.int64)
    width, height = screen_px[0] / grid.columns, screen_px[1] / grid.rows
    covered = np.zeros((grid.rows, grid.columns))
    for element in elements:
        left, top, right, bottom = element.box
        words = _label_tokens(element, vocabulary)
        # A list row is recognised by its icon and the beginning of its text; the rest of it is
        # empty or holds a switch.
        end_column = 2 if right - left > screen_px[0] // 2 else grid.columns
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
                    centers_N2[patch] = element_center(element, screen_px)
    return PatchLabels(names_NK, centers_N2)


def _label_tokens(element: Element, vocabulary: Mapping[str, int]) -> list[int]:
    words = split_words(element_label(element))
    tokens = [vocabulary[word] for word in words if word in vocabulary][: MAX_LABEL_WORDS - 1]
    if element.state in {"on", "off", "selected"}:
        tokens.append(vocabulary[element.state])
    return tokens


EPISODES_PER_CHUNK = 8
"""Episodes preprocessed at once. Bounds how many episodes are held as images."""


@dataclass(frozen=True, slots=True)
class GroundingTarget:
    """An element that its name identifies uniquely on its screen."""

    name: tuple[int, ...]
    """Token ids of the name."""
    x: int
    """Center in hundredths of the width, 0 to 99."""
    y: int


@dataclass(frozen=True, slots=True)
class EncodedEpisode:
    """A demonstration with its images as patches, which take a fourteenth of the memory."""

    instruction: str
    turns: tuple[DemonstratedTurn, ...]
    patches_INC: Tensor
    """uint8: the image processor's output scaled from [-1, 1] to 0-255."""
    screen_px: tuple[int, int]
    """Width and height of its screens."""
    grid: Grid


@dataclass(frozen=True, slots=True)
class Example:
    """One episode as training data."""

    tokens: tuple[int, ...]
    loss_mask: tuple[bool, ...]
    """Per token: whether it is a target of behaviour cloning."""
    positions_3T: Positions
    patches_INC: Tensor
    """As in `EncodedEpisode`."""
    names_INK: Tensor
    """`PatchLabels.names_NK` of every screen."""
    centers_IN2: Tensor
    """`PatchLabels.centers_N2` of every screen."""
    grounding_targets: tuple[tuple[GroundingTarget, ...], ...]
    """Per screen."""
    grid: Grid


def encode_demonstrations(
    demonstrations: Iterable[Demonstration], image_processor: Any
) -> list[EncodedEpisode]:
    """Run every demonstration through the policy's image processor."""
    remaining = iter(demonstrations)
    episodes = []
    while chunk := tuple(islice(remaining, EPISODES_PER_CHUNK)):
        pixels = image_processor(
            images=[screen for item in chunk for screen in item.screens], return_tensors="pt"
        )
        rows, columns = pixels["image_grid_thw"][0].tolist()[1:]
        grid = Grid(rows, columns)
        patches_INC = (
            ((pixels["pixel_values"] + 1) * 127.5)
            .round()
            .to(torch.uint8)
            .view(-1, grid.num_tokens, pixels["pixel_values"].shape[1])
        )
        own_patches = patches_INC.split([len(item.turns) for item in chunk])
        for one, own_INC in zip(chunk, own_patches, strict=True):
            encoded = own_INC.clone()
            size = one.screens[0].size
            episodes.append(EncodedEpisode(one.task.description, one.turns, encoded, size, grid))
    return episodes


def build_examples(
    episodes: Sequence[EncodedEpisode], processor: Any, image_token: int
) -> list[Example]:
    """Render every episode with the policy's own prompts."""
    renderer = Renderer(processor, image_token)
    return [
        _build_example(episode, renderer, processor.tokenizer, image_token) for episode in episodes
    ]


def _build_example(
    episode: EncodedEpisode, renderer: Renderer, tokenizer: Any, image_token: int
) -> Example:
    grid, screen_px = episode.grid, episode.screen_px
    vocabulary = tokenizer.get_vocab()
    tokens: list[int] = []
    loss_mask: list[bool] = []
    for index, turn in enumerate(episode.turns):
        prompt = (
            renderer.next_turn(grid, stopped=True)
            if index
            else renderer.first_turn(episode.instruction, grid)
        )
        completion = [*_tokenize(tokenizer, turn.text), tokenizer.eos_token_id]
        tokens += [*prompt, *completion]
        loss_mask += [False] * len(prompt) + [not turn.is_noise] * len(completion)
    grids = [grid] * len(episode.turns)
    positions_3T, _ = rope_positions(tokens, image_token=image_token, grids=grids)
    labels = [label_patches(turn.elements, grid, vocabulary, screen_px) for turn in episode.turns]
    return Example(
        tokens=tuple(tokens),
        loss_mask=tuple(loss_mask),
        positions_3T=positions_3T,
        patches_INC=episode.patches_INC,
        names_INK=torch.from_numpy(np.stack([label.names_NK for label in labels])),
        centers_IN2=torch.from_numpy(np.stack([label.centers_N2 for label in labels])),
        grounding_targets=tuple(
            _grounding_targets(turn.elements, tokenizer, screen_px) for turn in episode.turns
        ),
        grid=grid,
    )


def _grounding_targets(
    elements: Sequence[Element], tokenizer: Any, screen_px: tuple[int, int]
) -> tuple[GroundingTarget, ...]:
    """The elements with a name that no other element of the screen has."""
    names = [element_name(element) for element in elements]
    return tuple(
        GroundingTarget(tuple(_tokenize(tokenizer, name)), *element_center(element, screen_px))
        for name, element in zip(names, elements, strict=True)
        if name and names.count(name) == 1
    )


def _tokenize(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])
