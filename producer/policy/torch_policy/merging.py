"""Merges an adapter into its base: a plain policy folder that transformers loads alone."""

from pathlib import Path
from typing import Final

import torch
from peft import PeftModel

from producer.errors import UsageError
from producer.policy.torch_policy.adapters import plain_adapter
from producer.policy.torch_policy.all_weights import copy_other_files
from producer.policy.torch_policy.loading import open_base
from producer.policy.torch_policy.state import sync_files

_DTYPES: Final = {"F64": torch.float32, "F32": torch.float32, "F16": torch.float16}


def merge_adapter(base_name: str, adapter: Path, output: Path) -> int:
    """Write base + adapter into the existing, empty folder `output`; returns its parameters.

    In the type that the base's weights are stored in. UsageError or NotFoundError as for loading,
    and if the adapter does not fit.
    """
    base = open_base(base_name)
    network = base.network.float()  # the sum is rounded once
    adapted: PeftModel = plain_adapter(network, adapter, base.fingerprint)
    merged = adapted.merge_and_unload(safe_merge=True)
    if not all(torch.isfinite(parameter).all() for parameter in merged.parameters()):
        message = f"the adapter {adapter} makes weights that are not numbers; nothing is written"
        raise UsageError(message)
    merged.to(_DTYPES.get(base.stored_dtype, torch.bfloat16)).save_pretrained(output)
    copy_other_files(base_name, output)
    sync_files(output)
    return sum(parameter.numel() for parameter in merged.parameters())
