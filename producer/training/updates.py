"""The inputs of a step's update, trajectories and settings, built live or from the log."""

from collections.abc import Sequence
from math import cos, pi

from producer.algorithms.advantages import ADVANTAGES
from producer.algorithms.settings import UpdateSettings, settings_of
from producer.config import RunConfig
from producer.policy.learner import RolloutOutcome, TokenNumbers, Trajectory
from producer.rollouts.plan import RolloutResult
from producer.seeds import derived_seed
from producer.training.samples import (
    SelectedSample,
    by_turn,
    measured_samples,
    rewards_of_tokens,
)


def trajectories_of(config: RunConfig, samples: Sequence[SelectedSample]) -> list[Trajectory]:
    """The trajectories that the update reads, in the order of the samples."""
    return [
        trajectory(
            config,
            sample.result,
            advantage=sample.advantage,
            is_trained=sample.drop_reason is None,
            token_advantages=sample.token_advantages,
        )
        for sample in measured_samples(samples)
    ]


def trajectory(
    config: RunConfig,
    result: RolloutResult,
    *,
    advantage: float | None,
    is_trained: bool,
    token_advantages: TokenNumbers | None = None,
) -> Trajectory:
    """The rollout with its outcome and its advantage, per token if `token_advantages` is given."""
    return Trajectory(
        result.plan.task,
        result.turns,
        advantage=token_advantages or advantage or 0.0,
        outcome=RolloutOutcome(
            result.plan.group_num,
            result.reward,
            is_right=result.success,
            token_rewards=(
                by_turn(result, rewards_of_tokens(config, result))
                if config.agent.answers_in_steps
                else None
            ),
        ),
        is_trained=is_trained,
    )


def update_settings(config: RunConfig, *, generation: int, step: int) -> UpdateSettings:
    """Settings of the update of step `step` (from 1)."""
    learned = ADVANTAGES[config.advantage].learned
    return settings_of(
        config,
        UpdateSettings,
        learning_rate=learning_rate_of(config, step),
        seed=derived_seed(config.seed, "update", generation, step),
        learned_advantage=None if learned is None else settings_of(config, learned.settings),
    )


def learning_rate_of(config: RunConfig, step: int) -> float:
    """Learning rate of step `step` (from 1). Depends only on the step, so resuming needs no state.

    The cosine schedule is verl's `get_cosine_schedule_with_warmup`, which counts steps from 0. Its
    warm-up starts at 0; ours starts at the first fraction.
    """
    warmup = config.learning_rate_warmup_steps
    if step < warmup:
        return config.learning_rate * step / warmup
    if config.learning_rate_schedule == "constant":
        return config.learning_rate
    done = max(0, step - 1 - warmup) / max(1, config.num_steps - warmup)
    lowest = config.min_learning_rate_ratio
    return config.learning_rate * (lowest + (1 - lowest) * 0.5 * (1 + cos(pi * done)))
