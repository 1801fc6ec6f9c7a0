"""Loads a Qwen3-VL policy from a folder, the local Hugging Face cache or the Hugging Face hub.

A name that cannot be loaded raises one UsageError or NotFoundError, without the hub client's
retries.
"""

import warnings
from pathlib import Path
from typing import Final

import torch
from huggingface_hub import HfApi
from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration, Qwen3VLProcessor
from transformers.utils import logging as transformers_logging

from producer.errors import NotFoundError, UsageError
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.placement import Placement, choose_placement

LORA_TARGETS: Final = (
    r".*language_model\.layers\.\d+\.(self_attn\.(q|k|v|o)_proj|mlp\.(gate|up|down)_proj)"
)
"""Every linear layer of the language model. The vision tower stays frozen, so that its features can
be cached."""
HUB_TIMEOUT_S: Final = 10.0
"""Of the one request that asks whether the hub can be reached and has the policy."""


def load_base(
    name: str, placement: Placement | None = None
) -> tuple[Qwen3VLForConditionalGeneration, Qwen3VLProcessor]:
    """Weights and processor of a folder or hub id; by default on `choose_placement()`.

    Tries the local cache before the hub. NotFoundError if the policy does not exist or the hub
    cannot be reached, UsageError if it is not a Qwen3-VL policy.
    """
    transformers_logging.disable_progress_bar()
    placement = placement or choose_placement()
    is_folder = Path(name).is_dir()
    if not is_folder and _is_path(name):
        message = f"policy folder {name} does not exist; check the path"
        raise NotFoundError(message)
    try:
        return _load(name, placement, local_files_only=True)
    except OSError as error:
        if is_folder:
            message = (
                f"folder {name} is not a Qwen3-VL policy ({_first_line(error)}); pass a folder with"
                " config.json, weights, tokenizer and processor"
            )
            raise NotFoundError(message) from error
    _check_hub_has(name)
    try:
        return _load(name, placement, local_files_only=False)
    except OSError as error:
        message = f"policy {name!r} could not be downloaded ({_first_line(error)}); run again"
        raise NotFoundError(message) from error


def load_network(
    name: str,
    lora_rank: int,
    seed: int,
    adapter: Path | None = None,
    placement: Placement | None = None,
) -> Network:
    """The base with the saved `adapter`, or with a fresh one of `lora_rank`.

    A fresh adapter has alpha = 2 * rank and B = 0, so it does not change the output yet; `seed`
    initialises its A.
    """
    base, processor = load_base(name, placement)
    base.requires_grad_(requires_grad=False)
    with warnings.catch_warnings():
        # peft asks transformers for a property by its old name.
        warnings.simplefilter("ignore", FutureWarning)
        adapted = (
            _fresh_adapter(base, lora_rank, seed)
            if adapter is None
            else _saved_adapter(base, adapter)
        )
    adapted.eval()
    return Network(name=name, adapted=adapted, base=base, processor=processor)


def _load(
    name: str, placement: Placement, *, local_files_only: bool
) -> tuple[Qwen3VLForConditionalGeneration, Qwen3VLProcessor]:
    """OSError if files are missing, UsageError if they are another architecture's."""
    config, _ = Qwen3VLConfig.get_config_dict(name, local_files_only=local_files_only)
    found = config.get("model_type")
    if found is None:
        message = "no config.json with a model_type"
        raise OSError(message)
    if found != Qwen3VLConfig.model_type:
        message = (
            f"policy {name!r} has the architecture {found!r}; only {Qwen3VLConfig.model_type!r} is"
            " supported, choose another model_name"
        )
        raise UsageError(message)
    try:
        processor = Qwen3VLProcessor.from_pretrained(name, local_files_only=local_files_only)
        base = Qwen3VLForConditionalGeneration.from_pretrained(
            name,
            dtype=placement.dtype or "auto",
            local_files_only=local_files_only,
        )
    except (ValueError, TypeError, RuntimeError) as error:
        message = (
            f"policy {name!r} cannot be loaded as Qwen3-VL ({_first_line(error)}); choose another"
            " model_name"
        )
        raise UsageError(message) from error
    return base.to(placement.device).eval(), processor


def _is_path(name: str) -> bool:
    return Path(name).is_absolute() or name.startswith((".", "~")) or name.count("/") > 1


def _check_hub_has(name: str) -> None:
    """One request without retries: from_pretrained would retry for every file that it misses."""
    try:
        HfApi().model_info(name, timeout=HUB_TIMEOUT_S)
    except HFValidationError as error:
        message = (
            f"policy {name!r} is neither an existing folder nor a Hugging Face id such as"
            " 'Qwen/Qwen3-VL-2B-Instruct'; check model_name"
        )
        raise NotFoundError(message) from error
    except GatedRepoError as error:
        message = f"policy {name!r} is gated; request access on the Hugging Face hub and log in"
        raise NotFoundError(message) from error
    except RepositoryNotFoundError as error:
        message = (
            f"policy {name!r} is neither an existing folder nor on the Hugging Face hub; check"
            " model_name (a private policy needs a login)"
        )
        raise NotFoundError(message) from error
    except Exception as error:  # the hub's HTTP client is not part of its interface
        message = (
            f"policy {name!r} is not in the local Hugging Face cache and the Hugging Face hub"
            f" cannot be reached ({_first_line(error)}); pass a folder, or connect and run again"
        )
        raise NotFoundError(message) from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


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
            f"{folder} is not an adapter in PEFT's layout: it has no adapter_config.json; pass a"
            " checkpoint's folder"
        )
        raise NotFoundError(message)
    return PeftModel.from_pretrained(base, str(folder), is_trainable=True)
