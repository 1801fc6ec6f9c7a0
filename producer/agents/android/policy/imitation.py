"""Stage two of the warm-up: behaviour cloning of demonstrations and grounding sequences.

The vision tower is frozen by now, so every screen is encoded once. In a grounding sequence a dozen
named elements of one screen are clicked: clicking the right place is half of what an episode takes,
and such a sequence has many more coordinates per token than an episode.

Axes: I screens of an episode, B rows, T tokens, M target tokens, D dimensions, N patches, V
vocabulary.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from producer.agents.android.policy.alignment import encode_patches
from producer.agents.android.policy.examples import Example
from producer.agents.android.policy.recipe import ImitationPhase, WarmUpRecipe, learning_rate_factor
from producer.policy.torch_policy.cpu_parallel import parallel_map
from producer.policy.torch_policy.logprobs import length_batches
from producer.policy.torch_policy.render import Positions, Renderer, rope_positions
from producer.supervised.optimizers import accumulate_gradients, make_optimizers, step_optimizers

TARGETS_PER_SCREEN = 12
GROUNDING_PROMPT = "find"


@dataclass(frozen=True, slots=True)
class TrainingSequence:
    """One sequence for behaviour cloning."""

    tokens: Sequence[int]
    loss_mask: Sequence[bool]
    """Per token, whether it is a prediction target."""
    positions_3T: Positions
    features_ND: Tensor
    """Vision features of all the sequence's screens, concatenated."""


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


TOKENS_PER_MICRO_BATCH = 1400
"""Padded tokens: few enough that a layer's activations stay in the cache. 6 rows whatever their
length took a third more time."""
INITIAL_QK_NORM = 1.7
"""Initial weight of query and key norms. With 1, attention over a hundred tokens is too flat for
the most similar one to matter."""


def train_imitation(
    network: Any,
    processor: Any,
    examples: Sequence[Example],
    recipe: WarmUpRecipe,
    on_step: Callable[[int, float], None],
) -> None:
    """Train the language model's layers in place; embeddings and vision tower stay frozen.

    Matrices are trained by Muon (arXiv 2502.16982), everything else by AdamW; see
    docs/measurements/demo-policy.md. `on_step` gets (steps done, loss per target token).
    """
    features = _encode_screens(network, examples)
    network.requires_grad_(requires_grad=False)
    parameters = _initialize_attention(network)
    optimizers = make_optimizers(
        parameters,
        learning_rate=recipe.imitation_learning_rate,
        muon_learning_rate=recipe.muon_learning_rate,
        weight_decay=0.01,
        betas=(0.9, 0.98),
    )
    grounding = GroundingSampler(processor, int(network.config.image_token_id))
    batches = _BatchSampler(examples, features, grounding, recipe.seed)
    network.train()
    done = 0
    for phase in recipe.imitation_phases:
        for step in range(phase.num_steps):
            factor = learning_rate_factor(step, phase.num_steps)
            loss = _accumulate_gradients(network, parameters, batches.sample(phase))
            step_optimizers(optimizers, factor, parameters[0].device)
            done += 1
            on_step(done, loss)


def target_logits(network: Any, sequences: Sequence[TrainingSequence]) -> tuple[Tensor, Tensor]:
    """Logits [M, V] of the sequences' target tokens, and those tokens [M], row by row."""
    length = max(len(sequence.tokens) for sequence in sequences)
    tokens_BT = torch.zeros((len(sequences), length), dtype=torch.long)
    positions_3BT = torch.zeros((3, len(sequences), length), dtype=torch.long)
    is_target_BT = torch.zeros((len(sequences), length), dtype=torch.bool)
    for row, sequence in enumerate(sequences):
        own = len(sequence.tokens)
        tokens_BT[row, :own] = torch.tensor(sequence.tokens)
        positions_3BT[:, row, :own] = torch.from_numpy(np.ascontiguousarray(sequence.positions_3T))
        is_target_BT[row, :own] = torch.tensor(sequence.loss_mask)
    embeddings_BTD = network.get_input_embeddings()(tokens_BT)
    is_image_BT1 = (tokens_BT == network.config.image_token_id)[..., None]
    embeddings_BTD = embeddings_BTD.masked_scatter(
        is_image_BT1, torch.cat([sequence.features_ND for sequence in sequences])
    )
    hidden_BTD = network.model.language_model(
        inputs_embeds=embeddings_BTD, position_ids=positions_3BT, use_cache=False
    ).last_hidden_state
    rows, at = torch.nonzero(is_target_BT, as_tuple=True)
    return network.lm_head(hidden_BTD[rows, at - 1]), tokens_BT[rows, at]


