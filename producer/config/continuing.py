"""Which fields of a configuration may change when a training continues."""

from collections.abc import Collection, Mapping

from pydantic import JsonValue

from producer.config.training import IGNORED_FIELDS
from producer.errors import UsageError

CHANGEABLE = frozenset(
    {
        *("num_steps", "log_path", "log_dir", "baseline_only", "max_concurrent_rollouts"),
        "rollouts_by",
        *("save_every", "eval_every", "num_groups_to_log"),
        *("wandb_project", "wandb_name", "behavior_if_log_dir_exists", "device"),
        *("gradient_checkpointing", "screen_cache_bytes", "kv_cache_bytes", "dbbench_database"),
        *("reward_port", "env_url", "base_url", "adapters_dir", "adb_serials", "adb_server"),
        *IGNORED_FIELDS,
    }
)
"""Fields that may differ when a training continues: its length, its folder, how it is observed,
and the machine that it runs on."""

OF_ONE_PROCESS = frozenset({"log_path", "log_dir", "baseline_only"})
"""Fields that a training does not inherit when it continues: its folder is found by its name, and
after a baseline alone it may be trained."""

OTHERWISE = (
    "choose another --training-name",
    "begin a new generation with --behavior-if-log-dir-exists overwrite",
)
"""What to do instead of continuing a training with its settings."""

FOLLOWS = {
    "num_steps": frozenset({"skill_sequence", "steps_per_skill"}),
    "lora_alpha": frozenset({"lora_rank"}),
    "reward_sha256": frozenset({"reward"}),
    "core_algos_sha256": frozenset({"core_algos"}),
    "reward_module_sha256": frozenset({"reward_module"}),
}
"""Computed field -> the fields it is computed from."""


def inherited(
    recorded: Mapping[str, JsonValue], given: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """The recorded fields that a training keeps when it continues.

    Without fields of one process, and without fields computed from one that has changed.
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
    """UsageError for explicit settings that cannot change when a training continues."""
    before = {name: recorded.get(name) for name in explicit}
    if conflicts := differences(before, explicit, changeable):
        message = "this training was begun with other settings: " + "; ".join(conflicts)
        raise UsageError(message, ways=("leave these out to continue it", *OTHERWISE))


def differences(
    recorded: Mapping[str, JsonValue],
    requested: Mapping[str, JsonValue],
    changeable: Collection[str] = CHANGEABLE,
) -> list[str]:
    """Fields that prevent `requested` from continuing `recorded`: `field: old -> new`."""
    names = sorted((recorded.keys() | requested.keys()) - set(changeable))
    return [
        f"{name}: {recorded.get(name)!r} -> {requested.get(name)!r}"
        for name in names
        if recorded.get(name) != requested.get(name)
    ]
