"""Prefix sharing: sequences with a common prefix are packed into one row of a batch, as a tree.

Rollouts of a group share the prompt, and the episode until an action or a screenshot differs. A row
holds its first sequence whole, and of each later one the suffix after the prefix that it shares
with its predecessor. A tree attention mask and the original positions keep hidden states equal to
those of the sequence alone, up to rounding. (LoRA dropout draws one mask for a shared token.)

Axes: B rows, T tokens of the longest row, D text dimension.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from producer.policy.memory_demand import pass_tokens
from producer.policy.sequences import TokenSequence
from producer.policy.torch_policy.forward import NetworkInput, hidden_states
from producer.policy.torch_policy.memory_check import size_of_network
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.placement import to_device
from producer.policy.torch_policy.render import rope_positions
from producer.policy.torch_policy.screen_encoder import ScreenEncoder

Indices = NDArray[np.int64]
TokenRow = Sequence[TokenSequence]
"""Sequences of one row, in its order; at least one."""


class SharedRow(NamedTuple):
    """Which sequences share a row."""

    indices: list[int]
    """In the row's order; at least one."""
    num_tokens: int


class PackedSequence(NamedTuple):
    """Where a sequence is in its row."""

    num_shared: int
    """Its first tokens that are those of the sequence before it."""
    slots: Indices
    """Of each of its tokens in the row."""


def max_pass_tokens(network: Network) -> int:
    """Padded tokens of one pass of an update."""
    size = size_of_network(network.base.config, network.base.dtype)
    return pass_tokens(size, network.device.type)


def share_rows(
    network: Network, sequences: Sequence[TokenSequence], max_tokens: int
) -> list[SharedRow]:
    """The sequences in rows of at most `max_tokens` tokens; a longer one has its own.

    In the order of their content, a sequence joins the row of the one before it if that is cheaper
    than a row of its own.
    """
    keys = [_content_ids(sequence, network.image_token) for sequence in sequences]
    break_even = _break_even_tokens(network)
    rows: list[SharedRow] = []
    for index in sorted(range(len(sequences)), key=lambda index: keys[index].tolist()):
        length = len(keys[index])
        if rows:
            indices, num_tokens = rows[-1]
            together = num_tokens + length - _common_prefix_length(keys[indices[-1]], keys[index])
            apart = _cost(num_tokens, len(indices), break_even) + _cost(length, 1, break_even)
            is_cheaper = _cost(together, len(indices) + 1, break_even) < apart
            if is_cheaper and together <= max_tokens:
                rows[-1] = SharedRow([*indices, index], together)
                continue
        rows.append(SharedRow([index], length))
    return rows


def num_padded_tokens(network: Network, rows: Sequence[TokenRow]) -> int:
    """Tokens of the rows, padded to the longest; what the sequences of a row share counts once."""
    return len(rows) * max(_length(_pack_row(network, row)) for row in rows)


def sampling_states(network: Network, encoder: ScreenEncoder, rows: Sequence[TokenRow]) -> Tensor:
    """[N, D]: the hidden state that each completion token was drawn from, sequence by sequence.

    One forward pass over the rows.
    """
    packed = [_pack_row(network, row) for row in rows]
    batch = _input(network, encoder, rows, packed)
    hidden_BTD = hidden_states(network, batch, mask_B1TC=_mask(network, packed))
    slots = [
        number * hidden_BTD.shape[1] + one.slots[np.array(sequence.sampled_at, dtype=np.int64) - 1]
        for number, (row, own) in enumerate(zip(rows, packed, strict=True))
        for sequence, one in zip(row, own, strict=True)
    ]
    # A shared state is taken several times. On a processor the gradient of index_select has the
    # same bits on every run, that of indexing has not.
    indices = to_device(torch.from_numpy(np.concatenate(slots)), network.device)
    return hidden_BTD.flatten(0, 1).index_select(0, indices)


