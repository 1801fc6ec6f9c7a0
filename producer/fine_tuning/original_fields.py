"""The original's sft_config.json and rm_config.json, read as they are.

Each of their fields is honoured, known and without effect here, or refused by name; those for the
speed of a cluster (ZeRO, FlashAttention, packing) are named in one line. A field that neither file
knows is reported and ignored, as their `ignore_args_error` does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Final

from producer.errors import UsageError
from producer.fine_tuning.settings import Objective

SAME: Final = {
    "model_id_or_path": "model_name",
    "model_name_or_path": "model_name",
    "output_dir": "output_dir",
    "dataset": "data_path",
    "max_length": "max_length",
    "learning_rate": "learning_rate",
    "weight_decay": "weight_decay",
    "num_train_epochs": "epochs",
    "max_epochs": "epochs",
    "warmup_ratio": "warmup_ratio",
    "warm_up_ratio": "warmup_ratio",
    "lr_scheduler_type": "lr_scheduler",
    "max_grad_norm": "max_gradient_norm",
    "seed": "seed",
    "data_seed": "data_seed",
    "split_dataset_ratio": "held_out_ratio",
    "save_strategy": "save_strategy",
    "eval_strategy": "eval_strategy",
    "save_total_limit": "save_total_limit",
    "logging_steps": "logging_steps",
    "train_type": "train_type",
    "lora_rank": "lora_rank",
    "lora_alpha": "lora_alpha",
    "gradient_checkpointing": "gradient_checkpointing",
    "system": "system",
    "use_chat_template": "use_chat_template",
    "apply_chat_template": "use_chat_template",
    "train_batch_size": "batch_size",
    "input_key": "input_key",
    "label_key": "label_key",
    "chosen_key": "chosen_key",
    "rejected_key": "rejected_key",
    "placeholder_token": "placeholder_token",
    "reward_tokens": "reward_tokens",
    "ckpt_path": "log_path",
    "cpu_threads": "cpu_threads",
    "device": "device",
}
"""Original name -> the field that it is, with the same value."""

WITHOUT_EFFECT: Final = {
    "model_type": "the policy's own config.json says it",
    "template": "the policy's own chat template is used",
    "init_weights": "a fresh adapter always begins as the identity",
    "ignore_args_error": "unknown fields are always reported and ignored",
    "save_only_model": "a checkpoint holds the weights alone; the resume state is kept apart",
    "num_proc": "the result does not depend on the number of processes",
    "dataloader_num_workers": "the result does not depend on the number of processes",
    "per_device_eval_batch_size": "held-out examples are evaluated in micro-batches of training",
    "metric_for_best_model": "the last weights are the result; every checkpoint has its figures",
    "report_to": "every figure is an event; `cua-project track` mirrors them",
    "load_checkpoint": "the same --training-name always continues",
    "wandb_group": "the run is known by its training name",
    "model_name": "swift's self-cognition data alone use it",
    "model_author": "swift's self-cognition data alone use it",
}
"""Original name -> why nothing follows from it here."""

SPEED: Final = (
    *("deepspeed_config", "deepspeed", "zero_stage", "adam_offload", "use_liger"),
    *("packing", "packing_samples", "micro_train_batch_size", "ddp_find_unused_parameters"),
)
"""Original names that change a cluster's speed and memory, and no number on one device."""

LORA_ONLY: Final = ("lora_rank", "lora_alpha")
OBJECTIVES_OF: Final[dict[str, tuple[Objective, ...]]] = {
    **dict.fromkeys(
        ("input_key", "label_key", "placeholder_token", "reward_tokens"), ("process_reward",)
    ),
    **dict.fromkeys(("chosen_key", "rejected_key"), ("pairwise_reward",)),
    **dict.fromkeys(("system", "use_chat_template"), ("sft", "pairwise_reward")),
}
"""Fields that matter to some objectives alone."""
TITLES: Final[dict[Objective, str]] = {
    "sft": "fine-tuning",
    "process_reward": "a process reward model, which reads the text as it is",
    "pairwise_reward": "a pairwise reward model",
}
WANDB: Final = ("use_wandb", "wandb_project")


@dataclass(slots=True)
class OriginalFields:
    """What a file of the original says."""

    given: dict[str, Any] = field(default_factory=dict)
    """Our fields."""
    names: dict[str, str] = field(default_factory=dict)
    """Our field -> the name that the file has for it."""
    speed: list[str] = field(default_factory=list)
    """Names of fields for the speed of a cluster, which are not needed here."""
    notes: list[str] = field(default_factory=list)
    """One line for each other field that is not honoured."""

    def remarks(self) -> list[str]:
        """What is not honoured: the fields for speed in one line, then a line for each other."""
        if not self.speed:
            return self.notes
        names = ", ".join(self.speed)
        return [f"{names}: not used on one device; the result is the same", *self.notes]


def read_original(fields: Mapping[str, Any], objective: Objective) -> OriginalFields:
    """Translate a file's fields. UsageError names every field that cannot be honoured."""
    read = OriginalFields()
    problems: list[str] = []
    for name, value in fields.items():
        if value is None or name in WANDB:
            continue
        try:
            _take(read, name, value, objective)
        except ValueError as error:
            problems.append(f"{name}: {error}")
    if problems:
        raise UsageError("\n  ".join(["the configuration cannot be honoured:", *problems]))
    if objective == "sft":
        _set_batch(read, fields)
    _set_wandb(read, fields)
    _drop_unused(read, objective)
    return read


