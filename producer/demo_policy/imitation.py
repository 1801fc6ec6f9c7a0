"""Stage two: the language model learns to act as the demonstrations do, and to point at whatever a screen shows.

The vision tower is frozen by now, so every screen is encoded once. Half of what makes a step of an episode is pointing, so batches hold
single screens with a dozen elements to point at too: many more coordinates per token than an episode has.
Axes: B rows, T tokens, D dimensions, N patches.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from producer.demo_policy.examples import Example
from producer.demo_policy.grounding import MAX_GRADIENT_NORM, encode_screens
from producer.demo_policy.learning_rate import share_of_rate
from producer.policy.torch_policy.cpu_parallel import add_gradients, parallel_map, split_evenly
from producer.policy.torch_policy.render import Positions, Renderer, rope_positions

POINTINGS_PER_SCREEN = 12
ROWS_PER_PASS = 6
MUON_PARTS = 4
MATRIX_NDIM = 2
POINTING_PROMPT = "find"
SHARPNESS = 1.7
"""Of attention at the beginning: with 1 the likest of a hundred tokens gets too little of it to be
worth following."""


@dataclass(frozen=True, slots=True)
class Row:
    """One sequence to imitate."""

    tokens: Sequence[int]
    is_imitated: Sequence[bool]
    positions_3T: Positions
    features_ND: Tensor
    """Of all its screens, one after the other."""


class Pointer:
    """Makes rows of pointing."""

    def __init__(self, processor: Any, image_token: int) -> None:  # transformers
        self._tokenizer = processor.tokenizer
        self._image_token = image_token
        self._renderer = Renderer(processor, image_token)

    def row(self, example: Example, features_IND: Tensor, rng: random.Random) -> Row:  # axes
        """Up to a dozen elements of one screen of the example.

        The instruction names them, and each is touched in that order.
        """
        screen = rng.choice([index for index, elements in enumerate(example.pointings) if elements])
        elements = example.pointings[screen]
        chosen = rng.sample(elements, min(POINTINGS_PER_SCREEN, len(elements)))
        words = (
            word
            for element in chosen
            for word in self._tokenizer.convert_ids_to_tokens(element.name)
        )
        tokens = list(self._renderer.first_turn(" ".join([POINTING_PROMPT, *words]), example.grid))
        imitated = [False] * len(tokens)
        for element in chosen:
            click, opens, x, comma, y, closes = self._tokenizer(
                f"click({element.x},{element.y})", add_special_tokens=False
            )["input_ids"]
            said = [*element.name, x, comma, *element.name, y, closes]
            tokens += [click, opens, *said]
            imitated += [False, False, *[True] * len(said)]
        positions, _ = rope_positions(tokens, self._image_token, [example.grid], 0)
        return Row(tokens, imitated, positions, features_IND[screen])


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the stage, with a schedule of its own."""

    num_steps: int
    episodes_per_batch: int
    pointings_per_batch: int


def learn_to_act(
    network: Any,  # transformers
    processor: Any,  # transformers
    examples: Sequence[Example],
    phases: Sequence[Phase],
    *,
    learning_rate: float,
    matrix_rate: float,
    seed: int,
    on_step: Callable[[int, float], None],
) -> None:
    """Train the language model's layers in place (embeddings and vision stay).

    `on_step` gets (steps done, loss per imitated token).

    Matrices are trained by Muon at `matrix_rate` (arXiv 2502.16982), everything else by AdamW; see
    docs/decisions/policy.md.
    """
    grid = examples[0].grid

    def encode(example: Example) -> Tensor:
        return encode_screens(network.model.visual, example.patches_INC, grid.rows, grid.columns)

    with torch.no_grad():
        features = list(parallel_map(encode, examples, network.device))
    network.requires_grad_(requires_grad=False)
    parameters = _begin_by_likeness(network)
    rest = torch.optim.AdamW(
        [one for one in parameters if one.ndim != MATRIX_NDIM],
        lr=learning_rate,
        betas=(0.9, 0.98),
        weight_decay=0.01,
    )
    # A matrix's own step needs no other, so they are shared among the lanes.
    matrices = [
        torch.optim.Muon(
            part, lr=matrix_rate, momentum=0.95, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"
        )
        for part in split_evenly([one for one in parameters if one.ndim == MATRIX_NDIM], MUON_PARTS)
    ]
    optimizers = [rest, *matrices]
    rates = [learning_rate, *([matrix_rate] * len(matrices))]
    rng = random.Random(seed)  # noqa: S311  # variety, not secrets
    pointer = Pointer(processor, int(network.config.image_token_id))
    order: list[int] = []
    network.train()
    done = 0
    for phase in phases:
        for step in range(phase.num_steps):
            for optimizer, rate in zip(optimizers, rates, strict=True):
                for group in optimizer.param_groups:
                    group["lr"] = rate * share_of_rate(step, phase.num_steps)
            if len(order) < phase.episodes_per_batch:
                order = rng.sample(range(len(examples)), len(examples))
            episodes = [
                _episode(examples[index], features[index])
                for index in (order.pop() for _ in range(phase.episodes_per_batch))
            ]
            screens = [rng.randrange(len(examples)) for _ in range(phase.pointings_per_batch)]
            pointings = [pointer.row(examples[index], features[index], rng) for index in screens]
            loss = _backward(network, parameters, [*_passes(episodes), *_passes(pointings)])
            torch.nn.utils.clip_grad_norm_(parameters, MAX_GRADIENT_NORM)
            list(parallel_map(_step, optimizers, parameters[0].device))
            for optimizer in optimizers:
                optimizer.zero_grad()
            done += 1
            on_step(done, loss)


