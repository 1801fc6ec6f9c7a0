"""What a training records of its configuration, and which fields may change when it goes on."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from producer.errors import UsageError
from schemas.training import Recipe

if TYPE_CHECKING:
    from producer.config.run_config import RunConfig

CHANGEABLE = frozenset(
    {
        "num_steps",
        "log_path",
        "log_dir",
        "baseline_only",
        "max_concurrent_rollouts",
        "max_steps_off_policy",
        "save_every",
        "eval_every",
        "num_groups_to_log",
        "wandb_project",
        "wandb_name",
        "behavior_if_log_dir_exists",
        "device",
        "gradient_checkpointing",
        "screen_cache_bytes",
        "kv_cache_bytes",
        "dbbench_database",
        "reward_port",
    }
)
"""Fields that may differ when a training is continued: its length, its folder, how it is observed,
how far its rollouts run ahead, and the machine that it runs on."""

OF_ONE_PROCESS = frozenset({"log_path", "log_dir", "baseline_only"})
"""Fields that a training which is continued does not inherit: where its folder is is known
otherwise, and a training of which only the baseline was asked for may be trained later."""

OTHERWISE = (
    "choose another --training-name",
    "begin a new generation with --behavior-if-log-dir-exists overwrite",
)
"""What to do in place of continuing a training as it was begun."""

FOLLOWS = {
    "num_steps": frozenset({"skill_sequence", "steps_per_skill"}),
    "lora_alpha": frozenset({"lora_rank"}),
    "reward_sha256": frozenset({"reward"}),
    "core_algos_sha256": frozenset({"core_algos"}),
    "reward_module_sha256": frozenset({"reward_module"}),
}
"""Field that is filled in -> fields that it is filled in from."""


def inherited(
    recorded: Mapping[str, JsonValue], given: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """What a training that goes on takes over of its recorded configuration.

    Neither fields of one process, nor what follows from a field that has another value now.
    """
    changed = {name for name, value in given.items() if recorded.get(name) != value}
    return {
        name: value
        for name, value in recorded.items()
        if name not in OF_ONE_PROCESS and not FOLLOWS.get(name, frozenset()) & changed
    }


def check_same(
    recorded: Mapping[str, JsonValue],
    explicit: Mapping[str, JsonValue],
    changeable: Collection[str] = CHANGEABLE,
) -> None:
    """UsageError that lists the explicit settings which a training that goes on cannot change."""
    before = {name: recorded.get(name) for name in explicit}
    if conflicts := differences(before, explicit, changeable):
        message = "this training was begun with other settings: " + "; ".join(conflicts)
        raise UsageError(message, ways=("leave these out to continue it", *OTHERWISE))


def differences(
    recorded: Mapping[str, JsonValue],
    requested: Mapping[str, JsonValue],
    changeable: Collection[str] = CHANGEABLE,
) -> list[str]:
    """Fields that keep `requested` from continuing `recorded`: `field: old -> new`."""
    names = sorted((recorded.keys() | requested.keys()) - set(changeable))
    return [
        f"{name}: {recorded.get(name)!r} -> {requested.get(name)!r}"
        for name in names
        if recorded.get(name) != requested.get(name)
    ]


def recipe(config: "RunConfig", log_path: Path) -> Recipe:
    """The settings that have columns of their own."""
    return Recipe(
        log_path=str(log_path),
        model_name=config.model_name,
        lora_rank=config.lora_rank if config.train_type == "lora" else None,
        learning_rate=config.learning_rate,
        batch_size=config.batch_size,
        group_size=config.group_size,
        groups_per_batch=config.groups_per_batch,
        max_tokens=config.max_tokens,
        temperature=config.temperature,
        kl_penalty_coef=config.kl_penalty_coef,
        num_substeps=config.num_substeps,
        max_turns=config.max_turns,
        seed=config.seed,
        box_type=config.agent.box_type,
        renderer_name=config.renderer_name,
        wandb_project=config.wandb_project,
        wandb_name=config.wandb_name,
    )
