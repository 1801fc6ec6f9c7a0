"""Settings that an agent cannot have."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from producer.agents import AGENTS

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
    if config.advantage == "prime" and not config.agent.answers_in_steps:
        names = " or ".join(name for name, agent in AGENTS.items() if agent.answers_in_steps)
        yield f"advantage: prime is only for environment {names}; use rloo"
    for name, agent in AGENTS.items():
        for field in sorted(agent.own_settings):
            if name != config.environment and getattr(config, field) is not None:
                yield f"{field}: only of environment {name}; omit it"
