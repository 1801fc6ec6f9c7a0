"""Small policies with random weights in the layout that the hub has for each architecture.

Written tensor by tensor under the hub's names (not with `save_pretrained`, which writes those of
the installed transformers): sharded safetensors with an index, the hub's fields in `config.json`, a
byte-level BPE tokenizer with Qwen's added tokens, processor configurations and chat templates.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers.trainers import BpeTrainer
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

ARCHITECTURES = ("qwen2", "qwen3", "llama", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe")
VISUAL = ("qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe")
TEXTS = (
    "Turn on Wi-Fi. Open Settings, then tap Network and internet.",
    "SELECT name, count(*) FROM orders WHERE total > 10 GROUP BY name;",
    '<tool_call>\n{"name": "mobile_use", "arguments": {"action": "click"}}\n</tool_call>',
)
_ADDED = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
_NOT_SPECIAL = ("<tool_call>", "</tool_call>", "<think>", "</think>")
_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_TEXT_TEMPLATE = (
    "{%- if messages[0].role == 'system' %}\n"
    "    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}\n"
    "{%- endif %}\n"
    "{%- for message in messages %}\n"
    "    {%- if message.role == 'user' %}\n"
    "        {{- '<|im_start|>' + message.role + '\\n' + message.content }}\n"
    "        {{- '<|im_end|>' + '\\n' }}\n"
    "    {%- elif message.role == 'assistant' %}\n"
    "        {{- '<|im_start|>assistant\\n' + message.content + '<|im_end|>\\n' }}\n"
    "    {%- endif %}\n"
    "{%- endfor %}\n"
    "{%- if add_generation_prompt %}\n"
    "    {{- '<|im_start|>assistant\\n' }}\n"
    "{%- endif %}"
)
_VISUAL_TEMPLATE = (
    "{% for message in messages %}{% if loop.first and message['role'] != 'system' %}"
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n{% endif %}"
    "<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}<|im_end|>\n{% else %}"
    "{% for content in message['content'] %}"
    "{% if content['type'] == 'image' or 'image' in content or 'image_url' in content %}"
    "<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif 'text' in content %}{{ content['text'] }}{% endif %}{% endfor %}<|im_end|>\n"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_checkpoint(
    folder: Path, model_type: str, *, tied: bool = False, seed: int = 0, num_shards: int = 3
) -> None:
    """Write a small policy of this architecture; deterministic."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _write_tokenizer(folder, model_type)
    config = hub_config(model_type, tokenizer, tied=tied)
    write_json(folder / "config.json", config)
    end = [tokenizer.token_to_id("<|im_end|>"), tokenizer.token_to_id("<|endoftext|>")]
    write_json(folder / "generation_config.json", {"do_sample": True, "eos_token_id": end})
    if model_type in VISUAL:
        _write_processor(folder, model_type)
    write_shards(folder, hub_weights(folder, model_type, seed), num_shards)


def hub_weights(folder: Path, model_type: str, seed: int = 0) -> dict[str, Tensor]:
    """Random weights of the architecture in `folder`'s config.json, under the hub's names."""
    auto = AutoModelForImageTextToText if model_type in VISUAL else AutoModelForCausalLM
    config = AutoConfig.from_pretrained(folder)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        network = auto.from_config(config)
        weights = {
            name: 0.2 * torch.randn(tensor.shape) + (1.0 if _is_scale(name) else 0.0)
            for name, tensor in network.state_dict().items()
            if not (name == "lm_head.weight" and config.tie_word_embeddings)
        }
    return {_HUB_NAMES[model_type](name): _stored(name, tensor) for name, tensor in weights.items()}


def write_shards(folder: Path, weights: dict[str, Tensor], num_shards: int = 3) -> None:
    """Write `model-0000X-of-0000N.safetensors` and their index."""
    names = sorted(weights)
    files = {
        f"model-{shard + 1:05}-of-{num_shards:05}.safetensors": names[shard::num_shards]
        for shard in range(num_shards)
    }
    for file, held in files.items():
        tensors = {name: weights[name].contiguous() for name in held}
        save_file(tensors, folder / file, metadata={"format": "pt"})
    total = sum(tensor.numel() * tensor.element_size() for tensor in weights.values())
    write_json(
        folder / "model.safetensors.index.json",
        {
            "metadata": {"total_size": total},
            "weight_map": {name: file for file, held in files.items() for name in held},
        },
    )


