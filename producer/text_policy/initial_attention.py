"""Initial attention weights with which the small text policy can copy from its first step on.

Copying is what it does: names from the question into the SQL, rows from the result into the answer.
Networks learn the circuit for it (induction, arXiv 2209.11895: a head that looks one token back,
and a later one that looks for what followed the same token before) only after thousands of steps,
too many for a few minutes on a laptop. So the circuit is built in, and trained with everything
else:

- In layer 0, one head attends to the previous token and another to the one before that. Their
  queries and keys are biases, rotated against each other by one and by two positions in the fastest
  frequencies. Both read the same features and write into separate directions.
- In layer 1, one head compares a token (query) with the predecessor of another token (key) and
  copies what followed it last time. Another head compares a token's predecessor (query) with the
  token two back (key), so that rows are copied whose values stand between equal signs. Both use
  frequencies that hardly rotate.
- Every other head copies from the most similar token: keys equal queries, and the output projection
  is the transpose of the value projection.

docs/dbbench.md describes the policy.
"""

import math
from typing import Any, Final

import torch
from torch import Tensor
from transformers import PreTrainedModel

BACK: Final = (1, 2)
"""How many tokens back the first heads of layer 0 look."""
NUM_FAST: Final = 3
"""Number of fastest frequencies used for looking back; with fewer, the pattern repeats within 50
tokens."""
FIRST_SLOW: Final = 6
"""Frequencies from this index on rotate too little to hide that two tokens are the same."""
QK_NORM: Final = 1.7
"""Weight of query and key norms: with 1, attention over 100 tokens is too flat."""
BIAS: Final = 3.0
WRITTEN: Final = 4.0
"""Scale of what the first heads write, relative to the token's own embedding."""
QUIET: Final = 0.2
"""Scale of all other outputs at first, so that they do not cover what is written."""
LEFT: Final = 0.05
"""Scale of the first heads' random query and key weights, relative to their biases."""


@torch.no_grad()
def lay_out_copying(network: PreTrainedModel, seed: int) -> None:
    """Set the attention of a Qwen3 network with biases and at least two layers, in place."""
    model: Any = network.model
    layers = [layer.self_attn for layer in model.layers]
    for layer, attention in zip(model.layers, layers, strict=True):
        attention.k_proj.weight.copy_(attention.q_proj.weight)
        attention.o_proj.weight.copy_(attention.v_proj.weight.T)
        attention.q_norm.weight.fill_(QK_NORM)
        attention.k_norm.weight.fill_(QK_NORM)
        for projection in (attention.q_proj, attention.k_proj, attention.v_proj):
            projection.bias.zero_()
        layer.mlp.down_proj.weight.mul_(QUIET)
    head_dim = network.config.head_dim
    used = len(BACK) * head_dim
    for attention in layers:
        attention.o_proj.weight[:, used:].mul_(QUIET)
    first, second = layers[0], layers[1]
    written = _directions_apart_from(first.v_proj.weight[:head_dim], used, seed)
    frequencies = model.rotary_emb.inv_freq
    slow = [at for at in range(head_dim) if at % (head_dim // 2) >= FIRST_SLOW]
    first.v_proj.weight[head_dim:used] = first.v_proj.weight[:head_dim]
    for head, distance in enumerate(BACK):
        begin = head * head_dim
        rows = slice(begin, begin + head_dim)
        first.q_proj.weight[rows].mul_(LEFT)
        first.k_proj.weight[rows].mul_(LEFT)
        for fast in range(NUM_FAST):
            angle = -distance * float(frequencies[fast])
            first.k_proj.bias[begin + fast] = BIAS
            first.q_proj.bias[begin + fast] = BIAS * math.cos(angle)
            first.q_proj.bias[begin + fast + head_dim // 2] = BIAS * math.sin(angle)
        first.o_proj.weight[:, rows] = WRITTEN * written[:, rows]
        second.q_proj.weight[rows] = 0
        second.k_proj.weight[rows] = 0
        compared = [begin + at for at in slow]
        second.k_proj.weight[compared] = first.o_proj.weight[:, compared].T
        # The first head compares with the token itself, the second with the one before it.
        second.q_proj.weight[compared] = (
            first.o_proj.weight[:, slow].T if head else first.v_proj.weight[slow]
        )


def _directions_apart_from(read_RD: Tensor, num: int, seed: int) -> Tensor:
    """[D, num] orthonormal directions, also orthogonal to every direction in `read_RD`."""
    generator = torch.Generator().manual_seed(seed)
    drawn_DR = torch.randn((read_RD.shape[1], num), generator=generator)
    basis_DR = torch.linalg.qr(read_RD.T)[0]
    directions_DR: Tensor = torch.linalg.qr(drawn_DR - basis_DR @ (basis_DR.T @ drawn_DR))[0]
    return directions_DR
