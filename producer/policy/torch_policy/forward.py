"""Forward pass of the language model over tokens and screens.

Pads segments to one batch, computes their rope positions and puts image features in place.

Axes: B rows, T tokens (padded on the right), D text dimension, N tokens of one image, V vocabulary,
C cache positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from producer.policy.torch_policy.kv_cache import WorkingCache
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.render import rope_positions
from producer.policy.torch_policy.screen_cache import ScreenFeatures


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive tokens of one sequence."""

    tokens: list[int]
    screens: list[ScreenFeatures]
    """In the order of their placeholders in `tokens`."""
    start_position: int = 0
    """Rope position of the first token."""


@dataclass(frozen=True, slots=True)
class PaddedBatch:
    """Segments padded on the right."""

    tokens_BT: Tensor
    positions_3BT: Tensor
    screens: list[ScreenFeatures]
    """Of all rows, row by row."""
    lengths: list[int]
    """Tokens per row, without padding."""
    next_positions: list[int]
    """Rope position after each row's last token."""


def pad_segments(segments: Sequence[Segment], network: Network) -> PaddedBatch:
    """The segments as one batch on the network's device."""
    lengths = [len(segment.tokens) for segment in segments]
    tokens_BT = np.zeros((len(segments), max(lengths)), dtype=np.int64)
    positions_3BT = np.zeros((3, *tokens_BT.shape), dtype=np.int64)
    next_positions = []
    for row, segment in enumerate(segments):
        tokens_BT[row, : lengths[row]] = segment.tokens
        positions_3BT[:, row, : lengths[row]], next_position = rope_positions(
            segment.tokens,
            image_token=network.image_token,
            grids=[screen.grid for screen in segment.screens],
            start=segment.start_position,
        )
        next_positions.append(next_position)
    return PaddedBatch(
        tokens_BT=torch.from_numpy(tokens_BT).to(network.device),
        positions_3BT=torch.from_numpy(positions_3BT).to(network.device),
        screens=[screen for segment in segments for screen in segment.screens],
        lengths=lengths,
        next_positions=next_positions,
    )


def hidden_states(
    network: Network,
    batch: PaddedBatch,
    cache: WorkingCache | None = None,
    mask_B1TC: Tensor | None = None,
) -> Tensor:
    """Last hidden states [B, T, D].

    Without a cache attention is causal within each row; padding comes last, so it is not attended
    to.
    """
    embeddings_BTD = network.base.get_input_embeddings()(batch.tokens_BT)
    deepstack = {}
    if batch.screens:
        is_image_BT = batch.tokens_BT == network.image_token
        embeddings_BTD[is_image_BT] = torch.cat([screen.features_ND for screen in batch.screens])
        if len(batch.screens[0].deepstack_LND):
            layers_LND = torch.cat([screen.deepstack_LND for screen in batch.screens], dim=1)
            deepstack = {
                "visual_pos_masks": is_image_BT,
                "deepstack_visual_embeds": list(layers_LND),
            }
    output = network.language_model(
        inputs_embeds=embeddings_BTD,
        position_ids=network.positions(batch.positions_3BT),
        attention_mask=mask_B1TC,
        cache=cache,
        use_cache=cache is not None,
        **deepstack,
    )
    hidden: Tensor = output.last_hidden_state
    return hidden


def compute_logits(network: Network, hidden: Tensor) -> Tensor:
    """[..., D] to [..., V] in float32."""
    logits: Tensor = network.base.lm_head(hidden)
    return logits.float()
