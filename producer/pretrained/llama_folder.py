"""Converts a Llama from a GGUF file to a policy's folder in Hugging Face's layout, in float32.

Deviations from transformers' own reading of GGUF: digits stay single tokens after spaces too, the
epsilon of the norms is the intended decimal number, and the folder loads like any other.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from producer.errors import UsageError
from producer.pretrained.gguf import DEQUANTISED, GgufFile, Weights

CONTROL: Final = 3
"""Type of tokens that never occur in text, such as the end of a turn."""
_NAMES: Final = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""Maps llama.cpp's names of a layer's weights to transformers' names."""
_OUTSIDE: Final = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
"""Names of the other weights. The last is missing if it is tied to the embeddings."""


def check_convertible(file: GgufFile, path: str) -> None:
    """Raise UsageError for an architecture, tokenizer or quantisation that is not supported."""
    architecture = file.settings.get("general.architecture")
    tokenizer = tuple(file.settings.get(f"tokenizer.ggml.{part}") for part in ("model", "pre"))
    kinds = {tensor.kind for tensor in file.tensors.values()} - DEQUANTISED.keys()
    for found, is_right, expected in (
        (f"the architecture {architecture!r}", architecture == "llama", "only llama is"),
        (f"the tokenizer {tokenizer}", tokenizer == ("gpt2", "smollm"), "only gpt2, smollm is"),
        (f"tensors of {', '.join(sorted(kinds))}", not kinds, f"only {', '.join(DEQUANTISED)} are"),
    ):
        if not is_right:
            message = f"{path} has {found}, and {expected} converted; choose another file"
            raise UsageError(message)


def write_folder(file: GgufFile, folder: Path) -> None:
    """Fill the existing, empty folder. Raises ValueError if the file lacks a part of a Llama."""
    try:
        _write_json(folder / "config.json", _config(file))
        _write_tokenizer(file, folder)
        save_file(dict(_weights(file)), folder / "model.safetensors", {"format": "pt"})
    except KeyError as error:
        message = f"it lacks {error.args[0]}"
        raise ValueError(message) from error


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _config(file: GgufFile) -> dict[str, Any]:
    def of(name: str) -> Any:  # noqa: ANN401  # a setting
        return file.settings[f"llama.{name}"]

    def token(name: str) -> Any:  # noqa: ANN401
        return file.settings[f"tokenizer.ggml.{name}_token_id"]

    # In single precision 1e-5 is 9.99999974e-06; the shortest decimal is the intended number.
    epsilon = float(str(np.float32(of("attention.layer_norm_rms_epsilon"))))
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": of("embedding_length"),
        "intermediate_size": of("feed_forward_length"),
        "num_hidden_layers": of("block_count"),
        "num_attention_heads": of("attention.head_count"),
        "num_key_value_heads": of("attention.head_count_kv"),
        "head_dim": of("embedding_length") // of("attention.head_count"),
        "max_position_embeddings": of("context_length"),
        "rms_norm_eps": epsilon,
        "rope_theta": of("rope.freq_base"),
        "rope_scaling": None,
        "attention_bias": False,
        "mlp_bias": False,
        "vocab_size": file.tensors["token_embd.weight"].shape[0],
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "bos_token_id": token("bos"),
        "eos_token_id": token("eos"),
        "pad_token_id": token("padding"),
        "dtype": "float32",
    }


def _weights(file: GgufFile) -> Iterator[tuple[str, Weights]]:
    heads = {
        "attn_q": file.settings["llama.attention.head_count"],
        "attn_k": file.settings["llama.attention.head_count_kv"],
    }
    for name in file.tensors:
        if name in _OUTSIDE:
            yield _OUTSIDE[name], file.read(name)
            continue
        _, layer, part, end = name.split(".")
        weights = file.read(name)
        if part in heads:
            weights = _unpaired(weights, heads[part])
        yield f"model.layers.{layer}.{_NAMES[part]}.{end}", weights


def _unpaired(weights: Weights, num_heads: int) -> Weights:
    """Reorder rows as in transformers, which rotates the two halves of a head's rows together.

    llama.cpp rotates neighbouring rows, and its converter has placed each pair side by side.
    """
    rows, columns = weights.shape
    pairs = weights.reshape(num_heads, rows // num_heads // 2, 2, columns)
    return np.ascontiguousarray(pairs.swapaxes(1, 2).reshape(rows, columns))


def _write_tokenizer(file: GgufFile, folder: Path) -> None:
    tokens: list[str] = file.settings["tokenizer.ggml.tokens"]
    lines: list[str] = file.settings["tokenizer.ggml.merges"]
    merges = [(first, second) for first, _, second in (line.partition(" ") for line in lines)]
    tokenizer = Tokenizer(models.BPE({token: at for at, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds: list[int] = file.settings["tokenizer.ggml.token_type"]
    special = [token for token, kind in zip(tokens, kinds, strict=True) if kind == CONTROL]
    tokenizer.add_special_tokens(
        [AddedToken(one, special=True, normalized=False) for one in special]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    config = _config(file)
    named = {name: tokens[config[f"{name}_token_id"]] for name in ("bos", "eos", "pad")}
    _write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            **{f"{name}_token": token for name, token in named.items()},
            "additional_special_tokens": special,
            "clean_up_tokenization_spaces": False,
            "model_max_length": config["max_position_embeddings"],
            "chat_template": file.settings["tokenizer.chat_template"],
        },
    )
    ends = {f"{name}_token_id": config[f"{name}_token_id"] for name in named}
    _write_json(folder / "generation_config.json", ends)
