"""The trained part of a network: a fresh LoRA adapter, a saved one, or all weights.

When all weights are trained, each module of the language model is trained as a separate copy. peft
keeps the copies as `modules_to_save` of an adapter without low-rank weights. The policy without its
adapter thus remains the reference, and saved states, updates and prime's second adapter need no
special handling.
"""

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Final

import torch
from peft import (
    LoraConfig,
    PeftConfig,
    PeftModel,
    get_peft_model,
    get_peft_model_state_dict,
    set_peft_model_state_dict,
)
from peft.tuners.lora import LoraLayer
from peft.tuners.lora.layer import ParamWrapper
from peft.utils.constants import DUMMY_TARGET_MODULES
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from transformers import PreTrainedModel

from producer.errors import UsageError
from producer.policy.adapter_settings import WEIGHTS, AdapterSettings, read_adapter_settings
from producer.policy.torch_policy.architectures import Architecture, lora_targets, target_names
from producer.policy.torch_policy.hub import first_line
from producer.policy.torch_policy.stored_weights import list_some

logger = logging.getLogger(__name__)

POLICY_ADAPTER: Final = "default"
"""peft's name for the first adapter."""
_TOWER: Final = "model.visual"
MAX_MERGED_WEIGHTS = 50_000_000
"""Largest number of adapted weights for which merging pays off: it keeps a copy of them, and in a
larger network the three products are bound by memory bandwidth anyway."""


def fresh_adapter(
    base: PreTrainedModel,
    architecture: Architecture,
    *,
    rank: int,
    alpha: float,
    target_modules: Sequence[str] | None,
    seed: int,
) -> PeftModel:
    """The base with an adapter that does not change its output yet. Raises as `lora_targets`.

    The adapter's A is drawn from `seed`; its B is 0.
    """
    targets = lora_targets(base, architecture, target_modules)
    with torch.random.fork_rng(), _quiet():
        torch.manual_seed(seed)
        config = LoraConfig(
            r=rank,
            lora_alpha=int(alpha) if float(alpha).is_integer() else alpha,
            target_modules=targets.modules,
            target_parameters=targets.parameters or None,
            task_type="CAUSAL_LM",
        )
        return get_peft_model(base, config)


def saved_adapter(
    base: PreTrainedModel,
    architecture: Architecture,
    folder: Path,
    target_modules: Sequence[str] | None,
    base_fingerprint: str,
) -> PeftModel:
    """The base with the adapter in `folder`, trainable.

    Raises UsageError if the adapter belongs to another base, adapts weights other than
    `target_modules` (None: any of the language model's), or has missing keys, extra keys or wrong
    shapes.
    """
    # Computed before peft renames the layers that it adapts.
    allowed = target_names(base, architecture, None)
    asked = None if target_modules is None else target_names(base, architecture, target_modules)
    return plain_adapter(
        base,
        folder,
        base_fingerprint,
        check=lambda adapted: _check_targets(folder, adapted_names(adapted), allowed, asked),
    )


def plain_adapter(
    base: PreTrainedModel,
    folder: Path,
    base_fingerprint: str,
    check: Callable[[PeftModel], None] = lambda _adapted: None,
) -> PeftModel:
    """The base with the adapter in `folder`, whatever linear layers it adapts.

    `check` is called with the adapted network before the adapter's weights are loaded.

    Raises UsageError if the adapter belongs to another base, or has missing keys, extra keys or
    wrong shapes.
    """

    def adapt(config: PeftConfig) -> PeftModel:
        config.inference_mode = False
        if config.lora_dropout:
            logger.info("the field lora_dropout replaces that of the adapter %s", folder)
            config.lora_dropout = 0.0
        adapted = get_peft_model(base, config)
        check(adapted)
        return adapted

    return _with_saved(base, folder, base_fingerprint, adapt)


