"""Hidden states of text sequences whose shared prefixes are packed into rows (`packed_rows`).

Axes: B rows, T tokens of the longest row, M positions, D hidden dimension.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from producer.policy.memory_demand import row_tokens
from producer.policy.torch_policy.logprobs import length_batches
from producer.policy.torch_policy.memory_check import size_of_network
from producer.policy.torch_policy.packed_rows import (
    SharedRow,
    pack_keys,
    packed_length,
    share_keys,
    tree_mask,
)


def shared_batches(
    base: Any,  # noqa: ANN401  # transformers' own class
    sequences: Sequence[Sequence[int]],
    max_tokens: int,
) -> list[list[int]]:
    """Indices of the sequences in micro-batches of at most `max_tokens` padded tokens.

    A longer row, of up to `row_tokens`, is a micro-batch of its own.
    """
    rows = _rows(base, sequences, row_tokens(max_tokens, max(map(len, sequences))))
    return [
        [index for at in batch for index in rows[at].indices]
        for batch in length_batches([row.num_tokens for row in rows], max_tokens)
    ]


def shared_states(
    base: Any,  # noqa: ANN401  # transformers' own class
    sequences: Sequence[Sequence[int]],
    positions: Sequence[Sequence[int]],
) -> Tensor:
    """[M, D]: last hidden states at each sequence's `positions`, sequence by sequence."""
    rows = _rows(base, sequences, sum(map(len, sequences)))
    packed = [pack_keys([_key(sequences[index]) for index in row.indices]) for row in rows]
    shape = (len(rows), max(packed_length(own) for own in packed))
    tokens_BT, positions_BT = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    slots: dict[int, np.ndarray[tuple[int], np.dtype[np.int64]]] = {}
    for number, (row, own) in enumerate(zip(rows, packed, strict=True)):
        for index, one in zip(row.indices, own, strict=True):
            tokens_BT[number, one.slots] = sequences[index]
            positions_BT[number, one.slots] = np.arange(len(sequences[index]))
            slots[index] = number * shape[1] + one.slots[list(positions[index])]
    hidden_BTD = (
        base.get_decoder()(
            input_ids=torch.from_numpy(tokens_BT).to(base.device),
            position_ids=torch.from_numpy(positions_BT).to(base.device),
            attention_mask=tree_mask(packed, base.dtype, base.device),
            use_cache=False,
        )
    ).last_hidden_state
    # As in prefix_sharing: the gradient of index_select is bit-identical on every run.
    indices = torch.from_numpy(np.concatenate([slots[index] for index in range(len(sequences))]))
    states: Tensor = hidden_BTD.flatten(0, 1).index_select(0, indices.to(base.device))
    return states


def _rows(base: Any, sequences: Sequence[Sequence[int]], max_tokens: int) -> list[SharedRow]:  # noqa: ANN401
    size = size_of_network(base.config, base.dtype)
    return share_keys([_key(sequence) for sequence in sequences], max_tokens, size)


def _key(sequence: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(sequence, dtype=np.int64)
