"""Builds a small text policy with random weights: a Qwen3 network and its tokenizer.

The folder is in the standard Hugging Face layout, so the ordinary loading code takes it like any
policy of the hub.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM
from transformers.utils import logging as transformers_logging

from producer.text_policy.tokenizer import build_tokenizer


@dataclass(frozen=True, slots=True)
class TextPolicySize:
    """Dimensions of the network; the defaults give about 1 M parameters beside the embeddings."""

    dim: int = 128
    layers: int = 4
    heads: int = 4
    """Each of dim / heads dimensions, with as many for keys and values."""
    ffn: int = 384
    max_tokens: int = 4096
    """Positions."""
    rope_theta: float = 1e6
    """Base of the rotary embedding's wavelengths."""
    initializer_range: float = 0.1
    """Standard deviation of initial weights, about 1 / sqrt(dim)."""


def build_text_policy(
    folder: Path,
    texts: Iterable[str],
    seed: int,
    size: TextPolicySize | None = None,
    *,
    words: Sequence[str] = (),
    extra_tokens: Sequence[str] = (),
) -> None:
    """Write tokenizer, configuration and random weights into `folder`; deterministic.

    `texts`, `words` and `extra_tokens`: as `build_tokenizer` takes them.
    """
    transformers_logging.disable_progress_bar()
    size = size or TextPolicySize()
    tokenizer = build_tokenizer(texts, words, extra_tokens)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=size.dim,
        initializer_range=size.initializer_range,
        intermediate_size=size.ffn,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.heads,
        head_dim=size.dim // size.heads,
        max_position_embeddings=size.max_tokens,
        tie_word_embeddings=True,
        use_sliding_window=False,
        attention_bias=True,
        rope_parameters={"rope_type": "default", "rope_theta": size.rope_theta},
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        dtype="float32",
    )
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        network = Qwen3ForCausalLM(config)
    folder.mkdir(parents=True, exist_ok=True)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
