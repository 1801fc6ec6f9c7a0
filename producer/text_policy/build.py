"""Builds a small text policy with random weights: a Qwen3 network and its tokenizer.

The folder is in the standard Hugging Face layout, so the ordinary loading code handles it like any
policy from the hub.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from tokenizers import Regex, Tokenizer, decoders, normalizers
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import Split
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from transformers.utils import logging as transformers_logging

START: Final = "\ue000"
"""Marks the beginning of every word."""
_ESCAPE, _ESCAPED_START, _ESCAPED_ESCAPE = "\ue001", "\ue001\ue002", "\ue001\ue003"
_WORD: Final = "[A-Za-z0-9_]"
_PIECE: Final = f"{START}?[A-Za-z_]+|{START}?[0-9]|[^A-Za-z0-9_{START}]+"
"""Matches the letters of a word, one digit, or the text between words."""
MAX_GAPS: Final = 400
"""Maximum number of texts between words that get a token of their own, most frequent first."""
MIN_GAP_COUNT: Final = 5
"""Minimum number of occurrences for such a text to get a token."""

END_OF_TURN: Final = "<|im_end|>"
PADDING: Final = "<|endoftext|>"
SPECIAL_TOKENS: Final = (PADDING, "<|im_start|>", END_OF_TURN)
"""Qwen's names of the special tokens."""

CHAT_TEMPLATE: Final = (
    "{%- for message in messages -%}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}"
)
"""Qwen2.5's chat template without its default system prompt and tools."""


def build_tokenizer(
    texts: Iterable[str], words: Sequence[str] = (), extra_tokens: Sequence[str] = ()
) -> PreTrainedTokenizerFast:
    """A tokenizer with a token for every word of `texts` and `words`.

    `extra_tokens`: special marks, such as the label tokens of a reward model. The order of `texts`
    does not change the ids.
    """
    normalizer, splitter = _normalizer(), Split(Regex(_PIECE), behavior="isolated")
    known: set[str] = set()
    gaps: Counter[str] = Counter()
    for text in (*texts, *words):
        for piece, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text)):
            if re.search(_WORD, piece):
                known.add(piece)
            else:
                gaps[piece] += 1
    kept = sorted(gaps, key=lambda gap: (-gaps[gap], gap))[:MAX_GAPS]
    vocabulary: dict[str, int] = {}
    for token in (
        *SPECIAL_TOKENS,
        *extra_tokens,
        *(f"<0x{byte:02X}>" for byte in range(256)),
        START,
        *(f"{mark}{digit}" for mark in ("", START) for digit in range(10)),
        *(chr(code) for code in (9, 10, 13, *range(32, 127))),
        *sorted(gap for gap in kept if gaps[gap] >= MIN_GAP_COUNT),
        *sorted(known),
    ):
        vocabulary.setdefault(token, len(vocabulary))
    tokenizer = Tokenizer(BPE(vocabulary, [], byte_fallback=True, ignore_merges=True))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = splitter
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Replace(Regex(f"(?<={_WORD}){START}"), " "),
            decoders.Replace(START, ""),
            decoders.Replace(_ESCAPED_START, START),
            decoders.Replace(_ESCAPED_ESCAPE, _ESCAPE),
        ]
    )
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PADDING,
        eos_token=END_OF_TURN,
        additional_special_tokens=[SPECIAL_TOKENS[1], *extra_tokens],
        clean_up_tokenization_spaces=False,
    )
    wrapped.chat_template = CHAT_TEMPLATE
    return wrapped


def _normalizer() -> normalizers.Normalizer:
    return normalizers.Sequence(
        [
            normalizers.Replace(_ESCAPE, _ESCAPED_ESCAPE),
            normalizers.Replace(START, _ESCAPED_START),
            normalizers.Replace(Regex(f"(?<!{_WORD})(?={_WORD})"), START),
            normalizers.Replace(Regex(f"(?<={_WORD}) {START}"), START),
        ]
    )


@dataclass(frozen=True, slots=True)
class TextPolicySize:
    """Dimensions of the network; the defaults give about 1 M parameters besides the embeddings."""

    dim: int = 128
    layers: int = 4
    heads: int = 4
    """Attention heads, each of dim / heads dimensions. There are as many key and value heads."""
    ffn: int = 384
    max_tokens: int = 4096
    """Maximum number of positions."""
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
    """Write tokenizer, configuration and random weights into `folder`. Deterministic.

    `texts`, `words` and `extra_tokens` are passed to `build_tokenizer`.
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
