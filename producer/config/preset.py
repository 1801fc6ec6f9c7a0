"""Names of the built-in policies, and the defaults of `demo`."""

from pydantic import JsonValue

from producer.tasks.preset import PRESET_TASK_IDS

DEMO_POLICY = "demo"
"""`model_name` of the small policy that is built and warmed up on this machine."""
ORACLE_POLICY = "oracle"
"""`model_name` of the scripted policy: solves tasks with random actions mixed in, learns nothing,
needs no torch."""

DEMO_PRESET: dict[str, JsonValue] = {
    "model_name": DEMO_POLICY,
    "lora_rank": 16,
    "max_turns": 6,
    "max_recent_turns": None,
    "group_size": 8,
    "groups_per_batch": 16,
    "num_steps": 20,
    "learning_rate": 1.5e-3,
    "max_tokens": 14,
    "num_substeps": 2,
    "parse_error_cost": 0.1,
    "max_concurrent_rollouts": 128,
    "eval_every": 10,
    "eval_episodes": 384,
    "save_every": 10,
    "tasks": {"source_type": "ids", "task_ids": list(PRESET_TASK_IDS)},
    "eval_temperature": 1.0,
}
"""Defaults for the small policy: 1 M parameters need other settings than 30 B."""

DEMO_PRESETS: dict[str, dict[str, JsonValue]] = {"android": DEMO_PRESET}
"""`environment` -> defaults of its small policy."""


def demo_preset(environment: JsonValue) -> dict[str, JsonValue]:
    """The defaults of the small policy of this environment; None or an unknown one: the phone's."""
    named = environment if isinstance(environment, str) else "android"
    return DEMO_PRESETS.get(named, DEMO_PRESET)