def write_json(path: Path, content: object) -> None:
    """Write an object as a hub's file."""
    path.write_text(json.dumps(content, indent=2))


def change_json(path: Path, **changes: object) -> None:
    """Replace fields at the top of a JSON file; None removes one."""
    content = json.loads(path.read_text()) | changes
    write_json(path, {name: value for name, value in content.items() if value is not None})


def _is_scale(name: str) -> bool:
    return "norm" in name.rsplit(".", 2)[-2] and name.endswith("weight")


def _stored(name: str, tensor: Tensor) -> Tensor:
    # The hub stores fused experts as (experts, in, out); the module holds (experts, out, in).
    return tensor.transpose(1, 2) if ".mlp.experts." in name else tensor


def _same(name: str) -> str:
    return name


def _qwen2_5_vl_name(name: str) -> str:
    return name.replace("model.language_model.", "model.").replace("model.visual.", "visual.")


_HUB_NAMES: dict[str, Callable[[str], str]] = {
    "qwen2": _same,
    "qwen3": _same,
    "llama": _same,
    "qwen2_5_vl": _qwen2_5_vl_name,
    "qwen3_vl": _same,
    "qwen3_vl_moe": _same,
}


def hub_config(model_type: str, tokenizer: Tokenizer, *, tied: bool = False) -> dict[str, Any]:
    """`config.json` with the fields that the hub's has, and small dimensions."""
    token = tokenizer.token_to_id
    text: dict[str, Any] = {
        "attention_dropout": 0.0,
        "bos_token_id": token("<|endoftext|>"),
        "eos_token_id": token("<|im_end|>"),
        "hidden_act": "silu",
        "hidden_size": 48,
        "initializer_range": 0.02,
        "intermediate_size": 80,
        "max_position_embeddings": 4096,
        "num_attention_heads": 4,
        "num_hidden_layers": 3,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-06,
        "rope_theta": 1000000.0,
        "use_cache": True,
        # Rows beyond the tokenizer's, as the hub's policies have.
        "vocab_size": tokenizer.get_vocab_size() + 13,
    }
    qwen3: dict[str, Any] = {"attention_bias": False, "head_dim": 16}
    window: dict[str, Any] = {
        "sliding_window": 32768,
        "max_window_layers": 3,
        "use_sliding_window": False,
    }
    images = {
        "image_token_id": token("<|image_pad|>"),
        "video_token_id": token("<|video_pad|>"),
        "vision_start_token_id": token("<|vision_start|>"),
        "vision_end_token_id": token("<|vision_end|>"),
    }
    common: dict[str, Any] = {
        "dtype": "float32",
        "tie_word_embeddings": tied,
        "transformers_version": "4.57.1",
    }
    match model_type:
        case "qwen2":
            own: dict[str, Any] = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"}
            return own | text | window | {"torch_dtype": "float32"} | common
        case "qwen3":
            own = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"}
            more: dict[str, Any] = {
                "rope_scaling": None,
                "sliding_window": None,
                "use_sliding_window": False,
            }
            return own | text | qwen3 | more | common
        case "llama":
            # As SmolLM2, which ties its embeddings: no biases, no norms of queries and keys.
            own = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
            more = {
                "attention_bias": False,
                "head_dim": 12,
                "mlp_bias": False,
                "pretraining_tp": 1,
                "rms_norm_eps": 1e-05,
                "rope_interleaved": False,
                "rope_scaling": None,
                "rope_theta": 100000,
            }
            return own | text | more | common
        case "qwen2_5_vl":
            vision = _vision_2_5(text["hidden_size"])
            mrope = {"rope_scaling": {"type": "mrope", "mrope_section": [2, 2, 2]}}
            return {
                "architectures": ["Qwen2_5_VLForConditionalGeneration"],
                "model_type": "qwen2_5_vl",
                "vision_config": vision,
                **text,
                **window,
                **mrope,
                **images,
                "vision_token_id": token("<|vision_pad|>"),
                **common,
            }
        case "qwen3_vl" | "qwen3_vl_moe":
            is_moe = model_type == "qwen3_vl_moe"
            rope: dict[str, Any] = {
                "rope_scaling": {
                    "mrope_interleaved": True,
                    "mrope_section": [4, 2, 2],
                    "rope_type": "default",
                }
            }
            experts: dict[str, Any] = {
                "decoder_sparse_step": 1,
                "mlp_only_layers": [],
                "moe_intermediate_size": 20,
                "norm_topk_prob": True,
                "num_experts": 6,
                "num_experts_per_tok": 2,
            }
            language = {**text, **qwen3, **rope, "model_type": f"{model_type}_text"}
            name = "Qwen3VLMoe" if is_moe else "Qwen3VL"
            return {
                "architectures": [f"{name}ForConditionalGeneration"],
                "model_type": model_type,
                "text_config": language | (experts if is_moe else {}),
                "vision_config": _vision_3(model_type, text["hidden_size"]),
                **images,
                **{key: value for key, value in common.items() if key != "dtype"},
            }
        case _:
            raise ValueError(model_type)


