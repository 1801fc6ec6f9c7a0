"""Fields of the configuration: the policy and how it samples."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from producer.config.numbers import NonNegativeFloat, PositiveInt


class PolicyFields(BaseModel):
    """The policy and how it samples."""

    model_name: str = Field(
        "Qwen/Qwen3-VL-30B-A3B-Instruct",
        description=(
            "Policy to train: a folder, a Hugging Face id, `demo` (small, built on this machine)"
            " or `oracle` (scripted, learns nothing)."
        ),
    )
    lora_rank: PositiveInt = Field(32, description="Rank of the LoRA adapters.")
    load_checkpoint_path: Path | None = Field(
        None, description="Start from this adapter (PEFT layout)."
    )
    renderer_name: Literal["auto", "compact", "qwen_mobile", "qwen_computer", "qwen"] = Field(
        "auto",
        description=(
            "Format of prompts and actions: qwen_mobile or qwen_computer (Qwen's official"
            " tools), qwen (a short prompt of ours), compact (the demo policy's calls), or auto"
            " (compact for the demo policy, else qwen_mobile)."
        ),
    )
    max_tokens: PositiveInt = Field(2048, description="Maximum length of a completion, in tokens.")
    temperature: NonNegativeFloat = Field(1.0, description="Sampling temperature in training.")
    oracle_noise: Annotated[float, Field(ge=0, le=1)] = Field(
        0.3, description="Share of random actions of the policy `oracle`."
    )
    ablate: Literal["none", "blank-screenshots"] = Field(
        "none", description="Control experiment: show the policy blank screenshots."
    )
