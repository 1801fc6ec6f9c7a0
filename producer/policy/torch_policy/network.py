"""A loaded policy network: weights, processor and LoRA adapter.

Names the parts that the rest of the policy uses. Knows no prompts, episodes or losses.
"""

from dataclasses import dataclass

import torch
from peft import PeftModel
from torch import nn
from transformers import Qwen3VLForConditionalGeneration, Qwen3VLProcessor

from producer.policy.torch_policy.kv_cache import CacheShape


@dataclass(frozen=True, slots=True)
class Network:
    """A network with its adapter."""

    name: str
    """Folder or hub id that it was loaded from."""
    adapted: PeftModel
    """Base and adapter. Only the adapter's parameters require gradients."""
    base: Qwen3VLForConditionalGeneration
    """The same network without peft's wrapper; its linear layers carry the adapter."""
    processor: Qwen3VLProcessor

    @property
    def language_model(self) -> nn.Module:
        """From embeddings to hidden states."""
        inner: nn.Module = self.base.model.language_model
        return inner

    @property
    def cache_shape(self) -> CacheShape:
        """Dimensions of its KV cache."""
        config = self.base.config.get_text_config()
        return CacheShape(
            num_layers=config.num_hidden_layers,
            num_heads=config.num_key_value_heads,
            head_dim=config.head_dim,
        )

    @property
    def device(self) -> torch.device:
        """Of the weights."""
        return torch.device(self.base.device)

    @property
    def vocabulary(self) -> int:
        """Logits per position."""
        return int(self.base.config.get_text_config().vocab_size)

    @property
    def image_token(self) -> int:
        """Id of the placeholder for one image feature."""
        return int(self.base.config.image_token_id)

    @property
    def max_context_tokens(self) -> int | None:
        """Positions that it was made for, in tokens; None: its configuration does not say."""
        return getattr(self.base.config.get_text_config(), "max_position_embeddings", None)

    @property
    def end_tokens(self) -> frozenset[int]:
        """Tokens that end a completion."""
        configured = self.base.generation_config.eos_token_id
        ids = configured if isinstance(configured, list) else [configured]
        return frozenset(
            {
                int(self.processor.tokenizer.eos_token_id),
                *(int(token) for token in ids if token is not None),
            }
        )

    @property
    def suppressed_tokens(self) -> tuple[int, int]:
        """Image and video placeholders: in a completion they would stand for a missing image."""
        return int(self.base.config.image_token_id), int(self.base.config.video_token_id)

    def trainable(self) -> list[nn.Parameter]:
        """The adapter's parameters, in a fixed order."""
        return [parameter for parameter in self.adapted.parameters() if parameter.requires_grad]
