"""Prefill: one pass over the prompts' new tokens, which fills their caches.

Axes: B rows, T new tokens, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from producer.policy.memory_demand import PREFILL_BYTES
from producer.policy.torch_policy.forward import (
    Segment,
    WorkingCache,
    compute_logits,
    hidden_states,
    pad_segments,
)
from producer.policy.torch_policy.memory_check import size_of_network
from producer.policy.torch_policy.network import Network


@dataclass(frozen=True, slots=True)
class Prefilled:
    """A batch of prompts after its prefill."""

    logits_BV: Tensor
    """Logits of each row's next token."""
    num_cached: list[int]
    """Number of cache positions in use per row."""
    next_positions: list[int]
    """Rope position of each row's next token."""

    def select_rows(self, rows: list[int]) -> "Prefilled":
        """These rows in this order, repeats allowed."""
        return Prefilled(
            logits_BV=self.logits_BV[rows],
            num_cached=[self.num_cached[row] for row in rows],
            next_positions=[self.next_positions[row] for row in rows],
        )


def prefill(
    network: Network,
    cache: WorkingCache,
    segments: Sequence[Segment],
    num_cached: Sequence[int],
    max_bytes: int = PREFILL_BYTES,
) -> Prefilled:
    """Run the prompts' new tokens; row b continues after its `num_cached[b]` cached tokens.

    Each pass has as many rows as fit into `max_bytes` of activations, and at least one.
    """
    longest = max(len(segment.tokens) for segment in segments)
    token_bytes = size_of_network(network.base.config, network.base.dtype).passing_bytes
    rows = max(1, max_bytes // (longest * token_bytes))
    parts = [
        _prefill(
            network,
            WorkingCache(cache.kv_B2LHCD[at : at + rows]),
            segments[at : at + rows],
            num_cached[at : at + rows],
        )
        for at in range(0, len(segments), rows)
    ]
    return join_prefilled(parts)


def join_prefilled(parts: Sequence[Prefilled]) -> Prefilled:
    """Concatenate the rows of all parts."""
    return Prefilled(
        logits_BV=torch.cat([part.logits_BV for part in parts]),
        num_cached=[item for part in parts for item in part.num_cached],
        next_positions=[next_position for part in parts for next_position in part.next_positions],
    )


def _prefill(
    network: Network, cache: WorkingCache, segments: Sequence[Segment], num_cached: Sequence[int]
) -> Prefilled:
    batch = pad_segments(segments, network)
    num_new = batch.tokens_BT.shape[1]
    write_at_BT = torch.tensor(num_cached, device=network.device)[:, None] + torch.arange(
        num_new, device=network.device
    )
    hidden_BTD = hidden_states(network, batch, cache, cache.set_write_positions(write_at_BT))
    last = torch.tensor(batch.lengths, device=network.device) - 1
    last_BD = hidden_BTD[torch.arange(len(last), device=network.device), last]
    return Prefilled(
        logits_BV=compute_logits(network, last_BD),
        num_cached=[before + new for before, new in zip(num_cached, batch.lengths, strict=True)],
        next_positions=batch.next_positions,
    )
