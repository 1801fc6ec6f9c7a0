"""Writes GGUF files byte by byte, and a small Llama as llama.cpp's converter would."""

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

KINDS = {"F32": 0, "Q4_0": 2, "Q4_1": 3, "Q8_0": 8}
TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    *"0123456789abcdefghijklmnopqrstuvwxyz",
    "Ġ",
    "ab",
    "12",
)
"""Without a byte alphabet: only these characters are texts of the policy."""
TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content']"
    " + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def text(value: str) -> bytes:
    """After its length."""
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def value(given: Any) -> bytes:
    """A setting: its type and itself."""
    if isinstance(given, str):
        return struct.pack("<I", 8) + text(given)
    if isinstance(given, bool):
        return struct.pack("<I?", 7, given)
    if isinstance(given, float):
        return struct.pack("<If", 6, given)
    if isinstance(given, int):
        return struct.pack("<II", 4, given)
    if isinstance(given[0], str):
        return struct.pack("<IIQ", 9, 8, len(given)) + b"".join(map(text, given))
    return struct.pack("<IIQ", 9, 5, len(given)) + struct.pack(f"<{len(given)}i", *given)


def gguf(
    settings: Mapping[str, Any], tensors: Mapping[str, tuple[str, tuple[int, ...], bytes]]
) -> bytes:
    """A file of version 3. A tensor: type, shape as numpy has it, data."""
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(settings))
    for name, given in settings.items():
        header += text(name) + value(given)
    data = b""
    for name, (kind, shape, stored) in tensors.items():
        header += text(name) + struct.pack("<I", len(shape))
        header += struct.pack(f"<{len(shape)}Q", *reversed(shape))
        header += struct.pack("<IQ", KINDS[kind], len(data))
        data += stored + b"\0" * (-len(stored) % 32)
    return header + b"\0" * (-len(header) % 32) + data


def float32(shape: tuple[int, ...], start: float = 0.0) -> tuple[str, tuple[int, ...], bytes]:
    """Consecutive numbers."""
    count = int(np.prod(shape))
    return "F32", shape, (np.arange(count, dtype="<f4") + np.float32(start)).tobytes()


def small_llama(**changes: Any) -> bytes:
    """One layer, 8 wide, 2 heads of 4 with 1 of keys; `changes` of its settings."""
    settings = {
        "general.architecture": "llama",
        "llama.block_count": 1,
        "llama.context_length": 64,
        "llama.embedding_length": 8,
        "llama.feed_forward_length": 16,
        "llama.attention.head_count": 2,
        "llama.attention.head_count_kv": 1,
        "llama.rope.freq_base": 100000.0,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": TOKENS,
        "tokenizer.ggml.token_type": [3, 3, 3, *[1] * (len(TOKENS) - 3)],
        "tokenizer.ggml.merges": ["a b", "1 2"],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.padding_token_id": 2,
        "tokenizer.chat_template": TEMPLATE,
        **changes,
    }
    tensors = {
        "token_embd.weight": float32((len(TOKENS), 8)),
        "output_norm.weight": float32((8,), 1.0),
        "blk.0.attn_norm.weight": float32((8,), 2.0),
        "blk.0.ffn_norm.weight": float32((8,), 3.0),
        "blk.0.attn_q.weight": float32((8, 8)),
        "blk.0.attn_k.weight": float32((4, 8)),
        "blk.0.attn_v.weight": float32((4, 8), 5.0),
        "blk.0.attn_output.weight": float32((8, 8), 6.0),
        "blk.0.ffn_gate.weight": float32((16, 8), 7.0),
        "blk.0.ffn_up.weight": float32((16, 8), 8.0),
        "blk.0.ffn_down.weight": float32((8, 16), 9.0),
    }
    return gguf(settings, tensors)
