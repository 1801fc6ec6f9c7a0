"""Samples completions for a batch of prompts: one prefill, then token by token.

Each row has its own uniform random numbers, seeded by its request, and samples by inverting its
cumulative distribution. A completion therefore depends only on its request, up to rounding: with
another batch size, matrix products change log-probs by about 1e-6, so a uniform number that close
to a boundary may select the neighbouring token. The same applies to ties in greedy decoding.

A batch is decoded in parts. Equal prompts are prefilled once; with a large network, so are common
prefixes of several prompts.

Axes: B rows, T new tokens, V vocabulary, K blocks of W tokens.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import torch
from torch import Tensor

from producer.policy.compute_settings import ComputeSettings
from producer.policy.torch_policy.adapters import merged_adapter
from producer.policy.torch_policy.cpu_parallel import SMALL_WEIGHTS, parallel_map
from producer.policy.torch_policy.forward import (
    EpisodeCaches,
    NetworkInput,
    Prompt,
    WorkingCache,
    compute_logits,
    hidden_states,
)
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.prefill import Prefilled, prefill
from producer.policy.torch_policy.shared_prefill import prefill_groups, sort_by_beginning

BLOCK: Final = 512
"""Number of tokens whose probabilities are added up one by one: about the square root of the
largest vocabularies, and more than the small policy's 398."""
_BELOW_ONE: Final = 1 - 2**-53
"""The largest uniform number."""


@dataclass(frozen=True, slots=True)
class SamplingParameters:
    """How a row is sampled."""

    temperature: float
    """0 means greedy decoding."""
    max_tokens: int
    seed: int
    """Key of the row's uniform random numbers; >= 0."""
    top_p: float = 1.0
    """Cumulative probability of the likeliest tokens that may be drawn."""


@dataclass(frozen=True, slots=True)
class SampledCompletion:
    """The tokens sampled for a row."""

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    stop_reason: Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class DecodedBatch:
    """Completions of the rows, with caches to continue them."""

    completions: list[SampledCompletion]
    prefilled: Prefilled
    """State before the completions."""
    cache: WorkingCache
    """Cache after the completions; lacks each row's last token."""


class ComputedRows:
    """The rows of a batch that are still being decoded, kept at the front of its cache."""

    def __init__(self, cache: WorkingCache, num_rows: int) -> None:
        self._whole = self.cache = cache
        self.rows_B = torch.arange(num_rows, device=cache.kv_B2LHCD.device)
        """Original indices of the rows in `cache`, in its order."""
        self._swaps: list[tuple[int, int]] = []

    def keep(self, running_B: Tensor) -> None:
        """Continue with only these rows, which are among the current ones."""
        places = running_B[self.rows_B].nonzero()[:, 0].tolist()
        for to, at in enumerate(places):
            if to != at:
                self._swap(to, at)
                self._swaps.append((to, at))
        self.rows_B = self.rows_B[places]
        self.cache = WorkingCache(self._whole.kv_B2LHCD[: len(places)])

    def put_back(self) -> None:
        """Restore the original order of the whole cache."""
        for to, at in reversed(self._swaps):
            self._swap(to, at)
        self._swaps.clear()

    def _swap(self, one: int, other: int) -> None:
        kv_B2LHCD = self._whole.kv_B2LHCD
        kv_B2LHCD[[one, other]] = kv_B2LHCD[[other, one]]


