"""Log-probs of what was sampled, under the network as it is now.

The one place where sequences meet gradients.

Sequences of similar length share a pass; the output layer runs on completion tokens only. Axes: B
rows, T tokens, N completion tokens.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from producer.policy.torch_policy.forward import Chunk, hidden_states, logits_of, pad
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.screen_encoder import ScreenEncoder
from producer.policy.torch_policy.sequences import TokenSequence

TOKENS_PER_PASS = 4096
"""Padded tokens of one forward; small enough for the processor's caches at the small policy's size.
"""


def passes(
    sequences: Sequence[TokenSequence], tokens_per_pass: int = TOKENS_PER_PASS
) -> Iterator[list[int]]:
    """Indices of `sequences` in batches of similar length, longest first; at least one each."""
    order = sorted(range(len(sequences)), key=lambda index: -len(sequences[index].tokens))
    batch: list[int] = []
    for index in order:
        if batch and (len(batch) + 1) * len(sequences[batch[0]].tokens) > tokens_per_pass:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def completion_logprobs(
    network: Network, encoder: ScreenEncoder, sequences: Sequence[TokenSequence], temperature: float
) -> Tensor:
    """[N]: of every sampled token, sequence by sequence, under the distribution at `temperature` (0: untempered, as greedy records it)."""
    chunks = [
        Chunk(sequence.tokens, encoder.encode(sequence.screenshots)) for sequence in sequences
    ]
    batch = pad(chunks, network)
    hidden_BTD = hidden_states(network, batch)
    rows_N = torch.tensor(
        [row for row, sequence in enumerate(sequences) for _ in sequence.sampled_at],
        device=network.device,
    )
    at_N = torch.tensor(
        [at for sequence in sequences for at in sequence.sampled_at], device=network.device
    )
    logits_NV = logits_of(network, hidden_BTD[rows_N, at_N - 1]) / (temperature or 1.0)
    said_N = batch.tokens_BT[rows_N, at_N]
    return torch.log_softmax(logits_NV, dim=-1).gather(1, said_N[:, None])[:, 0]