def _pack_row(network: Network, row: TokenRow) -> list[PackedSequence]:
    packed: list[PackedSequence] = []
    before = np.zeros(0, dtype=np.int64)
    for sequence in row:
        keys = _content_ids(sequence, network.image_token)
        num_shared = _common_prefix_length(before, keys)
        start = _length(packed)
        own = np.arange(start, start + len(keys) - num_shared)
        shared = packed[-1].slots[:num_shared] if packed else own[:0]
        packed.append(PackedSequence(num_shared, np.concatenate([shared, own])))
        before = keys
    return packed


def _length(packed: Sequence[PackedSequence]) -> int:
    return sum(len(one.slots) - one.num_shared for one in packed)


def _input(
    network: Network,
    encoder: ScreenEncoder,
    rows: Sequence[TokenRow],
    packed: Sequence[Sequence[PackedSequence]],
) -> NetworkInput:
    shape = (len(rows), max(_length(own) for own in packed))
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


def _mask(network: Network, packed: Sequence[Sequence[PackedSequence]]) -> Tensor | None:
    """[B, 1, T, T]: what is added to attention scores. None: no row is shared, so it is causal."""
    if all(len(own) == 1 for own in packed):
        return None
    num_tokens = max(_length(own) for own in packed)
    # Padding attends to itself: a row of scores without any number would become NaN.
    attends_BTT = np.eye(num_tokens, dtype=np.bool_)[None].repeat(len(packed), axis=0)
    for attends_TT, own in zip(attends_BTT, packed, strict=True):
        for num_shared, slots in own:
            causal = np.tri(len(slots), dtype=np.bool_)[num_shared:]
            attends_TT[np.ix_(slots[num_shared:], slots)] = causal
    # As numbers: torch would make a copy of a Boolean mask for each layer, and keep it.
    attends = to_device(torch.from_numpy(attends_BTT), network.device)[:, None]
    mask_B1TT = torch.zeros(attends.shape, dtype=network.base.dtype, device=network.device)
    return mask_B1TT.masked_fill_(~attends, -torch.inf)


def _content_ids(sequence: TokenSequence, image_token: int | None) -> Indices:
    """A number for each token; for an image's placeholders one that stands for its content."""
    keys = np.array(sequence.tokens, dtype=np.int64)
    if not sequence.screenshots:
        return keys
    is_image = keys == image_token
    begins = is_image & ~np.concatenate([[False], is_image[:-1]])
    refs = [screenshot.ref for screenshot in sequence.screenshots]
    if np.count_nonzero(begins) != len(refs):
        # Placeholders side by side do not say where an image ends: all of them stand for all.
        refs = ["".join(refs)] * np.count_nonzero(begins)
    numbers = np.array([_screen_id(ref) for ref in refs])
    keys[is_image] = numbers[np.cumsum(begins)[is_image] - 1]
    return keys


def _screen_id(ref: str) -> int:
    """Below every token's, and equal for equal refs alone."""
    return -1 - int.from_bytes(sha256(ref.encode()).digest()[:7], "big")


def _common_prefix_length(first: Indices, second: Indices) -> int:
    """Tokens at their beginnings that are equal."""
    length = min(len(first), len(second))
    differs = first[:length] != second[:length]
    return int(differs.argmax()) if differs.any() else length


def _cost(num_tokens: int, num_sequences: int, break_even: float) -> float:
    """Cost of a row, in tokens through the linear layers.

    A mask makes attention compute all pairs, without one it computes half of them. Padding, and
    masks for the other rows of the batch, are not counted.
    """
    pairs = num_tokens**2 / (2 if num_sequences == 1 else 1)
    return num_tokens + pairs / break_even


def _break_even_tokens(network: Network) -> float:
    """Tokens in a row for which attention costs as much as the linear layers."""
    size = size_of_network(network.base.config, network.base.dtype)
    linear = size.hidden * (2 * size.query + 2 * size.key_value + 3 * size.feed_forward)
    return linear / (2 * size.query)
