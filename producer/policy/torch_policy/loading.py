"""Loads a complete policy from a folder, the local Hugging Face cache or the Hugging Face hub.

A name that cannot be loaded raises one UsageError or NotFoundError, without the hub client's
retries. A policy with missing, extra or wrongly shaped weights is refused.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoProcessor,
    AutoTokenizer,
    PreTrainedModel,
)
from transformers.utils import logging as transformers_logging

from producer.errors import NotFoundError, UsageError
from producer.policy.torch_policy.adapters import fresh_adapter, saved_adapter, with_all_weights
from producer.policy.torch_policy.architectures import (
    Architecture,
    architecture_of,
    check_text_config,
)
from producer.policy.torch_policy.cpu_parallel import compute_on_one_thread
from producer.policy.torch_policy.hub import (
    check_hub_has,
    download_settings,
    first_line,
    is_path,
    policy_folder,
)
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.placement import (
    Placement,
    choose_placement,
    experts_implementation,
)
from producer.policy.torch_policy.seeded_dropout import seed_dropout
from producer.policy.torch_policy.stored_weights import (
    check_whole,
    log_ignored,
    not_whole,
    only_own_weights,
    read_stored_weights,
)


def check_processor(
    name: str, architecture: Architecture, network: PreTrainedModel, processor: Any
) -> None:
    """Raises UsageError if the tokenizer or image processor belongs to another policy."""
    problems = _tokenizer_problems(architecture, network, processor)
    if architecture.sees_screens:
        problems += _image_problems(network, processor)
    if problems:
        message = (
            f"policy {name!r} has files of another policy: {'; '.join(problems)}; copy its"
            " tokenizer and processor files from the folder that has its weights"
        )
        raise UsageError(message)


def _tokenizer_problems(
    architecture: Architecture, network: PreTrainedModel, processor: Any
) -> list[str]:
    tokenizer = processor.tokenizer if architecture.sees_screens else processor
    num_rows = network.get_input_embeddings().weight.shape[0]
    problems = []
    if len(tokenizer) > num_rows:
        problems.append(f"its tokenizer has {len(tokenizer)} tokens for {num_rows} embeddings")
    if tokenizer.eos_token_id is None:
        problems.append("its tokenizer has no end token (eos_token)")
    if processor.chat_template is None:
        problems.append("it has no chat template")
    if architecture.sees_screens:
        for token, expected in (
            ("<|image_pad|>", network.config.image_token_id),
            ("<|video_pad|>", network.config.video_token_id),
        ):
            found = tokenizer.convert_tokens_to_ids(token)
            if found != expected:
                problems.append(f"its tokenizer has {token} as {found}, config.json as {expected}")
    return problems


def _image_problems(network: PreTrainedModel, processor: Any) -> list[str]:
    images, vision = processor.image_processor, network.config.vision_config
    return [
        f"its image processor has {field} {getattr(images, field)}, config.json {expected}"
        for field, expected in (
            ("patch_size", vision.patch_size),
            ("temporal_patch_size", vision.temporal_patch_size),
            ("merge_size", vision.spatial_merge_size),
        )
        if getattr(images, field) != expected
    ]


@dataclass(frozen=True, slots=True)
class Base:
    """A policy without an adapter."""

    architecture: Architecture
    network: PreTrainedModel
    processor: Any
    """The processor of a policy that sees screens, otherwise the tokenizer."""
    fingerprint: str
    """Fingerprint of its weights (`StoredWeights.fingerprint`)."""
    stored_dtype: str
    """Type of most of its weights, as safetensors writes it."""


def load_base(name: str, placement: Placement | None = None) -> tuple[PreTrainedModel, Any]:
    """Weights and processor of a folder or hub id; by default on `choose_placement()`.

    Like `open_base`, for callers that need nothing else.
    """
    base = open_base(name, placement)
    return base.network, base.processor


def open_base(name: str, placement: Placement | None = None) -> Base:
    """Open the policy of a folder or hub id; the local cache is tried before the hub.

    The first call reduces the process to one thread per operation (`use_threads` gives more).

    Raises NotFoundError if the policy does not exist or the hub cannot be reached, UsageError if
    its architecture is not supported or it cannot be loaded completely.
    """
    compute_on_one_thread()
    transformers_logging.disable_progress_bar()
    placement = placement or choose_placement()
    is_folder = Path(name).is_dir()
    if not is_folder and is_path(name):
        message = f"policy folder {name} does not exist; check the path"
        raise NotFoundError(message)
    try:
        return _load(name, placement, local_files_only=True)
    except OSError as error:
        if is_folder:
            message = (
                f"folder {name} is not a policy ({first_line(error)}); pass a folder with"
                " config.json, weights, tokenizer and processor"
            )
            raise NotFoundError(message) from error
    check_hub_has(name)
    try:
        return _load(name, placement, local_files_only=False)
    except OSError as error:
        message = f"policy {name!r} could not be downloaded ({first_line(error)}); run again"
        raise NotFoundError(message) from error


def load_network(
    name: str,
    lora_rank: int,
    seed: int,
    adapter: Path | None = None,
    placement: Placement | None = None,
    *,
    lora_alpha: float | None = None,
    target_modules: tuple[str, ...] | None = None,
    lora_dropout: float = 0.0,
    trains_all: bool = False,
) -> Network:
    """The base with the saved `adapter`, or with a fresh one of `lora_rank`.

    A fresh adapter has B = 0, so it does not change the output yet; `seed` initialises its A.
    `lora_alpha` None: 2 * rank. `target_modules` None: every linear layer of the language model, or
    those that a saved adapter has. `lora_dropout` applies to the passes of an update. `trains_all`
    trains all weights instead of an adapter (`with_all_weights`). Raises UsageError if the adapter
    does not fit.
    """
    base = open_base(name, placement)
    base.network.requires_grad_(requires_grad=False)
    if trains_all:
        adapted = with_all_weights(base.network, base.architecture)
    elif adapter is None:
        adapted = fresh_adapter(
            base.network,
            base.architecture,
            rank=lora_rank,
            alpha=2 * lora_rank if lora_alpha is None else lora_alpha,
            target_modules=target_modules,
            seed=seed,
        )
    else:
        adapted = saved_adapter(
            base.network, base.architecture, adapter, target_modules, base.fingerprint
        )
    seed_dropout(adapted, lora_dropout)
    adapted.eval()
    return Network(
        name=name,
        architecture=base.architecture,
        adapted=adapted,
        base=base.network,
        processor=base.processor,
        base_fingerprint=base.fingerprint,
    )


def _load(name: str, placement: Placement, *, local_files_only: bool) -> Base:
    """Raises OSError if files are missing, UsageError if it is unsupported or incomplete."""
    if local_files_only:
        folder = policy_folder(name, local_files_only=True)
    else:
        # Refuse an architecture that cannot be trained before downloading its weights.
        architecture_of(name, _read_config(download_settings(name) / "config.json"))
        folder = policy_folder(name, local_files_only=False)
    architecture = architecture_of(name, _read_config(folder / "config.json"))
    try:
        stored = read_stored_weights(folder)
    except FileNotFoundError as error:
        if not Path(name).is_dir() or not any(folder.glob("*.safetensors")):
            raise
        # An unfinished copy: it has some weights, so it is a policy, but not a complete one.
        raise UsageError(not_whole(name, str(error))) from error
    with _naming(name, architecture), _quiet(), only_own_weights(folder) as own:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        check_text_config(name, config.get_text_config())
        auto = AutoModelForImageTextToText if architecture.sees_screens else AutoModelForCausalLM
        processors = AutoProcessor if architecture.sees_screens else AutoTokenizer
        processor = processors.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
        config._experts_implementation = experts_implementation(
            config.get_text_config(), placement.dtype
        )
        network, info = auto.from_pretrained(
            own,
            config=config,
            dtype=placement.dtype or "auto",
            attn_implementation="sdpa",
            use_safetensors=True,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
            local_files_only=True,
            trust_remote_code=False,
        )
        check_whole(name, architecture, network, info)
        check_processor(name, architecture, network, processor)
    # peft records this name in adapters, so use the hub id instead of the cache folder.
    network.name_or_path = network.config._name_or_path = name
    log_ignored(name, folder, stored)
    return Base(
        architecture,
        network.to(placement.device).eval(),
        processor,
        stored.fingerprint,
        stored.main_dtype,
    )


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        message = f"{path} is not JSON ({error})"
        raise OSError(message) from error
    if not isinstance(config, dict) or "model_type" not in config:
        message = f"{path} names no model_type"
        raise OSError(message)
    return config


@contextmanager
def _naming(name: str, architecture: Architecture) -> Iterator[None]:
    """Convert whatever transformers raises for a damaged checkpoint to one UsageError."""
    try:
        yield
    except (UsageError, OSError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        message = (
            f"policy {name!r} cannot be loaded as {architecture.title} ({first_line(error)});"
            " choose another model_name"
        )
        raise UsageError(message) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence transformers' report of missing weights; we raise an error instead."""
    before = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(before)
