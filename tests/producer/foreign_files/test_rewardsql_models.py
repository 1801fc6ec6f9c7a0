"""The original's sft_config.json and rm_config.json are read as they are."""

import json
from pathlib import Path
from typing import Any

import pytest

from producer.errors import UsageError
from producer.fine_tuning.settings import FineTuningConfig, Objective, read_fine_tuning
from producer.foreign_files.reading import Reading
from producer.foreign_files.rewardsql_models import objective_of, read_original

RECIPES = Path(__file__).parents[2] / "data/recipes/rewardsql"
SFT_FILE: dict[str, Any] = json.loads((RECIPES / "sft_config.json").read_text(encoding="utf-8"))
RM_FILE: dict[str, Any] = json.loads((RECIPES / "rm_config.json").read_text(encoding="utf-8"))


def reading_of(fields: dict[str, Any], objective: Objective) -> Reading:
    """UsageError for what cannot be honoured."""
    read = Reading()
    read_original(read, fields, objective)
    if read.problems:
        raise UsageError("\n".join(read.problems))
    return read


def settings(objective: Objective, fields: dict[str, Any]) -> FineTuningConfig:
    read = reading_of(fields, objective)
    needed = {"model_name": "m", "data_path": "d.json"}
    return read_fine_tuning(objective, {**needed, **read.given}, names=read.names)


@pytest.mark.parametrize(
    ("objective", "fields", "names"),
    [
        ("sft", SFT_FILE, "deepspeed_config, use_liger, attn_impl"),
        (
            *("process_reward", RM_FILE),
            "micro_train_batch_size, zero_stage, packing_samples, flash_attn",
        ),
    ],
)
def test_what_speeds_a_cluster_up_is_named_in_one_line(
    objective: Objective, fields: dict[str, Any], names: str
) -> None:
    speed, *others = reading_of(fields, objective).reasons()
    told = f"no effect here: {names} (reason: not used on one device; the result is the same)"
    assert speed == told
    assert not any(name in line for line in others for name in names.split(", "))


@pytest.mark.parametrize(
    ("field", "value"),
    [("zero_stage", 0), ("flash_attn", False), ("deepspeed_config", None), ("attn_impl", "sdpa")],
)
def test_what_asks_for_neither_is_accepted(field: str, value: object) -> None:
    assert settings("process_reward", {field: value}).attention == "sdpa"


def test_the_published_sft_file_means_these_settings() -> None:
    config = settings("sft", SFT_FILE)
    assert config.model_name == "Qwen/Qwen2.5-Coder-7B-Instruct"
    assert str(config.output_dir) == "saves/Qwen2.5-Coder-7B-Instruct/mschema_reject_sampling"
    assert [str(item) for item in config.data_path] == ["processed_results/rs_18k_for_sft.json"]
    assert (config.max_length, config.learning_rate, config.batch_size) == (8192, 1e-5, 32)
    assert (config.gradient_checkpointing, config.dtype) == (True, "bfloat16")
    assert (config.save_strategy, config.save_total_limit) == ("epoch", 20)
    assert (config.eval_strategy, config.eval_steps) == ("steps", 500)
    assert (config.train_type, config.use_chat_template) == ("full", False)
    # Defaults of the original's own loader.
    assert (config.weight_decay, config.warmup_ratio, config.lr_scheduler) == (0.1, 0.05, "cosine")
    assert (config.seed, config.data_seed, config.epochs) == (42, 42, 1)


def test_the_published_rm_file_means_these_settings() -> None:
    config = settings("process_reward", RM_FILE)
    assert config.model_name == "Qwen/Qwen2.5-Coder-7B-Instruct"
    assert [str(item) for item in config.data_path] == ["processed_results/SQL_prm_data.json"]
    assert (config.max_length, config.batch_size, config.learning_rate) == (8192, 4, 1e-6)
    assert (config.epochs, config.logging_steps) == (1, 1)
    assert (config.save_strategy, config.save_steps) == ("steps", 10000)
    assert (config.eval_strategy, config.eval_steps) == ("steps", 1000)
    assert (config.placeholder_token, config.reward_tokens) == (" и", ("+", "-"))
    assert (config.input_key, config.label_key) == ("input", "label")
    assert config.log_path == Path(RM_FILE["ckpt_path"])
    assert (config.weight_decay, config.warmup_ratio, config.train_type) == (0.0, 0.03, "full")


