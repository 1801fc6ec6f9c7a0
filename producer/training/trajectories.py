"""The trajectories of an update, from rollouts and their samples, live or from the log."""

from collections.abc import Sequence

from producer.config import RunConfig
from producer.policy.learner import RolloutOutcome, TokenNumbers, Trajectory
from producer.rollouts.plan import RolloutResult
from producer.training.samples import SelectedSample, measured_samples
from producer.training.token_credit import by_turn, rewards_of_tokens


def trajectories_of(config: RunConfig, samples: Sequence[SelectedSample]) -> list[Trajectory]:
    """Of a step's samples that the update reads, in their order."""
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
    """The rollout with its advantage or its tokens', and its outcome."""
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