def _vision_2_5(hidden_size: int) -> dict[str, Any]:
    return {
        "depth": 3,
        "fullatt_block_indexes": [1],
        "hidden_act": "silu",
        "hidden_size": 32,
        "in_chans": 3,
        "in_channels": 3,
        "intermediate_size": 40,
        "model_type": "qwen2_5_vl",
        "num_heads": 2,
        "out_hidden_size": hidden_size,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "spatial_patch_size": 14,
        "temporal_patch_size": 2,
        "tokens_per_second": 2,
        "window_size": 56,
    }


def _vision_3(model_type: str, hidden_size: int) -> dict[str, Any]:
    return {
        "deepstack_visual_indexes": [0, 2],
        "depth": 3,
        "hidden_act": "gelu_pytorch_tanh",
        "hidden_size": 32,
        "in_channels": 3,
        "initializer_range": 0.02,
        "intermediate_size": 40,
        "model_type": model_type,
        "num_heads": 2,
        "num_position_embeddings": 36,
        "out_hidden_size": hidden_size,
        "patch_size": 16,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
    }


def _write_tokenizer(folder: Path, model_type: str) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = BpeTrainer(vocab_size=320, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in _ADDED])
    tokenizer.add_tokens([AddedToken(token, special=False) for token in _NOT_SPECIAL])
    tokenizer.save(str(folder / "tokenizer.json"))
    tokenizer.model.save(str(folder))
    template = _VISUAL_TEMPLATE if model_type in VISUAL else _TEXT_TEMPLATE
    added = {
        str(tokenizer.token_to_id(token)): {
            "content": token,
            "lstrip": False,
            "normalized": False,
            "rstrip": False,
            "single_word": False,
            "special": token in _ADDED,
        }
        for token in (*_ADDED, *_NOT_SPECIAL)
    }
    write_json(
        folder / "tokenizer_config.json",
        {
            "add_bos_token": False,
            "add_prefix_space": False,
            "added_tokens_decoder": added,
            "additional_special_tokens": list(_ADDED[1:]),
            "bos_token": None,
            "chat_template": template,
            "clean_up_tokenization_spaces": False,
            "eos_token": "<|im_end|>",
            "errors": "replace",
            "model_max_length": 131072,
            "pad_token": "<|endoftext|>",
            "split_special_tokens": False,
            "tokenizer_class": "Qwen2Tokenizer",
            "unk_token": None,
        },
    )
    if model_type in VISUAL:
        write_json(folder / "chat_template.json", {"chat_template": template})
    return tokenizer


def _write_processor(folder: Path, model_type: str) -> None:
    is_3 = model_type != "qwen2_5_vl"
    patch = 16 if is_3 else 14
    common: dict[str, Any] = {
        "patch_size": patch,
        "temporal_patch_size": 2,
        "merge_size": 2,
        "image_mean": [0.5, 0.5, 0.5] if is_3 else [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.5, 0.5, 0.5] if is_3 else [0.26862954, 0.26130258, 0.27577711],
    }
    # Screens of the tests become about 24 patches of merged image tokens.
    low, high = 16 * (2 * patch) ** 2, 32 * (2 * patch) ** 2
    if is_3:
        own: dict[str, Any] = {
            "size": {"longest_edge": high, "shortest_edge": low},
            "processor_class": "Qwen3VLProcessor",
            "image_processor_type": "Qwen2VLImageProcessorFast",
        }
        video = own | {"video_processor_type": "Qwen3VLVideoProcessor"}
        video.pop("image_processor_type")
        write_json(folder / "video_preprocessor_config.json", common | video)
    else:
        own = {
            "min_pixels": low,
            "max_pixels": high,
            "image_processor_type": "Qwen2VLImageProcessor",
            "processor_class": "Qwen2_5_VLProcessor",
        }
    write_json(folder / "preprocessor_config.json", common | own)