def decode(
    network: Network,
    cache: WorkingCache,
    prefilled: Prefilled,
    parameters: Sequence[SamplingParameters],
) -> DecodedBatch:
    """Sample every row until an end token or its `max_tokens`. Writes to `cache`.

    With a large network, finished rows are left out once they are half of those computed.
    """
    device = network.device
    num_rows = len(parameters)
    max_tokens = max(parameter.max_tokens for parameter in parameters)
    uniforms_BT = torch.from_numpy(
        np.stack([_uniforms(parameter.seed, max_tokens) for parameter in parameters])
    )
    uniforms_BT = uniforms_BT.to(device)
    temperature_B = torch.tensor([parameter.temperature for parameter in parameters], device=device)
    top_p_B = torch.tensor([parameter.top_p for parameter in parameters], device=device)
    nucleus_B = top_p_B if any(parameter.top_p < 1 for parameter in parameters) else None
    limits_B = torch.tensor([parameter.max_tokens for parameter in parameters], device=device)
    end_E = torch.tensor(sorted(network.end_tokens), device=device)
    cached_B = torch.tensor(prefilled.num_cached, device=device)
    position_B = torch.tensor(prefilled.next_positions, device=device)
    tokens_BT = torch.zeros((num_rows, max_tokens), dtype=torch.long, device=device)
    logprobs_BT = torch.zeros((num_rows, max_tokens), device=device)
    lengths_B = torch.zeros(num_rows, dtype=torch.long, device=device)
    running_B = torch.ones(num_rows, dtype=torch.bool, device=device)
    stopped_B = torch.zeros(num_rows, dtype=torch.bool, device=device)
    logits_BV = prefilled.logits_BV
    leaves_out = network.num_weights > SMALL_WEIGHTS
    computed = ComputedRows(cache, num_rows)
    for step in range(max_tokens):
        rows_B = computed.rows_B
        tokens_BT[rows_B, step], logprobs_BT[rows_B, step] = sample_tokens(
            *(logits_BV, temperature_B[rows_B], uniforms_BT[rows_B, step]),
            network.suppressed_tokens,
            None if nucleus_B is None else nucleus_B[rows_B],
        )
        lengths_B += running_B
        stopped_B |= running_B & torch.isin(tokens_BT[:, step], end_E)
        running_B &= ~stopped_B & (lengths_B < limits_B)
        num_running = int(running_B.sum())
        if num_running == 0:
            break
        if leaves_out and 2 * num_running <= len(rows_B):
            computed.keep(running_B)
            rows_B = computed.rows_B
        batch = NetworkInput(
            tokens_BT=tokens_BT[rows_B, step, None],
            positions_3BT=(position_B[rows_B] + step).expand(3, -1)[:, :, None],
            screens=[],
        )
        mask_B1TC = computed.cache.set_write_positions((cached_B[rows_B] + step)[:, None])
        hidden_B1D = hidden_states(network, batch, computed.cache, mask_B1TC)
        logits_BV = compute_logits(network, hidden_B1D[:, 0])
    computed.put_back()
    completions = [
        SampledCompletion(
            tokens=tuple(tokens[:length]),
            logprobs=tuple(logprobs[:length]),
            stop_reason="stop" if stopped else "length",
        )
        for tokens, logprobs, length, stopped in zip(
            tokens_BT.tolist(),
            logprobs_BT.tolist(),
            lengths_B.tolist(),
            stopped_B.tolist(),
            strict=True,
        )
    ]
    return DecodedBatch(completions, prefilled, cache)


