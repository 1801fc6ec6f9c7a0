"""Log-probs of sampled tokens under the current network: the one forward pass with gradients.

Sequences of similar length share a micro-batch; the output layer runs on completion tokens only.

Axes: B rows, T tokens, N completion tokens, D text dimension.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from producer.policy.memory_demand import TOKENS_PER_MICRO_BATCH
from producer.policy.torch_policy.forward import (
    Segment,
    hidden_states,
    pad_segments,
)
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.screen_encoder import ScreenEncoder
from producer.policy.torch_policy.sequences import TokenSequence
from producer.policy.torch_policy.token_logprobs import token_entropies, token_logprobs


def micro_batches(
    sequences: Sequence[TokenSequence], max_tokens: int = TOKENS_PER_MICRO_BATCH
) -> list[list[int]]:
    """Indices of `sequences` in batches of similar length and at most `max_tokens` padded tokens.

    Longest first. A longer sequence is a batch of its own.
    """
    return length_batches([len(sequence.tokens) for sequence in sequences], max_tokens)


def length_batches(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """As `micro_batches`, for sequences of these lengths."""
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if batches and (len(batches[-1]) + 1) * lengths[batches[-1][0]] <= max_tokens:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches


class CompletionStates(NamedTuple):
    """What the network computes before each sampled token, sequence by sequence."""

    hidden_ND: Tensor
    """The state that the token is drawn from."""
    tokens_N: Tensor


def completion_states(
    network: Network, encoder: ScreenEncoder, sequences: Sequence[TokenSequence]
) -> CompletionStates:
    """One forward pass over the sequences."""
    segments = [
        Segment(sequence.tokens, encoder.encode(sequence.screenshots)) for sequence in sequences
    ]
    batch = pad_segments(segments, network)
    hidden_BTD = hidden_states(network, batch)
    rows_N = torch.tensor(
        [row for row, sequence in enumerate(sequences) for _ in sequence.sampled_at],
        device=network.device,
    )
    at_N = torch.tensor(
        [at for sequence in sequences for at in sequence.sampled_at], device=network.device
    )
    return CompletionStates(hidden_BTD[rows_N, at_N - 1], batch.tokens_BT[rows_N, at_N])


def state_logprobs(network: Network, states: CompletionStates, temperature: float) -> Tensor:
    """[N]: log-prob of every sampled token, nats.

    Of the distribution at `temperature`; 0 means 1, since greedy sampling records untempered
    log-probs.
    """
    return token_logprobs(
        network.base.lm_head,
        states.hidden_ND,
        states.tokens_N,
        vocabulary=network.vocabulary,
        temperature=temperature or 1.0,
    )


def state_entropies(network: Network, states: CompletionStates, temperature: float) -> Tensor:
    """[N]: entropy of the distribution that each token was drawn from, nats; as above."""
    return token_entropies(
        network.base.lm_head,
        states.hidden_ND,
        vocabulary=network.vocabulary,
        temperature=temperature or 1.0,
    )


def completion_logprobs(
    network: Network, encoder: ScreenEncoder, sequences: Sequence[TokenSequence], temperature: float
) -> Tensor:
    """[N]: `state_logprobs` of the sequences."""
    return state_logprobs(network, completion_states(network, encoder, sequences), temperature)
