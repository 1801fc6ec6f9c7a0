"""Tokens and screens into the language model.

Embeddings with image features in place, rope positions, padding to one batch.

Axes: B rows, T tokens (padded on the right), D text dimension, N tokens of one image, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.render import rope_positions
from producer.policy.torch_policy.screen_encoder import ScreenFeatures


class LayerCache(Protocol):
    """What the language model's attention asks of a cache."""

    def update(self, keys_BHTD: Tensor, values_BHTD: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """Add a layer's new keys and values; what it shall attend to."""
        ...


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive tokens of one sequence."""

    tokens: list[int]
    seen: list[ScreenFeatures]
    """In the order of their placeholders in `tokens`."""
    start: int = 0
    """Rope position of the first token."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Chunks padded on the right."""

    tokens_BT: Tensor
    positions_3BT: Tensor
    seen: list[ScreenFeatures]
    """Of all rows, row by row."""
    lengths: list[int]
    ends: list[int]
    """Rope position after each row's last token."""


def pad(chunks: Sequence[Chunk], network: Network) -> Batch:
    """One batch of the chunks."""
    lengths = [len(chunk.tokens) for chunk in chunks]
    tokens_BT = np.zeros((len(chunks), max(lengths)), dtype=np.int64)
    positions_3BT = np.zeros((3, *tokens_BT.shape), dtype=np.int64)
    ends = []
    for row, chunk in enumerate(chunks):
        tokens_BT[row, : lengths[row]] = chunk.tokens
        grids = [seen.grid for seen in chunk.seen]
        positions_3BT[:, row, : lengths[row]], end = rope_positions(
            chunk.tokens, network.image_token, grids, chunk.start
        )
        ends.append(end)
    seen = [seen for chunk in chunks for seen in chunk.seen]
    device = network.device
    return Batch(
        torch.from_numpy(tokens_BT).to(device),
        torch.from_numpy(positions_3BT).to(device),
        seen,
        lengths,
        ends,
    )


def hidden_states(
    network: Network, batch: Batch, cache: LayerCache | None = None, mask_B1TC: Tensor | None = None
) -> Tensor:
    """Last hidden states [B, T, D].

    Without a cache attention is causal over the rows themselves (padding stands after all that
    counts).
    """
    embeddings_BTD = network.base.get_input_embeddings()(batch.tokens_BT)
    is_image_BT = None
    deepstack = None
    if batch.seen:
        is_image_BT = batch.tokens_BT == network.image_token
        embeddings_BTD[is_image_BT] = torch.cat([seen.features_ND for seen in batch.seen])
        if len(batch.seen[0].deepstack_LND):
            deepstack = list(torch.cat([seen.deepstack_LND for seen in batch.seen], dim=1))
    output = network.language_model(
        inputs_embeds=embeddings_BTD,
        position_ids=batch.positions_3BT,
        attention_mask=mask_B1TC,
        past_key_values=cache,
        use_cache=cache is not None,
        visual_pos_masks=is_image_BT,
        deepstack_visual_embeds=deepstack,
    )
    hidden: Tensor = output.last_hidden_state
    return hidden


def logits_of(network: Network, hidden: Tensor) -> Tensor:
    """[..., D] to [..., V] in float32."""
    logits: Tensor = network.base.lm_head(hidden)
    return logits.float()
