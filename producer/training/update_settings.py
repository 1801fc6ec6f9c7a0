"""The settings of a step's update, from the configuration."""

from math import cos, pi

from producer.algorithms.names import CLIPPED
from producer.config import RunConfig
from producer.policy.learner import UpdateSettings
from producer.seeds import derived_seed


def update_settings(config: RunConfig, *, generation: int, step: int) -> UpdateSettings:
    """Of step `step`, from 1. A clipping bound that is not given is the loss's own."""
    clip_low, clip_high = CLIPPED.get(config.loss_fn, (0.0, 0.0))
    return UpdateSettings(
        loss=config.loss_fn,
        learning_rate=learning_rate_of(config, step),
        num_substeps=config.num_substeps,
        ppo_epochs=config.ppo_epochs,
        weight_decay=config.weight_decay,
        entropy_coef=config.entropy_coef,
        temperature=config.temperature,
        kl_penalty_coef=config.kl_penalty_coef,
        kl_estimator=config.kl_estimator,
        kl_in=config.kl_in,
        clip_low=clip_low if config.clip_ratio_low is None else config.clip_ratio_low,
        clip_high=clip_high if config.clip_ratio_high is None else config.clip_ratio_high,
        dual_clip=config.dual_clip,
        aggregation=config.loss_aggregation,
        max_gradient_norm=config.max_gradient_norm,
        compute_post_kl=config.compute_post_kl,
        gae_gamma=config.gae_gamma,
        gae_lambda=config.gae_lambda,
        value_clip=config.value_clip,
        value_coef=config.value_coef,
        value_learning_rate=config.value_learning_rate,
        prime_beta=config.prime_beta,
        prime_process_coef=config.prime_process_coef,
        prime_outcome_coef=config.prime_outcome_coef,
        prime_learning_rate=config.prime_learning_rate,
        seed=derived_seed(config.seed, "update", generation, step),
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
