"""Log-probs of given tokens, and entropies, without the logits of all of them at once.

A logit row of Qwen3-VL takes 608 KB in float32 (151,936 tokens), so those of an episode with 10,000
completion tokens would take 6 GB, and as much again for their log-softmax and their gradient. The
output layer therefore runs on a few rows at a time, and again in the backward pass.

Axes: N positions, D text dimension, V vocabulary.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from producer.policy.memory_demand import FLOAT32_BYTES, LOGIT_BYTES


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

    Memory as `token_logprobs`.
    """

    def of_chunk(chunk_ND: Tensor) -> Tensor:
        logprobs_NV = torch.log_softmax(output_layer(chunk_ND).float() / temperature, dim=-1)
        return -(logprobs_NV.exp() * logprobs_NV).sum(dim=-1)

    return _in_chunks(of_chunk, (hidden_ND,), vocabulary, logit_bytes)


def _in_chunks(
    of_chunk: Callable[..., Tensor], given: tuple[Tensor, ...], vocabulary: int, logit_bytes: int
) -> Tensor:
    """`of_chunk` of a few rows at a time, which are computed again in the backward pass."""
    rows = max(1, logit_bytes // (vocabulary * FLOAT32_BYTES))
    if len(given[0]) <= rows:
        return of_chunk(*given)
    return torch.cat(
        [
            checkpoint(of_chunk, *chunk, use_reentrant=False, preserve_rng_state=False)
            for chunk in zip(*(torch.split(item, rows) for item in given), strict=True)
        ]
    )