def sample_tokens(
    logits_BV: Tensor,
    temperature_B: Tensor,
    uniforms_B: Tensor,
    suppressed: Sequence[int] = (),
    top_p_B: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """A token per row and its log-prob under the tempered distribution.

    The token is the first whose cumulative probability exceeds the row's uniform number (float64 in
    [0, 1)), so a token of probability 0 is never drawn. At temperature 0 it is the likeliest token
    with its untempered log-prob. `suppressed` tokens are never drawn, nor those outside the
    smallest set of likeliest tokens whose probability reaches `top_p_B`; log-probs remain those of
    the whole distribution, so that a plain forward pass reproduces them.
    """
    is_greedy_B = temperature_B == 0
    scale_B1 = torch.where(is_greedy_B, 1.0, temperature_B)[:, None]
    logprobs_BV = torch.log_softmax(logits_BV / scale_B1, dim=-1)
    drawn_BV = logprobs_BV if top_p_B is None else _nucleus(logprobs_BV, top_p_B)
    allowed_BKW = _in_blocks(drawn_BV, suppressed)
    token_B = allowed_BKW.flatten(1).argmax(dim=-1)
    if not is_greedy_B.all():
        token_B = torch.where(is_greedy_B, token_B, _draw(allowed_BKW, uniforms_B))
    return token_B, logprobs_BV.gather(1, token_B[:, None])[:, 0]


def _nucleus(logprobs_BV: Tensor, top_p_B: Tensor) -> Tensor:
    """Log-probs with -inf outside the nucleus; the likeliest token is always in it."""
    sorted_BV, order_BV = logprobs_BV.sort(dim=-1, descending=True, stable=True)
    before_BV = sorted_BV.double().exp().cumsum(dim=-1) - sorted_BV.double().exp()
    sorted_BV = sorted_BV.masked_fill(before_BV >= top_p_B[:, None], -torch.inf)
    sorted_BV[:, 0] = logprobs_BV.gather(1, order_BV[:, :1])[:, 0]
    return torch.empty_like(logprobs_BV).scatter(1, order_BV, sorted_BV)


def _in_blocks(logprobs_BV: Tensor, suppressed: Sequence[int]) -> Tensor:
    """[B, K, W], with probability 0 for suppressed tokens and the padding of the last block."""
    num_rows, size = logprobs_BV.shape
    width = min(size, BLOCK)
    num_blocks = math.ceil(size / width)
    filled_BV = logprobs_BV.new_full((num_rows, num_blocks * width), -torch.inf)
    filled_BV[:, :size] = logprobs_BV
    filled_BV[:, list(suppressed)] = -torch.inf
    return filled_BV.view(num_rows, num_blocks, width)


def _draw(logprobs_BKW: Tensor, uniforms_B: Tensor) -> Tensor:
    """The first token whose cumulative probability exceeds the uniform number's share of the sum.

    Finds the block first and then the token in it, so that only one block's probabilities are added
    up one by one.
    """
    num_rows, num_blocks, width = logprobs_BKW.shape
    rows_B = torch.arange(num_rows, device=logprobs_BKW.device)
    block_B = torch.zeros_like(rows_B)
    if num_blocks > 1:
        cumulative_BK = logprobs_BKW.exp().sum(dim=-1, dtype=torch.float64).cumsum(dim=-1)
        block_B, uniforms_B = _locate(cumulative_BK, uniforms_B)
    cumulative_BW = logprobs_BKW[rows_B, block_B].double().exp().cumsum(dim=-1)
    return block_B * width + _locate(cumulative_BW, uniforms_B)[0]


def _locate(cumulative_BK: Tensor, uniforms_B: Tensor) -> tuple[Tensor, Tensor]:
    """The index that each uniform number falls into, and the fraction within it, in [0, 1)."""
    target_B1 = uniforms_B[:, None] * cumulative_BK[:, -1:]
    index_B1 = (cumulative_BK <= target_B1).sum(dim=-1, keepdim=True)
    upper_B1 = cumulative_BK.gather(1, index_B1)
    lower_B1 = torch.where(index_B1 > 0, cumulative_BK.gather(1, (index_B1 - 1).clamp(min=0)), 0.0)
    share_B1 = (target_B1 - lower_B1) / (upper_B1 - lower_B1)
    return index_B1[:, 0], share_B1.clamp(0.0, _BELOW_ONE)[:, 0]


def _uniforms(seed: int, num: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.random.Generator(np.random.Philox(key=seed)).random(num)


ROWS_PER_PART = 64
"""Rows decoded together if a network decodes in parts. The number of parts must not depend on the
number of cores, because another batch size changes the last bits."""
MIN_PARTS = 2
"""Minimum number of parts for at least two prompts. On one core, two parts cost 1.1 times as much
as one, and four 1.4 times (docs/decisions/same-seed.md)."""


class Decoder:
    """Samples completions of prompts from a network and the caches of its episodes.

    Called from one thread, without gradients. On a CPU the same batches give the same bits,
    whatever the number of cores.
    """

    def __init__(self, network: Network, caches: EpisodeCaches, compute: ComputeSettings) -> None:
        self._network = network
        self._caches = caches
        self._compute = compute
        self._num_weights = network.num_weights

    def decode(
        self, prompts: Sequence[Prompt], parameters: Sequence[SamplingParameters]
    ) -> Iterator[tuple[list[int], DecodedBatch]]:
        """Yield the parts as they are done: row indices, and the decoded batch."""
        num_parts = max(
            self._num_parts(len(prompts)), self._num_parts_in_memory(prompts, parameters)
        )
        parts = _partition_rows(prompts, num_parts)

        def decode_rows(rows: list[int]) -> DecodedBatch:
            return self._decode([prompts[row] for row in rows], [parameters[row] for row in rows])

        network = self._network
        with merged_adapter(network.adapted):
            done = parallel_map(decode_rows, parts, network.device, network.max_workers)
            yield from zip(parts, done, strict=True)

    def _num_parts_in_memory(
        self, prompts: Sequence[Prompt], parameters: Sequence[SamplingParameters]
    ) -> int:
        """Number of parts such that their working caches stay within `kv_cache_bytes`."""
        if self._compute.kv_cache_bytes is None:
            return 1
        longest = max(
            prompt.num_cached + len(prompt.segment.tokens) + own.max_tokens
            for prompt, own in zip(prompts, parameters, strict=True)
        )
        row_bytes = longest * self._network.cache_shape.position_bytes(self._network.base.dtype)
        return math.ceil(len(prompts) / max(1, self._compute.kv_cache_bytes // row_bytes))

    def _num_parts(self, num_rows: int) -> int:
        """Depends only on the network and on `num_rows`."""
        if self._num_weights > SMALL_WEIGHTS or self._network.device.type != "cpu":
            return 1
        return max(MIN_PARTS, math.ceil(num_rows / ROWS_PER_PART))

    def _decode(self, prompts: list[Prompt], parameters: list[SamplingParameters]) -> DecodedBatch:
        distinct = list({prompt.digest: prompt for prompt in reversed(prompts)}.values())
        # A small network computes little in a pass compared with the pass's fixed cost.
        is_large = self._num_weights > SMALL_WEIGHTS
        if is_large:
            distinct = sort_by_beginning(distinct)
        row_of = {prompt.digest: row for row, prompt in enumerate(distinct)}
        capacity = (
            max(prompt.num_cached for prompt in distinct)
            + max(len(prompt.segment.tokens) for prompt in distinct)
            + max(parameter.max_tokens for parameter in parameters)
        )
        shared = self._caches.load([prompt.slot for prompt in distinct], capacity)
        if is_large:
            prefilled = prefill_groups(self._network, shared, distinct)
        else:
            prefilled = prefill(
                self._network,
                shared,
                [prompt.segment for prompt in distinct],
                [prompt.num_cached for prompt in distinct],
            )
        rows = [row_of[prompt.digest] for prompt in prompts]
        return decode(
            self._network, shared.select_rows(rows), prefilled.select_rows(rows), parameters
        )


def _partition_rows(prompts: Sequence[Prompt], num_parts: int) -> list[list[int]]:
    """Row indices in at most `num_parts` parts of similar size; equal prompts share a part."""
    same: dict[bytes, list[int]] = {}
    for index, prompt in enumerate(prompts):
        same.setdefault(prompt.digest, []).append(index)
    parts: list[list[int]] = [[] for _ in range(num_parts)]
    for indices in sorted(same.values(), key=len, reverse=True):
        min(parts, key=len).extend(indices)
    return [sorted(part) for part in parts if part]
