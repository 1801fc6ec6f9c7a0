"""Builds the default policy with random weights: a small Qwen3-VL, our tokenizer, its processor.

The folder is in the standard Hugging Face layout; `Qwen3VLForConditionalGeneration.from_pretrained`
and `Qwen3VLProcessor.from_pretrained` load it. `warm_up` trains the weights.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import torch
from tokenizers import Regex, Tokenizer
from tokenizers.decoders import Fuse
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Split
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2VLImageProcessor,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    Qwen3VLProcessor,
    Qwen3VLVideoProcessor,
)
from transformers.utils import logging as transformers_logging

from producer.agents.android.policy.vocabulary import NUM_COORDINATES, WORD_PATTERN, split_words
from producer.codecs.compact import COMPACT_MARK

END_OF_TURN: Final = "<|im_end|>"
IMAGE: Final = "<|image_pad|>"
PADDING: Final = "<|endoftext|>"
UNKNOWN: Final = "<|unk|>"
SPECIAL_TOKENS: Final = (
    PADDING,
    UNKNOWN,
    "<|im_start|>",
    END_OF_TURN,
    "<|vision_start|>",
    "<|vision_end|>",
    IMAGE,
    "<|video_pad|>",
)
"""Qwen-VL's token names, which its processor and rope code look up."""

_ROLES: Final = ("user", "assistant", "system")
_MARKS: Final = tuple("()[]{}<>,.:;!?'\"-_+*/=%&@#|")

CHAT_TEMPLATE: Final = (
    "{%- for message in messages -%}<|im_start|>{{ message['role'] }}"
    "{%- if message['content'] is string %} {{ message['content'] }}"
    "{%- else -%}{%- for part in message['content'] -%}"
    "{%- if part['type'] == 'image' -%}<|vision_start|><|image_pad|><|vision_end|>"
    "{%- else %} {{ part['text'] }}{%- endif -%}"
    "{%- endfor -%}{%- endif -%}<|im_end|>{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|im_start|>assistant {% endif -%}"
)
"""Qwen's chat template without line breaks, each of which would cost a token per turn."""


def build_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Build a tokenizer whose vocabulary covers `texts`, in whatever order they come."""
    words = {word for text in texts for word in split_words(text)}
    numbers = tuple(str(number) for number in range(NUM_COORDINATES))
    vocabulary: dict[str, int] = {}
    for token in (*SPECIAL_TOKENS, *numbers, *_MARKS, *_ROLES, *sorted(words)):
        vocabulary.setdefault(token, len(vocabulary))
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Split(Regex(WORD_PATTERN), behavior="removed", invert=True)
    tokenizer.decoder = Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token=UNKNOWN,
        pad_token=PADDING,
        eos_token=END_OF_TURN,
        additional_special_tokens=[
            token for token in SPECIAL_TOKENS if token not in {UNKNOWN, PADDING, END_OF_TURN}
        ],
        clean_up_tokenization_spaces=False,
    )


@dataclass(frozen=True, slots=True)
class PolicySize:
    """Dimensions of the network; the defaults give about 1.3 M parameters."""

    text_dim: int = 128
    text_layers: int = 4
    text_heads: int = 4
    """Attention heads, each of text_dim / text_heads dimensions. There are as many key and value
    heads: at this size that is cheaper than repeating shared ones."""
    text_ffn: int = 384
    vision_dim: int = 96
    vision_layers: int = 3
    vision_heads: int = 4
    vision_ffn: int = 256
    patch_px: int = 16
    """Side of a patch of the resized screen, px; each patch is one image token."""
    screen_pixels: int = 128 * 128
    """Largest area after resizing, in pixels. Resizing keeps the aspect ratio: 360 x 640 becomes 96
    x 160, which is 60 patches."""
    initializer_range: float = 0.1
    """Standard deviation of initial weights, about 1 / sqrt(dim). The architecture's default of
    0.02 suits thousands of dimensions: with it, 150 steps of alignment get 36 % of names right
    instead of 91 % (docs/measurements/demo-policy.md)."""
    position_grid: int = 10
    """Learned position embeddings per side, interpolated to an image's patches."""


def build_policy(
    folder: Path, texts: Iterable[str], seed: int, size: PolicySize | None = None
) -> None:
    """Write tokenizer, processor and random weights into `folder`; deterministic."""
    transformers_logging.disable_progress_bar()
    size = size or PolicySize()
    tokenizer = build_tokenizer(texts)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        network = Qwen3VLForConditionalGeneration(_network_config(size, tokenizer))
    folder.mkdir(parents=True, exist_ok=True)
    network.save_pretrained(folder)
    (folder / COMPACT_MARK).write_text(
        json.dumps({"codec": "compact", "seed": seed, "size": asdict(size)})
    )
    _processor(size, tokenizer).save_pretrained(folder)


def _network_config(size: PolicySize, tokenizer: PreTrainedTokenizerFast) -> Qwen3VLConfig:
    head_dim = size.text_dim // size.text_heads
    side = head_dim // 2 // 3
    token = tokenizer.convert_tokens_to_ids
    return Qwen3VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": size.text_dim,
            "initializer_range": size.initializer_range,
            "intermediate_size": size.text_ffn,
            "num_hidden_layers": size.text_layers,
            "num_attention_heads": size.text_heads,
            "num_key_value_heads": size.text_heads,
            "head_dim": head_dim,
            "max_position_embeddings": 4096,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 1e6,
                "mrope_section": [head_dim // 2 - 2 * side, side, side],
                "mrope_interleaved": True,
            },
            "tie_word_embeddings": True,
            "pad_token_id": tokenizer.pad_token_id,
            "eos_token_id": tokenizer.eos_token_id,
        },
        vision_config={
            "depth": size.vision_layers,
            "hidden_size": size.vision_dim,
            "initializer_range": size.initializer_range,
            "intermediate_size": size.vision_ffn,
            "num_heads": size.vision_heads,
            "patch_size": size.patch_px,
            "spatial_merge_size": 1,
            "temporal_patch_size": 1,
            "out_hidden_size": size.text_dim,
            "num_position_embeddings": size.position_grid**2,
            "deepstack_visual_indexes": [],
        },
        image_token_id=token("<|image_pad|>"),
        video_token_id=token("<|video_pad|>"),
        vision_start_token_id=token("<|vision_start|>"),
        vision_end_token_id=token("<|vision_end|>"),
        tie_word_embeddings=True,
        dtype="float32",
    )


def image_processor(size: PolicySize) -> Qwen2VLImageProcessor:
    """An image processor that resizes a screen and cuts it into patches."""
    return Qwen2VLImageProcessor(**_image_options(size))


def _processor(size: PolicySize, tokenizer: PreTrainedTokenizerFast) -> Qwen3VLProcessor:
    videos = Qwen3VLVideoProcessor(**_image_options(size))
    return Qwen3VLProcessor(
        image_processor=image_processor(size),
        tokenizer=tokenizer,
        video_processor=videos,
        chat_template=CHAT_TEMPLATE,
    )


def _image_options(size: PolicySize) -> dict[str, Any]:
    half = [0.5, 0.5, 0.5]
    return {
        "size": {"shortest_edge": size.screen_pixels // 4, "longest_edge": size.screen_pixels},
        "patch_size": size.patch_px,
        "temporal_patch_size": 1,
        "merge_size": 1,
        "image_mean": half,
        "image_std": half,
    }
