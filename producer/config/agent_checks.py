"""Settings that an agent cannot have."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from producer.agents import AGENTS, DEFAULT_AGENT
from producer.algorithms.advantages import ADVANTAGES
from producer.config.preset import DEMO_POLICY, ORACLE_POLICY
from producer.errors import did_you_mean

if TYPE_CHECKING:
    from producer.config.run_config import RunConfig

OF_SCREENS = ("ablate", "max_recent_turns", "screen_cache_bytes")
"""Fields that mean nothing to an agent without a screen."""


def agent_problems(config: "RunConfig") -> Iterator[str]:
    """What is wrong with `config` for its agent, by field."""
    if config.agent.screen_px is None:
        for name in OF_SCREENS:
            if getattr(config, name) not in {None, type(config).model_fields[name].default}:
                yield (
                    f"{name}: only of an environment with a screen, which {config.environment} has"
                    " not; omit it"
                )
    if ADVANTAGES[config.advantage].is_of_steps and not config.agent.answers_in_steps:
        names = " or ".join(name for name, agent in AGENTS.items() if agent.answers_in_steps)
        yield f"advantage: {config.advantage} is only for environment {names}; use rloo"
    for name, agent in AGENTS.items():
        for field in sorted(agent.own_settings):
            if name != config.environment and getattr(config, field) is not None:
                yield f"{field}: only of environment {name}; omit it"


def no_default_tasks(config: "RunConfig") -> str:
    """What to give where the policy and its agent bring no tasks."""
    source, own = next(iter(config.agent.task_sources.items()))
    example = {"source_type": source} | ({own.required: "..."} if own.required else {})
    where = "" if config.environment == DEFAULT_AGENT else f" in environment {config.environment}"
    names = (
        () if config.model_name in (DEMO_POLICY, ORACLE_POLICY) else (DEMO_POLICY, ORACLE_POLICY)
    )
    return (
        f"tasks: {config.model_name!r} has no default tasks{where}; give some, for example"
        f" {json.dumps(example)}{did_you_mean(config.model_name, names).replace(' ', '. ', 1)}"
    )
