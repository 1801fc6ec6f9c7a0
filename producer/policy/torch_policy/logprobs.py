"""Log-probs of sampled tokens under the current network: the only forward pass with gradients.

Sequences with a common prefix share a row, and rows of similar length a micro-batch. The output
layer runs only on completion tokens.

Axes: B rows, T tokens, N completion tokens, D text dimension.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from producer.policy.memory_demand import FLOAT32_BYTES, LOGIT_BYTES, row_tokens
from producer.policy.sequences import TokenSequence
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.prefix_sharing import (
    TokenRow,
    max_pass_tokens,
    sampling_states,
    share_rows,
)
from producer.policy.torch_policy.screen_encoder import ScreenEncoder


def token_logprobs(
    output_layer: Callable[[Tensor], Tensor],
    hidden_ND: Tensor,
    tokens_N: Tensor,
    *,
    vocabulary: int,
    temperature: float,
    logit_bytes: int = LOGIT_BYTES,
) -> Tensor:
    """[N]: log-prob in float32 of each token under softmax(output_layer(hidden) / temperature).

    Takes about 3 * `logit_bytes` of memory, and never less than one position at a time.
    """

    def of_chunk(chunk_ND: Tensor, chunk_N: Tensor) -> Tensor:
        logits_NV = output_layer(chunk_ND).float() / temperature
        return torch.log_softmax(logits_NV, dim=-1).gather(1, chunk_N[:, None])[:, 0]

    return _in_chunks(of_chunk, (hidden_ND, tokens_N), vocabulary, logit_bytes)


def token_entropies(
    output_layer: Callable[[Tensor], Tensor],
    hidden_ND: Tensor,
    *,
    vocabulary: int,
    temperature: float,
    logit_bytes: int = LOGIT_BYTES,
) -> Tensor:
    """[N]: entropy in float32 of softmax(output_layer(hidden) / temperature) at each position.

    Uses as much memory as `token_logprobs`.
    """

    def of_chunk(chunk_ND: Tensor) -> Tensor:
        logprobs_NV = torch.log_softmax(output_layer(chunk_ND).float() / temperature, dim=-1)
        return -(logprobs_NV.exp() * logprobs_NV).sum(dim=-1)

    return _in_chunks(of_chunk, (hidden_ND,), vocabulary, logit_bytes)


def _in_chunks(
    of_chunk: Callable[..., Tensor], given: tuple[Tensor, ...], vocabulary: int, logit_bytes: int
) -> Tensor:
    """Apply `of_chunk` to a few rows at a time; chunks are recomputed in the backward pass."""
    rows = max(1, logit_bytes // (vocabulary * FLOAT32_BYTES))
    if len(given[0]) <= rows:
        return of_chunk(*given)
    return torch.cat(
        [
            checkpoint(of_chunk, *chunk, use_reentrant=False, preserve_rng_state=False)
            for chunk in zip(*(torch.split(item, rows) for item in given), strict=True)
        ]
    )


def micro_batches(
    network: Network, sequences: Sequence[TokenSequence], max_tokens: int | None = None
) -> list[list[list[int]]]:
    """Batches of rows of indices into `sequences`, each of at most `max_tokens` padded tokens.

    Rows of similar length share a batch, longest first. A longer row, of up to `row_tokens`, is a
    batch of its own. `max_tokens` None means `max_pass_tokens`.
    """
    max_tokens = max_tokens or max_pass_tokens(network)
    longest = max((len(sequence.tokens) for sequence in sequences), default=0)
    rows = share_rows(network, sequences, row_tokens(max_tokens, longest))
    batches = length_batches([row.num_tokens for row in rows], max_tokens)
    return [[rows[at].indices for at in batch] for batch in batches]


def length_batches(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Like `micro_batches`, for rows of these lengths."""
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if batches and (len(batches[-1]) + 1) * lengths[batches[-1][0]] <= max_tokens:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches


class CompletionStates(NamedTuple):
    """Network outputs before each sampled token, sequence by sequence."""

    hidden_ND: Tensor
    """The state that the token is drawn from."""
    tokens_N: Tensor


def completion_states(
    network: Network, encoder: ScreenEncoder, rows: Sequence[TokenRow]
) -> CompletionStates:
    """Run one forward pass over rows of sequences."""
    tokens = [sequence.tokens[at] for row in rows for sequence in row for at in sequence.sampled_at]
    return CompletionStates(
        sampling_states(network, encoder, rows), torch.tensor(tokens, device=network.device)
    )


def state_logprobs(network: Network, states: CompletionStates, temperature: float) -> Tensor:
    """[N]: log-prob of every sampled token, nats.

    Uses the distribution at `temperature`; 0 is treated as 1, since greedy sampling records
    untempered log-probs.
    """
    return token_logprobs(
        network.base.lm_head,
        states.hidden_ND,
        states.tokens_N,
        vocabulary=network.vocabulary,
        temperature=temperature or 1.0,
    )


def state_entropies(network: Network, states: CompletionStates, temperature: float) -> Tensor:
    """[N]: entropy of the distribution each token was drawn from, nats; see `state_logprobs`."""
    return token_entropies(
        network.base.lm_head,
        states.hidden_ND,
        vocabulary=network.vocabulary,
        temperature=temperature or 1.0,
    )


def completion_logprobs(
    network: Network, encoder: ScreenEncoder, sequences: Sequence[TokenSequence], temperature: float
) -> Tensor:
    """[N]: `state_logprobs` of the sequences, one sequence per row."""
    rows = [[sequence] for sequence in sequences]
    return state_logprobs(network, completion_states(network, encoder, rows), temperature)
