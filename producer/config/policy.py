"""Fields of the configuration: the policy and how it samples."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from producer.numbers import NonNegativeFloat, PositiveFloat, PositiveInt, read_names


def _check_named(targets: tuple[str, ...]) -> tuple[str, ...]:
    if not targets or not all(targets):
        message = "names nothing; choose all, attention, mlp, or a list of names"
        raise ValueError(message)
    return targets


TargetModules = Annotated[
    tuple[str, ...], BeforeValidator(read_names), AfterValidator(_check_named)
]


RendererName = Literal[
    "auto", "compact", "qwen_mobile", "qwen_computer", "qwen", "recipe", "openai"
]


class PolicyFields(BaseModel):
    """The policy and how it samples."""

    model_name: str = Field(
        "Qwen/Qwen3-VL-30B-A3B-Instruct",
        description=(
            "Policy to train: a folder, a Hugging Face id, `demo` (small, built on this machine)"
            " or `oracle` (scripted, learns nothing)."
        ),
    )
    base_url: str | None = Field(
        None,
        description=(
            "Sample from this OpenAI-compatible server, such as http://localhost:8000/v1, with"
            " the key in OPENAI_API_KEY. Only for cua-train evaluate."
        ),
    )
    train_type: Literal["lora", "full"] = Field(
        "lora",
        description=(
            "Train LoRA adapters, or all weights of the language model in float32 (full)."
            " Checkpoints of full are whole policies."
        ),
    )
    lora_rank: PositiveInt = Field(32, description="Rank of the LoRA adapters.")
    lora_alpha: PositiveFloat | None = Field(
        None,
        description="Scale of the LoRA adapters, which are multiplied by lora_alpha / lora_rank.",
    )
    lora_dropout: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.0,
        description="Dropout of an adapter's input during updates; sampling uses none.",
    )
    target_modules: TargetModules | None = Field(
        None,
        description=(
            "Adapted modules of the language model: all, attention, mlp, or a JSON list of names"
            ' (["q_proj", "v_proj"]) or regular expressions. all and mlp include experts.'
        ),
    )
    load_checkpoint_path: Path | None = Field(
        None,
        description=(
            "Start from this adapter (PEFT layout), with its own rank, alpha and target modules."
        ),
    )
    renderer_name: RendererName = Field(
        "auto",
        description=(
            "Format of prompts and actions: qwen_mobile or qwen_computer (Qwen's official tools),"
            " qwen (our own short prompt), recipe (the CUA recipe's tools), compact (the demo"
            " policy's calls), openai (OpenAI's computer use, only with base_url), or auto"
            " (compact for the demo policy, else qwen_mobile)."
        ),
    )
    max_tokens: PositiveInt = Field(2048, description="Maximum length of a completion, in tokens.")
    temperature: NonNegativeFloat = Field(1.0, description="Sampling temperature in training.")
    top_p: Annotated[float, Field(gt=0, le=1)] = Field(
        1.0,
        description=(
            "Nucleus sampling in training: draw from the most likely tokens with this total"
            " probability. Log-probs are those of the whole distribution, as in verl."
        ),
    )
    oracle_noise: Annotated[float, Field(ge=0, le=1)] = Field(
        0.3, description="Share of random actions of the policy `oracle`."
    )
    ablate: Literal["none", "blank-screenshots"] = Field(
        "none", description="Control experiment: replace the policy's screenshots by blank ones."
    )
