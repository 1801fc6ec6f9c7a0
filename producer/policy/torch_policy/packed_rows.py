"""Packs sequences with common prefixes into one row, as a prefix tree.

A row holds its first sequence in full, and of each later one the suffix after the prefix that it
shares with the previous one. A tree attention mask and the original positions keep hidden states
equal to those of separate sequences, up to rounding and without dropout.

A sequence is given by its keys, one number per token. Axes: B rows, T tokens of the longest.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from producer.policy.memory_demand import NetworkSize
from producer.policy.prefix_clusters import common_length
from producer.policy.torch_policy.placement import to_device

Indices = NDArray[np.int64]


class SharedRow(NamedTuple):
    """The sequences that share a row."""

    indices: list[int]
    """Indices in the order of the row; at least one."""
    num_tokens: int


class PackedSequence(NamedTuple):
    """A sequence's placement in its row."""

    num_shared: int
    """Length of the prefix shared with the previous sequence."""
    slots: Indices
    """Index in the row of each token of the sequence."""


def share_keys(keys: Sequence[Indices], max_tokens: int, size: NetworkSize) -> list[SharedRow]:
    """Group the sequences into rows of at most `max_tokens` tokens; a longer one gets its own row.

    In the order of their keys, a sequence joins the previous one's row if, for a network of this
    size, that is cheaper than a row of its own.
    """
    break_even = _break_even_tokens(size)
    rows: list[SharedRow] = []
    for index in sorted(range(len(keys)), key=lambda index: keys[index].tolist()):
        length = len(keys[index])
        if rows:
            indices, num_tokens = rows[-1]
            together = num_tokens + length - common_length(keys[indices[-1]], keys[index])
            apart = _cost(num_tokens, len(indices), break_even) + _cost(length, 1, break_even)
            is_cheaper = _cost(together, len(indices) + 1, break_even) < apart
            if is_cheaper and together <= max_tokens:
                rows[-1] = SharedRow([*indices, index], together)
                continue
        rows.append(SharedRow([index], length))
    return rows


def pack_keys(keys: Sequence[Indices]) -> list[PackedSequence]:
    """Placements of one row's sequences, in order."""
    packed: list[PackedSequence] = []
    before = np.zeros(0, dtype=np.int64)
    for own_keys in keys:
        num_shared = common_length(before, own_keys)
        start = packed_length(packed)
        own = np.arange(start, start + len(own_keys) - num_shared)
        shared = packed[-1].slots[:num_shared] if packed else own[:0]
        packed.append(PackedSequence(num_shared, np.concatenate([shared, own])))
        before = own_keys
    return packed


def packed_length(packed: Sequence[PackedSequence]) -> int:
    """Length of the row in tokens; a shared prefix counts once."""
    return sum(len(one.slots) - one.num_shared for one in packed)


def tree_mask(
    packed: Sequence[Sequence[PackedSequence]], dtype: torch.dtype, device: torch.device
) -> Tensor | None:
    """[B, 1, T, T]: added to attention scores. None if no row is shared and the mask is causal."""
    if all(len(own) == 1 for own in packed):
        return None
    num_tokens = max(packed_length(own) for own in packed)
    # Padding attends to itself: a row of scores that are all -inf would become NaN.
    attends_BTT = np.eye(num_tokens, dtype=np.bool_)[None].repeat(len(packed), axis=0)
    for attends_TT, own in zip(attends_BTT, packed, strict=True):
        for num_shared, slots in own:
            causal = np.tri(len(slots), dtype=np.bool_)[num_shared:]
            attends_TT[np.ix_(slots[num_shared:], slots)] = causal
    # As floats: torch would copy a Boolean mask for each layer and keep the copies.
    attends = to_device(torch.from_numpy(attends_BTT), device)[:, None]
    mask_B1TT = torch.zeros(attends.shape, dtype=dtype, device=device)
    return mask_B1TT.masked_fill_(~attends, -torch.inf)


def _cost(num_tokens: int, num_sequences: int, break_even: float) -> float:
    """Cost of a row, in tokens through the linear layers.

    With a mask, attention computes all pairs; without one, half of them. Padding, and masks for the
    other rows of the batch, are not counted.
    """
    pairs = num_tokens**2 / (2 if num_sequences == 1 else 1)
    return num_tokens + pairs / break_even


def _break_even_tokens(size: NetworkSize) -> float:
    """Row length in tokens at which attention costs as much as the linear layers."""
    linear = size.hidden * (2 * size.query + 2 * size.key_value + 3 * size.feed_forward)
    return linear / (2 * size.query)
