"""A loaded policy network: weights, processor and LoRA adapter, and which of their parts the rest of the policy uses.

Loads any folder or hub id of Qwen3-VL's architecture, the built small policy included. It knows no prompts, no episodes and no losses.
"""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import nn
from transformers import Qwen3VLForConditionalGeneration, Qwen3VLProcessor
from transformers.utils import logging as transformers_logging

from producer.errors import NotFoundError, UsageError
from producer.policy.torch_policy.kv_cache import CacheShape

LORA_TARGETS: Final = (
    r".*language_model\.layers\.\d+\.(self_attn\.(q|k|v|o)_proj|mlp\.(gate|up|down)_proj)"
)
"""Every linear map of the language model's layers; the vision tower stays frozen, so that its
features can be kept."""


@dataclass(frozen=True, slots=True)
class Network:
    """A network with its adapter."""

    name: str
    """Folder or hub id that it was loaded from."""
    adapted: PeftModel
    """The whole: base and adapter. Only the adapter's parameters require gradients."""
    base: Qwen3VLForConditionalGeneration
    """The same network without peft's wrapping (its linear maps carry the adapter)."""
    processor: Qwen3VLProcessor

    @property
    def language_model(self) -> nn.Module:
        """Embeddings in, hidden states out."""
        inner: nn.Module = self.base.model.language_model
        return inner

    @property
    def cache_shape(self) -> CacheShape:
        """Of its keys and values."""
        config = self.base.config.get_text_config()
        return CacheShape(config.num_hidden_layers, config.num_key_value_heads, config.head_dim)

    @property
    def device(self) -> torch.device:
        """Where the weights lie."""
        return torch.device(self.base.device)

    @property
    def image_token(self) -> int:
        """Id of the placeholder that stands for one image feature."""
        return int(self.base.config.image_token_id)

    @property
    def end_tokens(self) -> frozenset[int]:
        """Any of these ends a completion."""
        given = self.base.generation_config.eos_token_id
        ids = given if isinstance(given, list) else [given]
        return frozenset(
            {
                int(self.processor.tokenizer.eos_token_id),
                *(int(token) for token in ids if token is not None),
            }
        )

    @property
    def suppressed_tokens(self) -> tuple[int, int]:
        """Placeholders of pictures: in a completion they would stand for an image that is not there."""
        return int(self.base.config.image_token_id), int(self.base.config.video_token_id)

    def trainable(self) -> list[nn.Parameter]:
        """The adapter's parameters, in a fixed order."""
        return [parameter for parameter in self.adapted.parameters() if parameter.requires_grad]


def load_base(name: str) -> tuple[Qwen3VLForConditionalGeneration, Qwen3VLProcessor]:
    """Weights (float32 on the CPU, the stored type elsewhere) and processor of a folder or hub id.

    NotFoundError when there is none of that name; UsageError when it is no Qwen3-VL.
    """
    transformers_logging.disable_progress_bar()
    if _is_path(name) and not Path(name).is_dir():
        message = f"expected a folder with a Qwen3-VL policy, found none at {name}; check the path"
        raise NotFoundError(message)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        processor = Qwen3VLProcessor.from_pretrained(name)
        base = Qwen3VLForConditionalGeneration.from_pretrained(
            name, dtype=torch.float32 if device.type == "cpu" else "auto"
        )
    except OSError as error:
        message = (
            f"expected a folder or hub id of a Qwen3-VL policy, found none under {name!r}"
            f" ({error}); check the name"
        )
        raise NotFoundError(message) from error
    except (ValueError, TypeError, RuntimeError) as error:
        message = (
            f"expected a policy of Qwen3-VL's architecture, {name!r} is none ({error}); choose"
            " another model_name"
        )
        raise UsageError(message) from error
    return base.to(device).eval(), processor


def load_network(name: str, lora_rank: int, seed: int, adapter: Path | None = None) -> Network:
    """The base with a fresh adapter of `lora_rank` (scale alpha / rank = 2.

    B is zero, so it changes nothing yet) or with a saved one.
    """
    base, processor = load_base(name)
    base.requires_grad_(requires_grad=False)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", FutureWarning
        )  # peft asks transformers for a property by its old name
        adapted = (
            _fresh_adapter(base, lora_rank, seed)
            if adapter is None
            else _saved_adapter(base, adapter)
        )
    adapted.eval()
    return Network(name, adapted, base, processor)


def _fresh_adapter(base: Qwen3VLForConditionalGeneration, rank: int, seed: int) -> PeftModel:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        config = LoraConfig(
            r=rank,
            lora_alpha=2 * rank,
            lora_dropout=0.0,
            target_modules=LORA_TARGETS,
            task_type="CAUSAL_LM",
        )
        return get_peft_model(base, config)


def _saved_adapter(base: Qwen3VLForConditionalGeneration, folder: Path) -> PeftModel:
    if not (folder / "adapter_config.json").is_file():
        message = (
            f"expected an adapter in PEFT's layout, found no adapter_config.json in {folder}; pass"
            " a checkpoint's folder"
        )
        raise NotFoundError(message)
    return PeftModel.from_pretrained(base, str(folder), is_trainable=True)


def _is_path(name: str) -> bool:
    return Path(name).is_absolute() or name.startswith((".", "~")) or name.count("/") > 1
