"""Reads RewardSQL's sft_config.json and rm_config.json, unchanged.

Fields for the speed of a cluster (ZeRO, FlashAttention, packing) have no effect on one device.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Final, Literal

from producer.foreign_files.reading import (
    Noted,
    Reading,
    Row,
    Table,
    count,
    one_of,
    own_folder,
    same,
    without_effect,
)

Objective = Literal["sft", "process_reward", "pairwise_reward"]
SPEED: Final = "not used on one device; the result is the same"
FLOAT16: Final = "float32 is used; float16 overflows without loss scaling"
TITLES: Final[dict[Objective, str]] = {
    "sft": "a policy by fine-tuning",
    "process_reward": "a process reward model, which reads the text as it is",
    "pairwise_reward": "a pairwise reward model",
}
"""Maps an objective to a description of what is trained."""
_OF_PAIRS: Final = frozenset({"chosen_key", "rejected_key"})
_OF_STEPS: Final = frozenset({"input_key", "label_key", "placeholder_token", "reward_tokens"})
_OF_OPENRLHF: Final = frozenset(
    {"max_epochs", "train_batch_size", "micro_train_batch_size", "zero_stage", "load_checkpoint"}
)
"""OpenRLHF's field names, which RewardSQL's reward models use. Its fine-tunings use swift's."""
KINDS: Final[dict[str, Objective]] = {
    "process": "process_reward",
    "pairwise": "pairwise_reward",
}
"""Maps `--kind` of a reward model to an objective."""
COMMANDS: Final = frozenset({"sql sft", "sql reward-model"})
FASTER: Final = (
    "deepspeed_config deepspeed zero_stage adam_offload use_liger packing packing_samples"
    " micro_train_batch_size ddp_find_unused_parameters"
)
"""Fields that affect only the speed and memory of a cluster."""
ASKED: Final = frozenset({*FASTER.split(), "flash_attn", "use_wandb"})
"""Fields that are ignored if they are false, 0 or empty."""


REASONS: Final = {
    "the policy's config.json has it": "model_type",
    "the policy's own chat template is used": "template",
    "a fresh adapter always begins as the identity": "init_weights",
    "unknown fields are always reported and ignored": "ignore_args_error",
    "a checkpoint holds the weights alone; the resume state is kept apart": "save_only_model",
    "the result does not depend on the number of processes": "num_proc dataloader_num_workers",
    "held-out examples are evaluated in micro-batches of training": "per_device_eval_batch_size",
    "the last weights are the result; every checkpoint has its figures": "metric_for_best_model",
    "every figure is an event; `cua-project track` mirrors them": "report_to",
    "the same --training-name always continues": "load_checkpoint",
    "the run is known by its training name": "wandb_group",
    "swift's self-cognition data alone use it": "model_name model_author",
}
"""Maps the reason why fields are ignored to their names."""


def _steps(value: Any) -> int:
    """A number of steps; -1 means after every epoch."""
    return -1 if value == -1 else count(value)


TABLE: Final[Table] = {
    **{
        name: same(name)
        for name in (
            *("max_length", "learning_rate", "weight_decay", "warmup_ratio", "seed"),
            *("data_seed", "save_strategy", "eval_strategy", "save_total_limit", "logging_steps"),
            *("train_type", "lora_rank", "lora_alpha", "gradient_checkpointing", "cpu_threads"),
            *("device", "group_by_prefix"),
        )
    },
    "model_id_or_path": same("model_name"),
    "model_name_or_path": same("model_name"),
    "dataset": same("data_path"),
    "ckpt_path": same("log_path", own_folder),
    "output_dir": same("output_dir", own_folder),
    "num_train_epochs": same("epochs"),
    "max_epochs": same("epochs"),
    "warm_up_ratio": same("warmup_ratio"),
    "lr_scheduler_type": same("lr_scheduler"),
    "max_grad_norm": same("max_gradient_norm"),
    "split_dataset_ratio": same("held_out_ratio"),
    "train_batch_size": same("batch_size"),
    "per_device_train_batch_size": same("each", count, when="batch of sft"),
    "gradient_accumulation_steps": same("times", count, when="batch of sft"),
    "save_steps": same("save_steps", _steps),
    "eval_steps": same("eval_steps", _steps),
    "system": same("system", when="sft or pairwise"),
    "use_chat_template": same("use_chat_template", when="sft or pairwise"),
    "apply_chat_template": same("use_chat_template", when="sft or pairwise"),
    "input_key": same("input_key", when="process"),
    "label_key": same("label_key", when="process"),
    "placeholder_token": same("placeholder_token", when="process"),
    "reward_tokens": same("reward_tokens", when="process"),
    "chosen_key": same("chosen_key", when="pairwise"),
    "rejected_key": same("rejected_key", when="pairwise"),
    "torch_dtype": one_of(
        "dtype",
        {"float32": "float32", "bfloat16": "bfloat16", "float16": Noted("float32", FLOAT16)},
        "is not supported; use bfloat16 or float32",
    ),
    "bf16": same("dtype", lambda is_on: "bfloat16" if is_on else None),
    "fp16": same("dtype", lambda is_on: Noted(None, FLOAT16) if is_on else None),
    "use_wandb": Row(when="wandb"),
    "wandb_project": same("wandb_project", when="wandb", default="reward_model_training"),
    **without_effect({"": {SPEED: FASTER, **REASONS}}),
}
ALWAYS: Final = frozenset({"model_id_or_path", "model_name_or_path", "dataset"})
"""Any of these identifies such a file among files that share its other names."""
ONLY_THEIRS: Final = {
    *("attn_impl", "flash_attn"),
    *TABLE.keys() - {row.ours for row in TABLE.values()},
}
"""Field names that none of our settings has."""


