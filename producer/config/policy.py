"""Fields of the configuration: the policy, how it samples, and where it is computed."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from producer.algorithms.settings import SettingsGroup
from producer.endpoint_url import KEY_VARIABLE, check_url
from producer.numbers import NonNegativeFloat, PositiveFloat, PositiveInt, read_names


def _check_named(targets: tuple[str, ...]) -> tuple[str, ...]:
    if not targets or not all(targets):
        message = "is empty, or has an empty name; choose all, attention, mlp, or a list of names"
        raise ValueError(message)
    return targets


TargetModules = Annotated[
    tuple[str, ...], BeforeValidator(read_names), AfterValidator(_check_named)
]

RendererName = Literal["auto", "compact", "qwen_mobile", "qwen_computer", "recipe", "openai"]
TINKER_PATH = r"^tinker://[^/\s]+/weights/[^/\s]+$"
TinkerPath = Annotated[str, Field(pattern=TINKER_PATH)]
"""Of weights that Tinker saved; those for sampling alone have no optimiser to train with."""


def _check_tinker_path(given: object) -> object:
    """ValueError for another path of Tinker's, which would be taken for a folder."""
    is_tinkers = isinstance(given, str) and given.startswith("tinker://")
    if is_tinkers and re.fullmatch(TINKER_PATH, str(given)) is None:
        message = (
            f"{given!r} is not a path of weights to train; give tinker://RUN/weights/NAME (weights"
            " below sampler_weights are for sampling only)"
        )
        raise ValueError(message)
    return given


def _normal_urls(urls: str) -> str:
    return ",".join(check_url(url, KEY_VARIABLE) for url in urls.split(","))


class PolicyFields(SettingsGroup):
    """The policy and how it samples."""

    provider: Literal["in_process", "tinker"] = "in_process"
    """Who samples and trains: this process, or Tinker, with the key in TINKER_API_KEY and
    model_name as its base model."""
    model_name: str = "Qwen/Qwen3-VL-30B-A3B-Instruct"
    """Policy to train: a folder, a Hugging Face id, a name of `cua-train models`, `demo` (small,
    built on this machine) or `oracle` (scripted, learns nothing)."""
    base_url: Annotated[str, AfterValidator(_normal_urls)] | None = None
    """Sample the rollouts from these OpenAI-compatible servers of model_name, such as
    http://localhost:8000/v1 of vLLM, SGLang or `cua-train serve`, separated by commas, with the key
    in OPENAI_API_KEY. Each new version of the adapter is loaded into them."""
    adapters_dir: Path | None = None
    """Folder for the adapters that the servers of base_url load; they must see it at the same
    path."""
    train_type: Literal["lora", "full"] = "lora"
    """Train LoRA adapters, or all weights of the language model in float32 (full). Checkpoints of
    full are whole policies."""
    lora_rank: PositiveInt = 32
    """Rank of the LoRA adapters."""
    lora_alpha: PositiveFloat | None = None
    """Scale of the LoRA adapters, which are multiplied by lora_alpha / lora_rank."""
    lora_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Dropout of an adapter's input during updates; sampling uses none."""
    target_modules: TargetModules | None = None
    """Adapted modules of the language model: all, attention, mlp, or a JSON list of names
    (["q_proj", "v_proj"]) or regular expressions. all and mlp include experts."""
    load_checkpoint_path: Annotated[
        TinkerPath | Path | None,
        Field(union_mode="left_to_right"),
        BeforeValidator(_check_tinker_path),
    ] = None
    """Start from this adapter (PEFT layout), with its own rank, alpha and target modules. With
    provider tinker the path of weights that it saved, tinker://RUN/weights/NAME."""
    renderer_name: RendererName = "auto"
    """Format of prompts and actions: qwen_mobile or qwen_computer (Qwen's official tools), recipe
    (the CUA recipe's tools, with a short prompt), compact (the demo policy's calls), openai
    (OpenAI's computer use, only with base_url), or auto (compact for the demo policy, else
    qwen_computer on desktops and web pages and qwen_mobile elsewhere)."""
    max_tokens: PositiveInt = 2048
    """Maximum length of a completion, in tokens."""
    temperature: NonNegativeFloat = 1.0
    """Sampling temperature in training."""
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Nucleus sampling in training: draw from the most likely tokens with this total probability.
    Log-probs are those of the whole distribution, as in verl."""
    oracle_noise: Annotated[float, Field(ge=0, le=1)] = 0.3
    """Share of random actions of the policy `oracle`."""
    ablate: Literal["none", "blank-screenshots"] = "none"
    """Control experiment: replace the policy's screenshots by blank ones."""