def _step(optimizer: torch.optim.Optimizer) -> None:
    optimizer.step()


def _begin_by_likeness(network: Any) -> list[torch.nn.Parameter]:  # transformers
    """The layers' parameters, to be trained.

    Keys begin as queries do, and what is found is written back as it was read, so that attention
    begins as a search for what is alike and a copy of it; without that, finding a word's patch is
    not learnt in this time.
    """
    language_model = network.model.language_model
    for layer in language_model.layers:
        attention = layer.self_attn
        attention.k_proj.weight.data.copy_(attention.q_proj.weight.data)
        attention.o_proj.weight.data.copy_(attention.v_proj.weight.data.T)
        for norm in (attention.q_norm, attention.k_norm):
            norm.weight.data.fill_(SHARPNESS)
    parameters = [
        parameter
        for name, parameter in language_model.named_parameters()
        if not name.startswith("embed_tokens")
    ]
    for parameter in parameters:
        parameter.requires_grad_(requires_grad=True)
    return parameters


def _episode(example: Example, features_IND: Tensor) -> Row:  # axes
    return Row(
        example.tokens, example.is_imitated, example.positions_3T, features_IND.flatten(0, 1)
    )


def _passes(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows of about the same length together, so that little is padded.

    The longest first, so that no lane is left with one at the end.
    """
    ordered = sorted(rows, key=lambda row: -len(row.tokens))
    return [
        ordered[start : start + ROWS_PER_PASS] for start in range(0, len(ordered), ROWS_PER_PASS)
    ]


def _backward(
    network: Any, parameters: Sequence[torch.nn.Parameter], passes: Sequence[Sequence[Row]]
) -> float:  # transformers
    """Gradients of the mean loss over all imitated tokens; that loss."""
    num_imitated = sum(sum(row.is_imitated) for rows in passes for row in rows)

    def one_pass(rows: Sequence[Row]) -> tuple[float, tuple[Tensor, ...]]:
        loss = _imitation_loss(network, rows) / num_imitated
        return float(loss.detach()), torch.autograd.grad(loss, parameters)

    total = 0.0
    for loss, gradients in parallel_map(one_pass, passes, parameters[0].device):
        add_gradients(parameters, gradients)
        total += loss
    return total


def _imitation_loss(network: Any, rows: Sequence[Row]) -> Tensor:  # transformers
    """Sum of the cross-entropies of the rows' imitated tokens."""
    logits_MV, targets_M = imitated_logits(network, rows)
    return functional.cross_entropy(logits_MV, targets_M, reduction="sum")


def imitated_logits(network: Any, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:  # transformers
    """Logits [M, V] for the rows' imitated tokens, and those tokens [M], row by row."""
    length = max(len(row.tokens) for row in rows)
    tokens_BT = torch.zeros((len(rows), length), dtype=torch.long)
    positions_3BT = torch.zeros((3, len(rows), length), dtype=torch.long)
    imitated_BT = torch.zeros((len(rows), length), dtype=torch.bool)
    for index, row in enumerate(rows):
        own = len(row.tokens)
        tokens_BT[index, :own] = torch.tensor(row.tokens)
        positions_3BT[:, index, :own] = torch.from_numpy(np.ascontiguousarray(row.positions_3T))
        imitated_BT[index, :own] = torch.tensor(row.is_imitated)
    embedded_BTD = network.get_input_embeddings()(tokens_BT)
    is_image_BT1 = (tokens_BT == network.config.image_token_id)[..., None]
    embedded_BTD = embedded_BTD.masked_scatter(
        is_image_BT1, torch.cat([row.features_ND for row in rows])
    )
    hidden_BTD = network.model.language_model(
        inputs_embeds=embedded_BTD, position_ids=positions_3BT, use_cache=False
    ).last_hidden_state
    batch, at = torch.nonzero(imitated_BT, as_tuple=True)
    return network.lm_head(hidden_BTD[batch, at - 1]), tokens_BT[batch, at]