def _take(read: OriginalFields, name: str, value: object, objective: Objective) -> None:
    if name in CONVERTED:
        CONVERTED[name](read, value, objective)
    elif name in SAME:
        _set(read, SAME[name], name, value)
    elif name in WITHOUT_EFFECT:
        read.notes.append(f"{name}: without effect: {WITHOUT_EFFECT[name]}")
    elif name not in SPEED:
        read.notes.append(f"{name}: unknown, ignored")
    elif value:
        read.speed.append(name)


def _drop_unused(read: OriginalFields, objective: Objective) -> None:
    """Note the fields from which nothing follows beside the others."""
    is_full = read.given.get("train_type", "lora" if objective == "sft" else "full") == "full"
    for ours, name in list(read.names.items()):
        if objective not in OBJECTIVES_OF.get(ours, (objective,)):
            read.notes.append(f"{name}: without effect on {TITLES[objective]}")
            del read.given[ours]
        elif is_full and ours in LORA_ONLY:
            read.notes.append(f"{name}: without effect: train_type full has no adapter")


def _set(read: OriginalFields, ours: str, name: str, value: object) -> None:
    if ours in read.given and read.given[ours] != value:
        message = f"contradicts {read.names[ours]}; give one of them"
        raise ValueError(message)
    read.given[ours] = value
    read.names[ours] = name


def _set_batch(read: OriginalFields, fields: Mapping[str, Any]) -> None:
    """An optimiser step takes per_device_train_batch_size x gradient_accumulation_steps."""
    names = ("per_device_train_batch_size", "gradient_accumulation_steps")
    if not any(fields.get(name) is not None for name in names):
        return
    each, times = (1 if fields.get(name) is None else fields[name] for name in names)
    if fields.get("gradient_accumulation_steps") is None:
        times = 16
    _set(read, "batch_size", names[0], each * times)


def _set_wandb(read: OriginalFields, fields: Mapping[str, Any]) -> None:
    """Reports go to Weights & Biases when the file says so and it is installed."""
    project = fields.get("wandb_project")
    if not fields.get("use_wandb"):
        if project is not None:
            read.notes.append("wandb_project: without effect: use_wandb is not true")
    elif find_spec("wandb") is None:
        read.notes.append(
            "use_wandb: without effect: wandb is not installed; every figure is in the log, and"
            " `cua-project track wandb` mirrors it later"
        )
    else:
        _set(read, "wandb_project", "wandb_project", project or "reward_model_training")


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        message = f"{value!r} is not a whole number above 0"
        raise ValueError(message)
    return value


def _of_batch(_read: OriginalFields, value: object, _objective: Objective) -> None:
    _count(value)


def _accumulation(read: OriginalFields, value: object, objective: Objective) -> None:
    _count(value)
    if objective != "sft":
        read.notes.append(
            "gradient_accumulation_steps: without effect: train_batch_size and"
            " micro_train_batch_size say it"
        )


def _steps(unit: str) -> Callable[[OriginalFields, Any, Objective], None]:
    """save_steps and eval_steps; -1: after every epoch."""

    def convert(read: OriginalFields, value: object, objective: Objective) -> None:
        if value == -1:
            _set(read, f"{unit}_strategy", f"{unit}_steps", "epoch")
            return
        _set(read, f"{unit}_steps", f"{unit}_steps", _count(value))
        if objective != "sft":
            # OpenRLHF has no strategy: its steps are one.
            _set(read, f"{unit}_strategy", f"{unit}_steps", "steps")

    return convert


def _dtype(read: OriginalFields, value: object, _objective: Objective) -> None:
    if value not in {"float32", "bfloat16", "float16"}:
        message = f"{value!r} is not supported; use bfloat16 or float32"
        raise ValueError(message)
    if value == "float16":
        read.notes.append("torch_dtype: float32 is used; float16 overflows without loss scaling")
        value = "float32"
    _set(read, "dtype", "torch_dtype", value)


def _bf16(read: OriginalFields, value: object, _objective: Objective) -> None:
    if value:
        _set(read, "dtype", "bf16", "bfloat16")


def _fp16(read: OriginalFields, value: object, _objective: Objective) -> None:
    if value:
        read.notes.append("fp16: float32 is used; float16 overflows without loss scaling")


def _flash(read: OriginalFields, name: str, *, is_asked: bool) -> None:
    if not is_asked:
        return
    if not _has_flash_attention():
        read.speed.append(name)  # PyTorch's own attention computes the same.
        return
    _set(read, "attention", name, "flash_attention_2")


def _has_flash_attention() -> bool:
    """Whether the package and a CUDA device are there."""
    if find_spec("flash_attn") is None:
        return False
    import torch

    return torch.cuda.is_available()


def _flash_attn(read: OriginalFields, value: object, _objective: Objective) -> None:
    _flash(read, "flash_attn", is_asked=bool(value))


def _attn_impl(read: OriginalFields, value: object, _objective: Objective) -> None:
    if value in {"sdpa", "eager", "auto"}:
        _set(read, "attention", "attn_impl", "sdpa")
        if value == "eager":
            read.notes.append("attn_impl: without effect: sdpa computes the same as eager")
        return
    if value not in {"flash_attn", "flash_attention_2"}:
        message = f"{value!r} is not one of sdpa, flash_attn"
        raise ValueError(message)
    _flash(read, "attn_impl", is_asked=True)


CONVERTED: Final[dict[str, Callable[[OriginalFields, Any, Objective], None]]] = {
    "per_device_train_batch_size": _of_batch,
    "gradient_accumulation_steps": _accumulation,
    "save_steps": _steps("save"),
    "eval_steps": _steps("eval"),
    "torch_dtype": _dtype,
    "bf16": _bf16,
    "fp16": _fp16,
    "flash_attn": _flash_attn,
    "attn_impl": _attn_impl,
}
"""Original name -> what follows from its value."""
