"""PRIME's part of an update: the reward model learns from the outcomes, then gives the advantages.

As verl's recipe (`update: before`): one optimiser step on the batch, then its log-ratios once more.

Axes: B trajectories, T completion tokens of the longest, N completion tokens of one sequence.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch

from producer.algorithms.aggregation import BatchSize
from producer.algorithms.prime import (
    PrimeWeights,
    compute_prime_advantage,
    implicit_rewards,
    reward_model_loss,
)
from producer.policy.compute_settings import Switch
from producer.policy.learner import Attempt, PrimeResult, Trajectory, UpdateSettings
from producer.policy.torch_policy.cpu_parallel import add_gradients
from producer.policy.torch_policy.network import Network
from producer.policy.torch_policy.reward_adapter import RewardAdapter
from producer.policy.torch_policy.screen_encoder import ScreenEncoder
from producer.policy.torch_policy.training_sequences import TrainingSequence
from producer.policy.torch_policy.trajectory_rows import mean_advantages, trajectory_rows
from producer.policy.torch_policy.update_passes import UpdatePasses


def needs_reward_model(trajectories: Sequence[Trajectory]) -> bool:
    """Whether advantages come from outcomes; ValueError if only some of the trained have one."""
    given = {trajectory.attempt is not None for trajectory in trajectories if trajectory.is_trained}
    if len(given) > 1:
        message = "attempt is given for some of the trained trajectories; give it for all"
        raise ValueError(message)
    return given == {True}


def with_prime_advantages(
    network: Network,
    encoder: ScreenEncoder,
    model: RewardAdapter,
    trajectories: Sequence[Trajectory],
    sequences: Sequence[TrainingSequence],
    settings: UpdateSettings,
    gradient_checkpointing: Switch,
) -> tuple[list[TrainingSequence], PrimeResult | None]:
    """The sequences with the advantages of their tokens, after one step of the reward model.

    `sequences`: those that are trained on; without any nothing changes. Log-probs are those of
    temperature 1, whatever the policy's. A rollout without tokens is in no group.
    """
    if not sequences:
        return [], None
    # The gradient of a sum of log-probs, each with its weight, is that of `reinforce`.
    passes = UpdatePasses(
        network,
        encoder,
        replace(settings, loss="reinforce", aggregation="sum", temperature=1.0, kl_in="advantage"),
        None,
        model.parameters,
        network.max_workers,
    )
    rows = trajectory_rows(sequences)
    attempts = [_attempt(trajectories[at]) for at in rows.trajectories]
    is_right_B = torch.tensor(
        [float(attempt.is_right) for attempt in attempts], dtype=torch.float64
    )
    rewards_B = torch.tensor([attempt.reward for attempt in attempts], dtype=torch.float64)
    reference_BT = rows.rows(passes.base_logprobs(sequences))
    with model.active():
        before = passes.logprobs(sequences)
        before_BT = rows.rows(before).requires_grad_()
        loss = reward_model_loss(
            before_BT, reference_BT, rows.mask_BT, is_right_B, settings.prime_beta
        )
        (weights_BT,) = torch.autograd.grad(loss, before_BT)
        weighted = [
            replace(one, advantages_N=-weights_N)
            for one, weights_N in zip(sequences, rows.parts(weights_BT, before), strict=True)
        ]
        model.begin_step()
        size = BatchSize(sum(len(item) for item in before), len(sequences))
        for one in passes.backward(
            weighted, size, gradient_checkpointing, None, dropout_seed=settings.seed
        ):
            add_gradients(passes.parameters, one.gradients)
        norm = model.step(settings.prime_learning_rate, settings.max_gradient_norm)
        after_BT = rows.rows(passes.logprobs(sequences))
    process_BT = implicit_rewards(after_BT, reference_BT, rows.mask_BT, settings.prime_beta)
    advantages_BT, _ = compute_prime_advantage(
        process_BT,
        rewards_B,
        rows.mask_BT,
        [attempt.group for attempt in attempts],
        PrimeWeights(process=settings.prime_process_coef, outcome=settings.prime_outcome_coef),
    )
    found = [
        replace(one, advantages_N=advantages_N)
        for one, advantages_N in zip(sequences, rows.parts(advantages_BT, before), strict=True)
    ]
    told_right_B = (before_BT.detach() - reference_BT).sum(dim=1) > 0
    return found, PrimeResult(
        advantages=mean_advantages(found, len(trajectories)),
        loss=float(loss.detach()),
        accuracy=float((told_right_B == is_right_B.bool()).double().mean()),
        reward_mean=float(process_BT[rows.mask_BT].mean()),
        gradient_norm=norm,
    )


def _attempt(trajectory: Trajectory) -> Attempt:
    assert trajectory.attempt is not None  # noqa: S101  # `needs_reward_model`
    return trajectory.attempt
