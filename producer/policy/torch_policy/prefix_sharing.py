"""Prefix sharing: packs recorded sequences with a common prefix into one row (`packed_rows`).

Rollouts of a group share the prompt, and the episode until an action or a screenshot differs.
(LoRA dropout draws one mask for a shared token.)

Axes: B rows, T tokens of the longest row, D text dimension.
"""

from collections.abc import Sequence
from hashlib import sha256

import numpy as np
import torch
from torch import Tensor

from producer.policy.memory_demand import pass_tokens
from producer.policy.sequences import TokenSequence
from producer.policy.torch_policy.forward import NetworkInput, hidden_states
from producer.policy.torch_policy.memory_check import size_of_network
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.packed_rows import (
    Indices,
    PackedSequence,
    SharedRow,
    pack_keys,
    packed_length,
    share_keys,
    tree_mask,
)
from producer.policy.torch_policy.placement import to_device
from producer.policy.torch_policy.render import rope_positions
from producer.policy.torch_policy.screen_encoder import ScreenEncoder

TokenRow = Sequence[TokenSequence]
"""Sequences of one row, in its order; at least one."""


def max_pass_tokens(network: Network) -> int:
    """Maximum padded tokens of one pass of an update."""
    size = size_of_network(network.base.config, network.base.dtype)
    return pass_tokens(size, network.device.type)


def share_rows(
    network: Network, sequences: Sequence[TokenSequence], max_tokens: int
) -> list[SharedRow]:
    """Group the sequences by content into rows of at most `max_tokens` tokens (`share_keys`)."""
    keys = [_content_ids(sequence, network.image_token) for sequence in sequences]
    return share_keys(keys, max_tokens, size_of_network(network.base.config, network.base.dtype))


def num_padded_tokens(network: Network, rows: Sequence[TokenRow]) -> int:
    """Tokens of the rows, padded to the longest; a prefix shared within a row counts once."""
    return len(rows) * max(packed_length(_pack_row(network, row)) for row in rows)


def sampling_states(network: Network, encoder: ScreenEncoder, rows: Sequence[TokenRow]) -> Tensor:
    """[N, D]: the hidden state that each completion token was drawn from, sequence by sequence.

    Runs one forward pass over the rows.
    """
    packed = [_pack_row(network, row) for row in rows]
    batch = _input(network, encoder, rows, packed)
    hidden_BTD = hidden_states(
        network, batch, mask_B1TC=tree_mask(packed, network.base.dtype, network.device)
    )
    slots = [
        number * hidden_BTD.shape[1] + one.slots[np.array(sequence.sampled_at, dtype=np.int64) - 1]
        for number, (row, own) in enumerate(zip(rows, packed, strict=True))
        for sequence, one in zip(row, own, strict=True)
    ]
    # A shared state is selected several times. On a CPU the gradient of index_select is
    # bit-identical on every run; that of indexing is not.
    indices = to_device(torch.from_numpy(np.concatenate(slots)), network.device)
    return hidden_BTD.flatten(0, 1).index_select(0, indices)


def _pack_row(network: Network, row: TokenRow) -> list[PackedSequence]:
    return pack_keys([_content_ids(sequence, network.image_token) for sequence in row])


def _input(
    network: Network,
    encoder: ScreenEncoder,
    rows: Sequence[TokenRow],
    packed: Sequence[Sequence[PackedSequence]],
) -> NetworkInput:
    shape = (len(rows), max(packed_length(own) for own in packed))
    tokens_BT = np.zeros(shape, dtype=np.int64)
    positions_3BT = np.zeros((3, *shape), dtype=np.int64)
    screens = []
    for number, (row, own) in enumerate(zip(rows, packed, strict=True)):
        for sequence, (num_shared, slots) in zip(row, own, strict=True):
            shown = encoder.encode(sequence.screenshots)
            positions_3T, _ = rope_positions(
                sequence.tokens, image_token=network.image_token, grids=[one.grid for one in shown]
            )
            new = slots[num_shared:]
            tokens_BT[number, new] = sequence.tokens[num_shared:]
            positions_3BT[:, number, new] = positions_3T[:, num_shared:]
            num_left = sum(token == network.image_token for token in sequence.tokens[:num_shared])
            for screen in shown:
                if num_left <= 0:
                    screens.append(screen)
                num_left -= screen.grid.num_tokens
    return NetworkInput(
        to_device(torch.from_numpy(tokens_BT), network.device),
        to_device(torch.from_numpy(positions_3BT), network.device),
        screens,
    )


def _content_ids(sequence: TokenSequence, image_token: int | None) -> Indices:
    """A number per token; an image's placeholders get one that identifies its content."""
    keys = np.array(sequence.tokens, dtype=np.int64)
    if not sequence.screenshots:
        return keys
    is_image = keys == image_token
    begins = is_image & ~np.concatenate([[False], is_image[:-1]])
    refs = [screenshot.ref for screenshot in sequence.screenshots]
    if np.count_nonzero(begins) != len(refs):
        # Adjacent placeholders do not show where an image ends, so all refs are hashed together.
        refs = ["".join(refs)] * np.count_nonzero(begins)
    numbers = np.array([_screen_id(ref) for ref in refs])
    keys[is_image] = numbers[np.cumsum(begins)[is_image] - 1]
    return keys


def _screen_id(ref: str) -> int:
    """A number below every token id, equal only for equal refs."""
    return -1 - int.from_bytes(sha256(ref.encode()).digest()[:7], "big")