@pytest.mark.parametrize(
    ("field", "value", "ours", "expected"),
    [
        ("model_name_or_path", "x", "model_name", "x"),
        ("num_train_epochs", 3, "epochs", 3),
        ("max_epochs", 3, "epochs", 3),
        ("warm_up_ratio", 0.2, "warmup_ratio", 0.2),
        ("warmup_ratio", 0.2, "warmup_ratio", 0.2),
        ("weight_decay", 0.3, "weight_decay", 0.3),
        ("lr_scheduler_type", "linear", "lr_scheduler", "linear"),
        ("max_grad_norm", 0.5, "max_gradient_norm", 0.5),
        ("seed", 7, "seed", 7),
        ("data_seed", 7, "data_seed", 7),
        ("split_dataset_ratio", 0.25, "held_out_ratio", 0.25),
        ("eval_strategy", "no", "eval_strategy", "no"),
        ("logging_steps", 9, "logging_steps", 9),
        ("apply_chat_template", False, "use_chat_template", False),
        ("system", "Write SQL.", "system", "Write SQL."),
        ("chosen_key", "good", "chosen_key", "good"),
        ("rejected_key", "bad", "rejected_key", "bad"),
        ("save_steps", -1, "save_strategy", "epoch"),
        ("eval_steps", -1, "eval_strategy", "epoch"),
        ("bf16", True, "dtype", "bfloat16"),
        ("torch_dtype", "float32", "dtype", "float32"),
        ("torch_dtype", "float16", "dtype", "float32"),
        ("fp16", True, "dtype", "float32"),
        ("device", "cpu", "device", "cpu"),
    ],
)
def test_a_known_field_is_honoured(field: str, value: object, ours: str, expected: object) -> None:
    assert getattr(settings("pairwise_reward", {field: value}), ours) == expected


def test_a_step_of_the_sft_file_takes_its_batch_times_its_accumulation() -> None:
    assert settings("sft", {"per_device_train_batch_size": 3}).batch_size == 48
    assert settings("sft", {"gradient_accumulation_steps": 5}).batch_size == 5
    both = {"per_device_train_batch_size": 3, "gradient_accumulation_steps": 5}
    assert settings("sft", both).batch_size == 15


def test_unknown_fields_and_those_without_effect_are_named() -> None:
    read = reading_of({**SFT_FILE, "colour": "red"}, "sft")
    assert [line.split(": ")[1].partition(" (reason")[0] for line in read.reasons()[1:]] == [
        *("model_type", "template", "init_weights", "ignore_args_error"),
        *("save_only_model", "lora_rank, lora_alpha"),
    ]
    assert read.unknown_line() == ["unknown fields, ignored: colour"]


def test_a_field_of_another_objective_is_named_and_not_used() -> None:
    read = reading_of({"chosen_key": "good", "label_key": "l"}, "process_reward")
    assert read.given == {"label_key": "l"}
    assert [line.split(": ")[1].partition(" (reason")[0] for line in read.reasons()] == [
        "chosen_key"
    ]


@pytest.mark.parametrize(
    ("fields", "command", "kind", "objective"),
    [
        ({"dataset": "d"}, None, None, "sft"),
        ({"label_key": "l"}, None, None, "process_reward"),
        ({"chosen_key": "c"}, None, None, "pairwise_reward"),
        ({"chosen_key": "c", "label_key": "l"}, None, None, "process_reward"),
        ({"label_key": "l"}, "sql sft", None, "sft"),
        ({}, "sql reward-model", None, "process_reward"),
        ({"label_key": "l"}, "sql reward-model", "pairwise", "pairwise_reward"),
    ],
)
def test_the_command_then_the_fields_say_what_is_trained(
    fields: dict[str, Any], command: str | None, kind: str | None, objective: str
) -> None:
    assert objective_of(fields, command, kind) == objective


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("torch_dtype", "int8", "torch_dtype: 'int8' is not supported"),
        ("per_device_train_batch_size", 0, "per_device_train_batch_size: 0 is not an integer of"),
        ("gradient_accumulation_steps", "x", "gradient_accumulation_steps: 'x' is not an integer"),
        ("attn_impl", "xformers", "attn_impl: 'xformers' is not one of sdpa, flash_attn"),
        ("num_train_epochs", 0, "num_train_epochs: 0 is out of range"),
        ("learning_rate", "fast", 'learning_rate: "fast" is not a number'),
        ("lr_scheduler_type", "cubic", 'lr_scheduler_type: "cubic" is not one of cosine, linear'),
        ("train_type", "qlora", 'train_type: "qlora" is not one of full, lora'),
        ("model_id_or_path", 3, "model_id_or_path: 3 is not text"),
    ],
)
def test_a_value_that_cannot_be_honoured_is_refused_by_the_files_name(
    field: str, value: object, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        settings("sft", {field: value})


def test_two_names_of_one_field_may_not_contradict_each_other() -> None:
    with pytest.raises(UsageError, match="max_epochs: contradicts num_train_epochs"):
        reading_of({"num_train_epochs": 1, "max_epochs": 2}, "sft")
