"""What an update is given of a rollout, and what it says back; the same live and from the log."""

from collections.abc import Sequence

from producer.config import RunConfig
from producer.policy.learner import Attempt, TokenNumbers, Trajectory
from producer.rollouts.plan import RolloutResult
from producer.training.samples import SelectedSample, measured_samples
from producer.training.token_credit import by_turn, rewards_of_tokens


def trajectories_of(config: RunConfig, samples: Sequence[SelectedSample]) -> list[Trajectory]:
    """What the update is given of a step's samples, in their order."""
    return [
        trajectory(
            config,
            measured_sample.result,
            advantage=measured_sample.advantage,
            is_trained=measured_sample.drop_reason is None,
            token_advantages=measured_sample.token_advantages,
        )
        for measured_sample in measured_samples(samples)
    ]


def trajectory(
    config: RunConfig,
    result: RolloutResult,
    *,
    advantage: float | None,
    is_trained: bool,
    token_advantages: TokenNumbers | None = None,
) -> Trajectory:
    """The rollout with its advantage, its tokens', their rewards (gae) or how it ended (prime)."""
    return Trajectory(
        result.plan.task,
        result.turns,
        advantage=advantage or 0.0,
        is_trained=is_trained,
        token_advantages=token_advantages,
        token_rewards=_rewards(config, result) if config.advantage == "gae" else None,
        attempt=_attempt(result) if config.advantage == "prime" else None,
    )


def _attempt(result: RolloutResult) -> Attempt:
    return Attempt(result.plan.group_num, result.reward, is_right=result.success)


def _rewards(config: RunConfig, result: RolloutResult) -> TokenNumbers:
    if config.agent.answers_in_steps:
        return by_turn(result, rewards_of_tokens(config, result))
    return outcome_rewards(result)


def outcome_rewards(result: RolloutResult) -> TokenNumbers:
    """0 on every completion token but the last of all, which has the rollout's reward."""
    lengths = [len(turn.tokens.completion_tokens) for turn in result.turns]
    last = max((at for at, length in enumerate(lengths) if length), default=None)
    return tuple(
        (0.0,) * (length - 1) + (result.reward,) if at == last else (0.0,) * length
        for at, length in enumerate(lengths)
    )
