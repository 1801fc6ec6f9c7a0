"""Grounding sequences: single screens on which a dozen named elements are clicked.

Clicking the right place is half of what an episode takes, and a grounding sequence has many more
coordinates per token than an episode.

Axes: I screens of an episode, N patches of a screen, T tokens, D dimensions.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from producer.agents.android.policy.examples import Example
from producer.policy.torch_policy.render import Positions, Renderer, rope_positions

TARGETS_PER_SCREEN = 12
GROUNDING_PROMPT = "find"


@dataclass(frozen=True, slots=True)
class TrainingSequence:
    """One sequence for behaviour cloning."""

    tokens: Sequence[int]
    loss_mask: Sequence[bool]
    """Per token: whether it is a target."""
    positions_3T: Positions
    features_ND: Tensor
    """Of all its screens, concatenated."""


class GroundingSampler:
    """Draws grounding sequences from examples."""

    def __init__(self, processor: Any, image_token: int) -> None:
        self._tokenizer = processor.tokenizer
        self._image_token = image_token
        self._renderer = Renderer(processor, image_token)

    def sample(
        self, example: Example, features_IND: Tensor, rng: random.Random
    ) -> TrainingSequence:
        """One screen of the example with up to `TARGETS_PER_SCREEN` of its elements.

        The instruction lists their names, and the completion clicks each in that order.
        """
        screen = rng.choice(
            [index for index, targets in enumerate(example.grounding_targets) if targets]
        )
        targets = example.grounding_targets[screen]
        chosen = rng.sample(targets, min(TARGETS_PER_SCREEN, len(targets)))
        words = (
            word for target in chosen for word in self._tokenizer.convert_ids_to_tokens(target.name)
        )
        instruction = " ".join([GROUNDING_PROMPT, *words])
        tokens = list(self._renderer.first_turn(instruction, example.grid))
        loss_mask = [False] * len(tokens)
        for target in chosen:
            click, opening, x, comma, y, closing = self._tokenizer(
                f"click({target.x},{target.y})", add_special_tokens=False
            )["input_ids"]
            arguments = [*target.name, x, comma, *target.name, y, closing]
            tokens += [click, opening, *arguments]
            loss_mask += [False, False, *[True] * len(arguments)]
        positions_3T, _ = rope_positions(
            tokens, image_token=self._image_token, grids=[example.grid]
        )
        return TrainingSequence(tokens, loss_mask, positions_3T, features_IND[screen])
