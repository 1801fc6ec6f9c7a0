"""How the training bench sets TRL up: settings, policy, and answers that call a tool."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch
from peft import get_peft_model
from PIL import Image
from transformers import Qwen3VLForConditionalGeneration
from trl import GRPOConfig

from producer.environments.environment import Screenshot
from producer.policy.torch_policy.network import Network
from tests.bench.train_case import Case, PromptGroup

CONTEXT_TOKENS: Final = 4096
"""With tools TRL bounds all turns together; a turn is bounded by max_new_tokens."""
NUM_BATCHES_OF_TURNS: Final = 4
"""Of an update on dialogues: each of 8 sequences, of about 600 tokens. Of single turns one batch of
all is as fast as two of 16."""
OPENING: Final = (
    "<|im_start|>{{ message['role'] }}",
    "{% if message['role'] == 'tool' %}<|im_end|><|im_start|>user"
    "{% else %}<|im_start|>{{ message['role'] }}{% endif %}",
)
"""In the chat template, and in TRL's: a tool's result is rendered as ours renders a next screen.
After an answer that was cut at its last token comes the end token, then the screen as the user's.
"""
CLOSING: Final = (
    "{%- endif -%}<|im_end|>",
    "{%- endif -%}{%- if message['tool_calls'] %} {{ message['tool_calls'] }}{%- endif -%}"
    "<|im_end|>",
)
"""The same: TRL refuses a template that renders no calls. No prompt has one."""


class DecodedGroup(NamedTuple):
    """A `PromptGroup` with decoded screens."""

    description: str
    first: Image.Image
    later: tuple[tuple[Image.Image, ...], ...]


def decoded(groups: Sequence[PromptGroup]) -> list[DecodedGroup]:
    """The step's prompts for TRL."""
    return [
        DecodedGroup(
            group.task.description,
            _image(group.first),
            tuple(tuple(_image(shot) for shot in shots) for shots in group.later),
        )
        for group in groups
    ]


def _image(shot: Screenshot) -> Image.Image:
    return Image.open(io.BytesIO(shot.png)).convert("RGB")


def same_policy(folder: Path, network: Network) -> Any:
    """The network as transformers and peft alone load it, with `network`'s adapter."""
    base = Qwen3VLForConditionalGeneration.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="sdpa"
    ).requires_grad_(requires_grad=False)
    adapted = get_peft_model(base, network.adapted.peft_config["default"])
    ours = dict(network.adapted.named_parameters())
    with torch.no_grad():
        for name, weight in adapted.named_parameters():
            if weight.requires_grad:
                weight.copy_(ours[name])
    return adapted


def config_of(
    folder: Path, network: Network, case: Case, num_steps: int, settings: dict[str, Any]
) -> GRPOConfig:
    """The fastest settings found; `settings` in place of them."""
    num_batches = 1 if case.num_turns == 1 else NUM_BATCHES_OF_TURNS
    chosen: dict[str, Any] = {
        "output_dir": str(folder / "trl"),
        "max_steps": num_steps,
        "per_device_train_batch_size": case.num_rollouts // num_batches,
        "gradient_accumulation_steps": num_batches,
        "num_generations": case.group_size,
        "num_iterations": 1,
        "max_completion_length": case.num_tokens if case.num_turns == 1 else CONTEXT_TOKENS,
        "max_tool_calling_iterations": case.num_turns - 1,
        "temperature": 1.0,
        "beta": 0.0,
        "loss_type": "grpo",
        "epsilon": 0.2,
        "scale_rewards": "none",
        "learning_rate": case.learning_rate,
        "lr_scheduler_type": "constant",
        "adam_beta2": 0.95,
        "max_grad_norm": 0.0,
        "shuffle_dataset": False,
        "use_vllm": False,
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "logging_strategy": "no",
        "save_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
        "seed": 0,
        "generation_kwargs": {
            "suppress_tokens": list(network.suppressed_tokens),
            "max_new_tokens": case.num_tokens,
        },
    }
    return GRPOConfig(**(chosen | settings))


def answer_with_calls(processor: Any) -> None:
    """Have TRL read every answer as a call of its tool, and render the tool's screen as ours.

    The policy has random weights and writes no calls.
    """
    tokenizer = processor.tokenizer
    processor.chat_template = processor.chat_template.replace(*OPENING).replace(*CLOSING)

    def parse_response(tokens: list[int], **_: Any) -> dict[str, Any]:
        call = {"type": "function", "function": {"name": "act", "arguments": {}}}
        return {
            "role": "assistant",
            "content": tokenizer.decode(tokens, skip_special_tokens=True),
            "tool_calls": [call],
        }

    tokenizer.response_template = "every answer is a call"
    tokenizer.parse_response = parse_response
