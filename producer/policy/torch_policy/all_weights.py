"""Training of all weights: every module of the language model is trained as a copy of its own.

peft keeps the copies as `modules_to_save` of an adapter without low-rank weights. The policy
without its adapter stays the reference; saved states, updates and prime's second adapter work as in
a LoRA training. A checkpoint is the whole policy, in the hub's layout.
"""

import json
import shutil
import warnings
from pathlib import Path
from typing import Final

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from peft.utils.constants import DUMMY_TARGET_MODULES
from torch import Tensor
from transformers import PreTrainedModel

from producer.policy.torch_policy.adapters import adapter_weights
from producer.policy.torch_policy.architectures import Architecture
from producer.policy.torch_policy.hub import policy_folder

_TOWER: Final = "model.visual"
_BESIDE_WEIGHTS: Final = frozenset({".json", ".jinja", ".txt"})
_OF_A_RESULT: Final = "training.json"
"""Names the training that a folder is the result of."""
_PREFIX: Final = "base_model.model."
"""Of peft's names for the base's weights."""


def with_all_weights(base: PreTrainedModel, architecture: Architecture) -> PeftModel:
    """The base with trainable copies of its modules; the vision tower stays frozen.

    The copies begin as the base. An output layer that shares its weights with the embeddings shares
    them here too.
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
    with warnings.catch_warnings():
        # peft asks transformers for a property by its old name.
        warnings.simplefilter("ignore", FutureWarning)
        return get_peft_model(base, config)


def trained_weights(adapted: PeftModel, base: PreTrainedModel) -> dict[str, Tensor]:
    """The whole policy's weights by their names in the base, the trained ones in place."""
    trained = {
        name.removeprefix(_PREFIX): tensor.detach()
        for name, tensor in adapter_weights(adapted).items()
    }
    frozen = {
        name: tensor
        for name, tensor in base.state_dict().items()
        if ".modules_to_save." not in name and ".original_module." not in name
    }
    return {**frozen, **trained}


def write_policy(
    folder: Path,
    network: PreTrainedModel,
    weights: dict[str, Tensor],
    dtype: torch.dtype,
    source: str,
) -> None:
    """Write a policy in the hub's layout into an existing folder, in one file of weights.

    `source`: the folder or hub id whose other files (tokenizer, templates) come with it.
    """
    stored = {name: one.to(dtype) for name, one in weights.items()}
    network.save_pretrained(folder, state_dict=stored, max_shard_size="1000GB")
    config_file = folder / "config.json"
    config = json.loads(config_file.read_text(encoding="utf-8"))
    config["dtype"] = str(dtype).removeprefix("torch.")
    config_file.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    copy_other_files(source, folder)


def copy_other_files(source: str, folder: Path) -> None:
    """Copy the other files of a policy's folder, unless the folder has them already."""
    for path in sorted(policy_folder(source, local_files_only=True).iterdir()):
        is_kept = not path.name.endswith((".index.json", _OF_A_RESULT))
        written = folder / path.name
        if path.suffix in _BESIDE_WEIGHTS and is_kept and not written.exists():
            shutil.copyfile(path, written)
