"""A loaded policy network: weights, processor and LoRA adapter.

Names the parts that the rest of the policy uses. Knows no prompts, episodes or losses.
"""

from dataclasses import dataclass
from typing import Any

import torch
from peft import PeftModel
from peft.tuners.lora.layer import ParamWrapper
from torch import Tensor, nn
from transformers import PreTrainedModel

from producer.policy.torch_policy.architectures import Architecture


@dataclass(frozen=True, slots=True)
class CacheShape:
    """Dimensions of a network's KV cache."""

    num_layers: int
    num_heads: int
    head_dim: int

    def position_bytes(self, dtype: torch.dtype) -> int:
        """Bytes of one token's keys and values."""
        return 2 * self.num_layers * self.num_heads * self.head_dim * dtype.itemsize


@dataclass(frozen=True, slots=True)
class Network:
    """A network with its adapter."""

    name: str
    """Folder or hub id that it was loaded from."""
    architecture: Architecture
    adapted: PeftModel
    """Base and adapter. Only the adapter's parameters require gradients."""
    base: PreTrainedModel
    """The same network without peft's wrapper; its linear layers carry the adapter."""
    processor: Any
    """The processor of a policy that sees screens, otherwise the tokenizer."""
    base_fingerprint: str
    """Hash that is equal for equal weights of the base."""
    estimated_bytes: int | None = None
    """Estimated peak memory of a run; None if unknown."""

    @property
    def trains_all(self) -> bool:
        """Whether all weights are trained instead of a low-rank adapter."""
        return bool(self.adapted.peft_config["default"].modules_to_save)

    @property
    def tokenizer(self) -> Any:
        """The tokenizer."""
        return self.processor.tokenizer if self.architecture.sees_screens else self.processor

    @property
    def language_model(self) -> nn.Module:
        """The network from embeddings to hidden states."""
        model = self.base.model
        inner: nn.Module = model.language_model if self.architecture.sees_screens else model
        return inner

    @property
    def visual(self) -> nn.Module | None:
        """The vision tower; None for a policy that sees no screens."""
        tower: nn.Module | None = self.base.model.visual if self.architecture.sees_screens else None
        return tower

    @property
    def cache_shape(self) -> CacheShape:
        """Dimensions of its KV cache."""
        config = self.base.config.get_text_config()
        head_dim = getattr(config, "head_dim", None)
        return CacheShape(
            num_layers=config.num_hidden_layers,
            num_heads=config.num_key_value_heads,
            head_dim=head_dim or config.hidden_size // config.num_attention_heads,
        )

    @property
    def num_weights(self) -> int:
        """Number of weights of the base with its adapter."""
        return sum(weight.numel() for weight in self.base.parameters())

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return torch.device(self.base.device)

    @property
    def vocabulary(self) -> int:
        """Number of logits per position."""
        return int(self.base.config.get_text_config().vocab_size)

    @property
    def max_workers(self) -> int | None:
        """Number of passes that may run concurrently; None: unlimited.

        It is 1 with fused experts: peft changes their module during a pass, which a second pass
        would see.
        """
        has_experts = any(isinstance(module, ParamWrapper) for module in self.adapted.modules())
        return 1 if has_experts else None

    @property
    def image_token(self) -> int | None:
        """Id of the placeholder for one image feature; None for a policy that sees no screens."""
        return int(self.base.config.image_token_id) if self.architecture.sees_screens else None

    @property
    def max_context_tokens(self) -> int | None:
        """Maximum context in tokens; None if its configuration does not state it."""
        return getattr(self.base.config.get_text_config(), "max_position_embeddings", None)

    @property
    def end_tokens(self) -> frozenset[int]:
        """Tokens that end a completion."""
        configured = self.base.generation_config.eos_token_id
        ids = configured if isinstance(configured, list) else [configured]
        return frozenset(
            {
                int(self.tokenizer.eos_token_id),
                *(int(token) for token in ids if token is not None),
            }
        )

    @property
    def suppressed_tokens(self) -> tuple[int, ...]:
        """Image and video placeholders; in a completion they would refer to a missing image."""
        if not self.architecture.sees_screens:
            return ()
        return int(self.base.config.image_token_id), int(self.base.config.video_token_id)

    def positions(self, positions_3BT: Tensor) -> Tensor:
        """Positions as the language model takes them: [3, B, T], or [B, T] without screens."""
        return positions_3BT if self.architecture.sees_screens else positions_3BT[0]

    def trainable(self) -> list[nn.Parameter]:
        """The adapter's parameters, in a fixed order."""
        return [parameter for parameter in self.adapted.parameters() if parameter.requires_grad]
