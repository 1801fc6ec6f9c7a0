"""Draws completions for a batch of prompts from the keys and values of what was said before.

One prefill, then token by token.

Each row draws from its own seeded stream of uniform numbers by inverting its cumulative
distribution, so a completion depends on its request alone. (Up to rounding: matrix products of
another batch size differ in the last bits, about 1e-6 of a log-prob, and a draw that falls that
close to a boundary may come out otherwise. Greedy choices have the same caveat for ties.) Axes: B
rows, T new tokens, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from producer.policy.torch_policy.forward import Batch, Chunk, hidden_states, logits_of, pad
from producer.policy.torch_policy.kv_cache import WorkingCache
from producer.policy.torch_policy.network import Network


@dataclass(frozen=True, slots=True)
class Draw:
    """How a row is sampled."""

    temperature: float
    """0: greedy."""
    max_tokens: int
    seed: int


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a row said."""

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    stop_reason: Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Prefilled:
    """A batch of prompts after their prefill."""

    logits_BV: Tensor
    """Of each row's next token."""
    num_cached: list[int]
    """Cache positions in use per row."""
    ends: list[int]
    """Rope position of each row's next token."""


def prefill(
    network: Network, cache: WorkingCache, chunks: Sequence[Chunk], num_cached: Sequence[int]
) -> Prefilled:
    """Run the prompts' new tokens; row b continues behind its `num_cached[b]` cached tokens."""
    batch = pad(chunks, network)
    num_new = batch.tokens_BT.shape[1]
    write_at_BT = torch.tensor(num_cached, device=network.device)[:, None] + torch.arange(
        num_new, device=network.device
    )
    hidden_BTD = hidden_states(network, batch, cache, cache.place(write_at_BT))
    last = torch.tensor(batch.lengths, device=network.device) - 1
    last_BD = hidden_BTD[torch.arange(len(last), device=network.device), last]
    now_cached = [before + new for before, new in zip(num_cached, batch.lengths, strict=True)]
    return Prefilled(logits_of(network, last_BD), now_cached, batch.ends)


def decode(
    network: Network, cache: WorkingCache, start: Prefilled, draws: Sequence[Draw]
) -> list[Drawn]:
    """Sample every row until its end token or its maximum.

    The cache then holds all but each row's last drawn token.
    """
    device = network.device
    num_rows = len(draws)
    max_tokens = max(draw.max_tokens for draw in draws)
    uniforms_BT = torch.from_numpy(np.stack([_uniforms(draw, max_tokens) for draw in draws])).to(
        device
    )
    temperature_B = torch.tensor([draw.temperature for draw in draws], device=device)
    limits_B = torch.tensor([draw.max_tokens for draw in draws], device=device)
    end_E = torch.tensor(sorted(network.end_tokens), device=device)
    cached_B = torch.tensor(start.num_cached, device=device)
    position_B = torch.tensor(start.ends, device=device)
    tokens_BT = torch.zeros((num_rows, max_tokens), dtype=torch.long, device=device)
    logprobs_BT = torch.zeros((num_rows, max_tokens), device=device)
    lengths_B = torch.zeros(num_rows, dtype=torch.long, device=device)
    running_B = torch.ones(num_rows, dtype=torch.bool, device=device)
    stopped_B = torch.zeros(num_rows, dtype=torch.bool, device=device)
    logits_BV = start.logits_BV
    for step in range(max_tokens):
        tokens_BT[:, step], logprobs_BT[:, step] = choose(
            logits_BV, temperature_B, uniforms_BT[:, step], network.suppressed_tokens
        )
        lengths_B += running_B
        stopped_B |= running_B & torch.isin(tokens_BT[:, step], end_E)
        running_B &= ~stopped_B & (lengths_B < limits_B)
        if not running_B.any():
            break
        positions_3BT = (position_B + step).expand(3, -1)[:, :, None]
        batch = Batch(tokens_BT[:, step : step + 1], positions_3BT, [], [1] * num_rows, [])
        hidden_B1D = hidden_states(network, batch, cache, cache.place((cached_B + step)[:, None]))
        logits_BV = logits_of(network, hidden_B1D[:, 0])
    return [
        Drawn(tuple(tokens[:length]), tuple(logprobs[:length]), "stop" if stopped else "length")
        for tokens, logprobs, length, stopped in zip(
            tokens_BT.tolist(),
            logprobs_BT.tolist(),
            lengths_B.tolist(),
            stopped_B.tolist(),
            strict=True,
        )
    ]


def choose(
    logits_BV: Tensor, temperature_B: Tensor, uniforms_B: Tensor, suppressed: Sequence[int] = ()
) -> tuple[Tensor, Tensor]:
    """A token per row and its log-prob under the tempered distribution.

    Where the temperature is 0 the likeliest token, untempered.

    `uniforms_B` lies in [0, 1), float64. The token is the first whose cumulative probability
    exceeds it, so one of probability 0 is never drawn. `unsayable` tokens are passed over;
    log-probs stay those of the whole distribution, which is what anybody recomputes.
    """
    is_greedy_B = temperature_B == 0
    scale_B1 = torch.where(is_greedy_B, 1.0, temperature_B)[:, None]
    logprobs_BV = torch.log_softmax(logits_BV / scale_B1, dim=-1)
    said_BV = logprobs_BV.double().exp()
    said_BV[:, list(suppressed)] = 0.0
    cumulative_BV = said_BV.cumsum(dim=-1)
    drawn_B = (cumulative_BV <= uniforms_B[:, None] * cumulative_BV[:, -1:]).sum(dim=-1)
    token_B = torch.where(is_greedy_B, said_BV.argmax(dim=-1), drawn_B)
    return token_B, logprobs_BV.gather(1, token_B[:, None])[:, 0]


def _uniforms(draw: Draw, num: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.random.Generator(np.random.Philox(key=draw.seed)).random(num)