def with_all_weights(base: PreTrainedModel, architecture: Architecture) -> PeftModel:
    """The base with trainable copies of its modules; the vision tower stays frozen.

    The copies start equal to the base. If the output layer shares its weights with the embeddings,
    so do their copies.
    """
    names = [
        name
        for name, module in base.named_modules()
        if next(module.parameters(recurse=False), None) is not None
        and not (architecture.sees_screens and name.startswith(_TOWER))
    ]
    config = LoraConfig(
        r=1,
        target_modules=DUMMY_TARGET_MODULES,
        modules_to_save=names,
        task_type="CAUSAL_LM",
        ensure_weight_tying=bool(base.config.get_text_config().tie_word_embeddings),
    )
    with _quiet():
        return get_peft_model(base, config)


def second_adapter(adapted: PeftModel, name: str, seed: int) -> None:
    """Add an adapter like the policy's, which stays active; replaces an earlier adapter `name`.

    The new adapter's A is drawn from `seed` and its B is 0. It has no dropout.
    """
    if name in adapted.peft_config:
        adapted.delete_adapter(name)
    config = deepcopy(adapted.peft_config[POLICY_ADAPTER])
    config.init_lora_weights = True
    config.lora_dropout = 0.0
    with torch.random.fork_rng(), _quiet():
        torch.manual_seed(seed)
        adapted.add_adapter(name, config)
    adapted.set_adapter(POLICY_ADAPTER)


def add_saved_adapter(adapted: PeftModel, name: str, folder: Path, base_fingerprint: str) -> None:
    """Add the adapter in `folder` next to the others; the active one stays active.

    Raises NotFoundError or UsageError as `plain_adapter`; in that case nothing is added.
    """

    def adapt(config: PeftConfig) -> PeftModel:
        config.inference_mode = True
        adapted.add_adapter(name, config)
        return adapted

    try:
        _with_saved(adapted.get_base_model(), folder, base_fingerprint, adapt, name)
    except UsageError:
        if name in adapted.peft_config:
            adapted.delete_adapter(name)
        raise
    adapted.set_adapter(POLICY_ADAPTER)


def _with_saved(
    base: PreTrainedModel,
    folder: Path,
    base_fingerprint: str,
    adapt: Callable[[PeftConfig], PeftModel],
    name: str = POLICY_ADAPTER,
) -> PeftModel:
    """Apply `adapt` to the configuration in `folder`, then load the weights there."""
    settings = read_adapter_settings(folder)
    _check_base(folder, settings, base, base_fingerprint)
    weights = _read_weights(folder)
    with torch.random.fork_rng(), _quiet():
        try:
            adapted = adapt(PeftConfig.from_pretrained(str(folder)))
            _load_whole(folder, adapted, weights, name)
        except (ValueError, TypeError, RuntimeError, KeyError, AttributeError) as error:
            message = (
                f"the adapter {folder} does not fit this policy"
                f" ({first_line(error)}); use the model_name that it was trained on,"
                f" {settings.base_name}"
            )
            raise UsageError(message) from error
    return adapted


def adapter_weights(adapted: PeftModel, name: str = POLICY_ADAPTER) -> dict[str, Tensor]:
    """The trained weights by their names in files; shared weights appear once, by first name."""
    found, first = _weights_and_names(adapted, name)
    return {key: found[key].contiguous() for key in sorted({*first.values()})}


def load_adapter_weights(
    adapted: PeftModel, weights: dict[str, Tensor], name: str = POLICY_ADAPTER
) -> None:
    """Set weights returned by `adapter_weights` or read from its file."""
    _, first = _weights_and_names(adapted, name)
    of_all = {key: weights[own] for key, own in first.items()}
    set_peft_model_state_dict(adapted, of_all, adapter_name=name)


