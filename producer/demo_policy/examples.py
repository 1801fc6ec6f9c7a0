"""Demonstrations as numbers: an episode's tokens with which of them are to be imitated, and what every patch of its screens shows.

Axes: I screens of an episode, N image tokens of a screen, T tokens, K words of a name.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from producer.demo_policy.demonstrations import Demonstration, SpokenTurn, label_of, spoken_name
from producer.demo_policy.words import NUM_NUMBERS, pieces
from producer.environments.android_sim import Element
from producer.environments.android_sim.screens.widget import HEIGHT_PX, WIDTH_PX
from producer.policy.torch_policy.render import Grid, Positions, Renderer, rope_positions

MAX_NAME_WORDS = 5
MIN_SHARE = 0.2
"""Of a patch that an element must cover to be what the patch shows."""
NOTHING = -1
CHUNK = 8
"""Episodes preprocessed at once; only so many are held as pictures."""
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Pointing:
    """An element as something to point at."""

    name: tuple[int, ...]
    """Tokens of its label."""
    x: int
    """Middle, in hundredths of the width (0-99)."""
    y: int


@dataclass(frozen=True, slots=True)
class Example:
    """One episode."""

    tokens: tuple[int, ...]
    is_imitated: tuple[bool, ...]
    """Per token: whether the policy is to say it."""
    positions_3T: Positions
    patches_INC: Tensor
    """uint8; the processor's output scaled from [-1, 1] to 0-255."""
    names_INK: Tensor
    """Words of what each patch shows; NOTHING where there are fewer, or nothing."""
    places_IN2: Tensor
    """Its middle in hundredths; NOTHING for nothing."""
    pointings: tuple[tuple[Pointing, ...], ...]
    """Per screen."""
    grid: Grid


@dataclass(frozen=True, slots=True)
class EncodedEpisode:
    """A demonstration whose pictures have become patches, a fourteenth of their size."""

    description: str
    turns: tuple[SpokenTurn, ...]
    patches_INC: Tensor
    grid: Grid


def encode_demonstrations(
    demonstrations: Iterable[Demonstration], image_processor: Any
) -> list[EncodedEpisode]:  # transformers
    """Every episode through the policy's own image processor."""
    remaining = iter(demonstrations)
    seen = []
    while chunk := tuple(islice(remaining, CHUNK)):
        pixels = image_processor(
            images=[screen for one in chunk for screen in one.screens], return_tensors="pt"
        )
        rows, columns = pixels["image_grid_thw"][0].tolist()[1:]
        grid = Grid(rows, columns)
        patches = (
            ((pixels["pixel_values"] + 1) * 127.5)
            .round()
            .to(torch.uint8)
            .view(-1, grid.num_tokens, pixels["pixel_values"].shape[1])
        )
        for one, own in zip(chunk, patches.split([len(one.turns) for one in chunk]), strict=True):
            seen.append(EncodedEpisode(one.task.description, one.turns, own.clone(), grid))
    return seen


def encode_episodes(
    episodes: Sequence[EncodedEpisode], processor: Any, image_token: int
) -> list[Example]:  # transformers
    """Every episode with the policy's own prompts around its turns."""
    renderer = Renderer(processor, image_token)
    return [_encode(episode, renderer, processor.tokenizer, image_token) for episode in episodes]


def _encode(
    episode: EncodedEpisode, renderer: Renderer, tokenizer: Any, image_token: int
) -> Example:  # transformers
    grid = episode.grid
    tokens: list[int] = []
    imitated: list[bool] = []
    names, places, pointings = [], [], []
    for index, turn in enumerate(episode.turns):
        prompt = (
            renderer.next_turn(grid, stopped=True)
            if index
            else renderer.first_turn(episode.description, grid)
        )
        said = [
            *tokenizer(turn.text, add_special_tokens=False)["input_ids"],
            tokenizer.eos_token_id,
        ]
        tokens += [*prompt, *said]
        imitated += [False] * len(prompt) + [not turn.is_noise] * len(said)
        shown, where = _what_patches_show(turn.elements, grid, tokenizer)
        names.append(shown)
        places.append(where)
        pointings.append(_pointings(turn.elements, tokenizer))
    positions, _ = rope_positions(tokens, image_token, [grid] * len(episode.turns), 0)
    return Example(
        tuple(tokens),
        tuple(imitated),
        positions,
        episode.patches_INC,
        torch.from_numpy(np.stack(names)),
        torch.from_numpy(np.stack(places)),
        tuple(pointings),
        grid,
    )


def _middle(element: Element) -> tuple[int, int]:
    left, top, right, bottom = element.box
    last = NUM_NUMBERS - 1
    return (
        min(last, (left + right) // 2 * NUM_NUMBERS // WIDTH_PX),
        min(last, (top + bottom) // 2 * NUM_NUMBERS // HEIGHT_PX),
    )


def _pointings(elements: Sequence[Element], tokenizer: Any) -> tuple[Pointing, ...]:  # transformers
    """What can be told apart by its name."""
    names = [spoken_name(element) for element in elements]
    return tuple(
        Pointing(tuple(tokenizer(name, add_special_tokens=False)["input_ids"]), *_middle(element))
        for name, element in zip(names, elements, strict=True)
        if name and names.count(name) == 1
    )


def _what_patches_show(
    elements: Sequence[Element], grid: Grid, tokenizer: Any
) -> tuple[Integers, Integers]:  # transformers
    """(names [N, K], places [N, 2]): of each patch the element that covers most of it."""
    names = np.full((grid.num_tokens, MAX_NAME_WORDS), NOTHING, dtype=np.int64)
    places = np.full((grid.num_tokens, 2), NOTHING, dtype=np.int64)
    width, height = WIDTH_PX / grid.columns, HEIGHT_PX / grid.rows
    covered = np.zeros((grid.rows, grid.columns))
    vocabulary = tokenizer.get_vocab()
    for element in elements:
        left, top, right, bottom = element.box
        words = [vocabulary[piece] for piece in pieces(label_of(element)) if piece in vocabulary][
            : MAX_NAME_WORDS - 1
        ]
        if element.state in {"on", "off", "selected"}:
            words.append(vocabulary[element.state])
        # A list's row is known by its icon and the beginning of its words; its rest shows a switch
        # or nothing.
        last_column = 2 if right - left > WIDTH_PX // 2 else grid.columns
        for row in range(max(0, int(top // height)), min(grid.rows, int(-(-bottom // height)))):
            high = min(bottom, (row + 1) * height) - max(top, row * height)
            for column in range(
                max(0, int(left // width)), min(last_column, int(-(-right // width)))
            ):
                wide = min(right, (column + 1) * width) - max(left, column * width)
                if wide * high > max(covered[row, column], MIN_SHARE * width * height):
                    covered[row, column] = wide * high
                    patch = row * grid.columns + column
                    names[patch] = NOTHING
                    names[patch, : len(words)] = words
                    places[patch] = _middle(element)
    return names, places