def is_rewardsql(fields: Mapping[str, Any], command: str | None) -> bool:
    """Whether the fields are those of a RewardSQL file.

    `command` is the command that reads it; None for any. If the command does not accept such files,
    names that TRL shares do not count.
    """
    if command in COMMANDS:
        return bool(ONLY_THEIRS & fields.keys())
    return bool((ALWAYS if command is None else {"model_id_or_path"}) & fields.keys())


def objective_of(
    fields: Mapping[str, Any], command: str | None = None, kind: str | None = None
) -> Objective:
    """The objective of the fields, theirs or ours.

    It follows from the command and a reward model's `kind`, or else from whether the fields are for
    steps or for pairs.
    """
    of_steps = bool(_OF_STEPS & fields.keys())
    of_pairs = bool(_OF_PAIRS & fields.keys())
    if command == "sql sft" or (command not in COMMANDS and not of_steps and not of_pairs):
        return "sft"
    return KINDS[kind or ("pairwise" if of_pairs and not of_steps else "process")]


def is_guessed(fields: Mapping[str, Any]) -> bool:
    """Whether the fields look like a reward model's without stating which kind."""
    return bool(_OF_OPENRLHF & fields.keys()) and not (_OF_STEPS | _OF_PAIRS) & fields.keys()


def read_original(
    read: Reading,
    fields: Mapping[str, Any],
    objective: Objective,
    *,
    has_flash_attention: bool = False,
) -> None:
    """Read a file's fields.

    Without FlashAttention, its field counts as one that affects speed only.
    """
    flash = "flash_attention_2" if has_flash_attention else Noted(None, SPEED)
    attention = {
        **dict.fromkeys(("sdpa", "auto"), "sdpa"),
        "eager": Noted("sdpa", "sdpa computes the same as eager"),
        **dict.fromkeys(("flash_attn", "flash_attention_2"), flash),
    }
    table = TABLE | {
        "flash_attn": same("attention", lambda _: flash),
        "attn_impl": one_of("attention", attention, "is not one of sdpa, flash_attn"),
    }
    asked = {name: value for name, value in fields.items() if value or name not in ASKED}
    read.read(asked, table, _unmet(asked, objective))
    _together(read, objective)


def _unmet(fields: Mapping[str, Any], objective: Objective) -> dict[str, str]:
    """Map conditions of the table that do not hold to reasons."""
    other = f"this trains {TITLES[objective]}"
    no_wandb = "use_wandb is not true"
    if fields.get("use_wandb"):
        no_wandb = (
            "wandb is not installed; every figure is in the log, and"
            " `cua-project track wandb` mirrors it later"
        )
    conditions = {
        "process": (objective == "process_reward", other),
        "pairwise": (objective == "pairwise_reward", other),
        "sft or pairwise": (objective != "process_reward", other),
        "batch of sft": (
            objective == "sft",
            "train_batch_size sets the size of a step",
        ),
        "wandb": (fields.get("use_wandb") and find_spec("wandb") is not None, no_wandb),
    }
    return {name: why for name, (holds, why) in conditions.items() if not holds}


def _together(read: Reading, objective: Objective) -> None:
    """Derive settings that depend on several fields."""
    given = read.given
    if {"each", "times"} & given.keys():
        # The batch size is the product of the two; the defaults are the original's.
        size = given.pop("each", 1) * given.pop("times", 16)
        read.take("per_device_train_batch_size", "batch_size", size)
    for unit in ("save", "eval"):
        steps = f"{unit}_steps"
        if given.get(steps) == -1:
            del given[steps]
            read.take(steps, f"{unit}_strategy", "epoch")
        elif steps in given and objective != "sft":
            # OpenRLHF has no strategy setting, only a number of steps.
            read.take(steps, f"{unit}_strategy", "steps")
    if given.get("train_type", "lora" if objective == "sft" else "full") == "full":
        for ours in ("lora_rank", "lora_alpha"):
            if ours in read.names:
                read.without_effect[read.names[ours]] = "train_type full has no adapter"
