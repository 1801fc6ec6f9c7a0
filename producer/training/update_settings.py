"""The settings of a step's update, from the configuration."""

from math import cos, pi

from producer.algorithms.advantages import ADVANTAGES
from producer.algorithms.settings import UpdateSettings, settings_of
from producer.config import RunConfig
from producer.seeds import derived_seed


def update_settings(config: RunConfig, *, generation: int, step: int) -> UpdateSettings:
    """Of step `step`, from 1."""
    learned = ADVANTAGES[config.advantage].learned
    return settings_of(
        config,
        UpdateSettings,
        learning_rate=learning_rate_of(config, step),
        seed=derived_seed(config.seed, "update", generation, step),
        learned_advantage=None if learned is None else settings_of(config, learned.settings),
    )


def learning_rate_of(config: RunConfig, step: int) -> float:
    """Of step `step`, from 1: a function of its number, so a resumed run needs no state.

    The cosine is verl's `get_cosine_schedule_with_warmup`, whose steps count from 0; its warm-up
    begins at 0, ours at the first share.
    """
    warmup = config.learning_rate_warmup_steps
    if step < warmup:
        return config.learning_rate * step / warmup
    if config.learning_rate_schedule == "constant":
        return config.learning_rate
    done = max(0, step - 1 - warmup) / max(1, config.num_steps - warmup)
    lowest = config.min_learning_rate_ratio
    return config.learning_rate * (lowest + (1 - lowest) * 0.5 * (1 + cos(pi * done)))