def _weights_and_names(adapted: PeftModel, name: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The trained weights, and for each name the first name that shares its memory."""
    found: dict[str, Tensor] = get_peft_model_state_dict(adapted, adapter_name=name)
    first = {tensor.data_ptr(): key for key, tensor in reversed(found.items())}
    return found, {key: first[tensor.data_ptr()] for key, tensor in found.items()}


def adapted_names(adapted: PeftModel) -> frozenset[str]:
    """Names of the base's weights that the adapter changes."""
    tuner = adapted.base_model
    return frozenset(tuner.targeted_module_names) | frozenset(tuner.targeted_parameter_names)


def _read_weights(folder: Path) -> dict[str, Tensor]:
    try:
        return load_file(folder / WEIGHTS)
    except SafetensorError as error:
        message = f"{folder / WEIGHTS} is damaged ({error}); copy the adapter again"
        raise UsageError(message) from error


def _check_base(
    folder: Path, settings: AdapterSettings, base: PreTrainedModel, fingerprint: str
) -> None:
    if settings.base_fingerprint not in {None, fingerprint}:
        message = (
            f"the adapter {folder} was trained on other weights, those of {settings.base_name};"
            " use the model_name that it was trained on"
        )
        raise UsageError(message)
    ours = str(base.name_or_path)
    theirs = settings.base_name
    if settings.base_fingerprint is not None or theirs in {None, ours}:
        return
    are_hub_ids = not (Path(ours).exists() or Path(str(theirs)).is_absolute())
    if are_hub_ids:
        message = (
            f"the adapter {folder} was trained on {theirs}, and model_name is {ours}; use the"
            " model_name that it was trained on"
        )
        raise UsageError(message)
    logger.warning(
        "the adapter %s names %s as its base, which cannot be compared with %s: they must have the"
        " same weights",
        *(folder, theirs, ours),
    )


def _check_targets(
    folder: Path,
    found: frozenset[str],
    allowed: frozenset[str],
    asked: frozenset[str] | None,
) -> None:
    beyond = sorted(found - allowed)
    if beyond:
        message = (
            f"the adapter {folder} changes weights that stay frozen here: {list_some(beyond)};"
            " merge it into its base and train on the result"
        )
        raise UsageError(message)
    if asked is not None and asked != found:
        message = (
            f"the adapter {folder} adapts other weights than target_modules: it lacks"
            f" {list_some(sorted(asked - found)) or 'none'}, and also has"
            f" {list_some(sorted(found - asked)) or 'none'}; leave target_modules out"
        )
        raise UsageError(message)


def _load_whole(
    folder: Path, adapted: PeftModel, weights: dict[str, Tensor], name: str = POLICY_ADAPTER
) -> None:
    result = set_peft_model_state_dict(adapted, weights, adapter_name=name)
    missing = sorted(
        key for key in result.missing_keys if ".lora_" in key and f".{name}." in f".{key}."
    )
    problems = []
    if missing:
        problems.append(f"{len(missing)} missing: {list_some(missing)}")
    if result.unexpected_keys:
        unexpected = sorted(result.unexpected_keys)
        problems.append(f"{len(unexpected)} unexpected: {list_some(unexpected)}")
    if problems:
        message = (
            f"the adapter {folder} does not fit this policy: {'; '.join(problems)}; use the"
            " model_name that it was trained on"
        )
        raise UsageError(message)


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        # peft reads a transformers property by its old name, and warns if an adapter's base is at a
        # different path than in training; we compare the base ourselves.
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", UserWarning)
        yield


@contextmanager
def merged_adapter(adapted: PeftModel) -> Iterator[None]:
    """Inside the context the adapted layers hold base + adapter; on exit the base is restored.

    Log-probs differ by rounding (about 1e-6); the restored base is bit-identical. Does nothing
    unless the network is float32 with at most `MAX_MERGED_WEIGHTS` adapted weights.
    """
    layers = [module for module in adapted.modules() if isinstance(module, LoraLayer)]
    weights = [_adapted_weight(layer) for layer in layers]
    if (
        adapted.get_base_model().dtype != torch.float32
        or sum(weight.numel() for weight in weights) > MAX_MERGED_WEIGHTS
    ):
        yield
        return
    originals = [weight.clone() for weight in weights]
    adapted.merge_adapter()
    try:
        yield
    finally:
        # peft's unmerge subtracts the adapter again, which changes the last bits of the base.
        for layer, weight, original in zip(layers, weights, originals, strict=True):
            weight.copy_(original)
            layer.merged_adapters.clear()


def _adapted_weight(layer: LoraLayer) -> Tensor:
    is_fused = isinstance(layer, ParamWrapper)
    parameter = layer.get_param() if is_fused else layer.get_base_layer().weight
    data: Tensor = parameter.data
    return data