class _BatchSampler:
    """Draws a batch's episodes (in seeded epochs) and grounding sequences, as micro-batches."""

    def __init__(
        self,
        examples: Sequence[Example],
        features: Sequence[Tensor],
        grounding: GroundingSampler,
        seed: int,
    ) -> None:
        self._examples = examples
        self._features = features
        self._grounding = grounding
        self._rng = random.Random(seed)  # noqa: S311  # variety, not secrets
        self._epoch: list[int] = []
        self._groundable = [
            index for index, example in enumerate(examples) if any(example.grounding_targets)
        ]

    def sample(self, phase: ImitationPhase) -> list[list[TrainingSequence]]:
        """One batch of the phase."""
        rng, num_examples = self._rng, len(self._examples)
        if len(self._epoch) < phase.episodes_per_batch:
            self._epoch = rng.sample(range(num_examples), num_examples)
        episodes = [self._episode(self._epoch.pop()) for _ in range(phase.episodes_per_batch)]
        indices = [rng.choice(self._groundable) for _ in range(phase.grounding_per_batch)]
        grounding = [
            self._grounding.sample(self._examples[index], self._features[index], rng)
            for index in indices
        ]
        return [*_micro_batches(episodes), *_micro_batches(grounding)]

    def _episode(self, index: int) -> TrainingSequence:
        example = self._examples[index]
        return TrainingSequence(
            tokens=example.tokens,
            loss_mask=example.loss_mask,
            positions_3T=example.positions_3T,
            features_ND=self._features[index].flatten(0, 1),
        )


def _encode_screens(network: Any, examples: Sequence[Example]) -> list[Tensor]:
    """Features [I, N, D] of every example's screens."""

    def encode(example: Example) -> Tensor:
        return encode_patches(network.model.visual, example.patches_INC, example.grid)

    with torch.no_grad():
        return list(parallel_map(encode, examples, network.device))


def _initialize_attention(network: Any) -> list[nn.Parameter]:
    """Initialise attention to copy from the most similar token; returns the layers' parameters.

    Keys equal queries, and the output projection is the transpose of the value projection.
    Otherwise the network does not learn to find a word's patch within these steps.
    """
    language_model = network.model.language_model
    for layer in language_model.layers:
        attention = layer.self_attn
        attention.k_proj.weight.data.copy_(attention.q_proj.weight.data)
        attention.o_proj.weight.data.copy_(attention.v_proj.weight.data.T)
        for norm in (attention.q_norm, attention.k_norm):
            norm.weight.data.fill_(INITIAL_QK_NORM)
    parameters = [
        parameter
        for name, parameter in language_model.named_parameters()
        if not name.startswith("embed_tokens")
    ]
    for parameter in parameters:
        parameter.requires_grad_(requires_grad=True)
    return parameters


def _micro_batches(sequences: Sequence[TrainingSequence]) -> list[list[TrainingSequence]]:
    """Sequences of similar length together, to save padding; longest first, to balance cores."""
    lengths = [len(sequence.tokens) for sequence in sequences]
    return [
        [sequences[at] for at in batch] for batch in length_batches(lengths, TOKENS_PER_MICRO_BATCH)
    ]


def _accumulate_gradients(
    network: Any,
    parameters: Sequence[nn.Parameter],
    micro_batches: Sequence[Sequence[TrainingSequence]],
) -> float:
    """Gradients of the mean cross-entropy over all target tokens; returns that mean."""
    num_targets = sum(
        sum(sequence.loss_mask) for sequences in micro_batches for sequence in sequences
    )

    def loss_of(sequences: Sequence[TrainingSequence]) -> Tensor:
        logits_MV, targets_M = target_logits(network, sequences)
        return functional.cross_entropy(logits_MV, targets_M, reduction="sum") / num_targets

    return accumulate_gradients(loss_of, micro_batches, parameters).loss
