"""Rewards and advantages of single tokens: scored steps, the outcome, and a core function.

Axes: B rollouts, T tokens of the longest.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from producer.config import RunConfig
from producer.errors import UsageError
from producer.policy.learner import TokenNumbers
from producer.process_rewards.step_and_outcome import RewardWeights, ScoredSteps, token_rewards
from producer.process_rewards.token_spans import TokenSpan
from producer.process_rewards.user_module import load_user_module
from producer.rollouts.plan import RolloutResult

if TYPE_CHECKING:
    from producer.algorithms.core_functions import CoreFunction


def rewards_of_tokens(config: RunConfig, result: RolloutResult) -> list[float]:
    """R of each completion token: rm_coef x its step's score + verifier_coef x the outcome.

    What a reward manager of the user's gave comes before.
    """
    if result.token_rewards:
        return [*result.token_rewards]
    steps = None
    if result.scored_steps:
        steps = ScoredSteps(
            tuple(step.text for step in result.scored_steps),
            tuple(TokenSpan(step.first_token, step.last_token) for step in result.scored_steps),
            tuple(step.score for step in result.scored_steps),
        )
    weights = RewardWeights(rm_coef=config.rm_coef, verifier_coef=config.verifier_coef)
    outcome = result.reward
    return token_rewards(result.num_tokens, outcome, steps, weights)


def advantages_of_tokens(
    config: RunConfig, results: Sequence[RolloutResult], groups: Sequence[int]
) -> list[TokenNumbers]:
    """Of every rollout, for each turn and completion token, by the configured core function.

    `groups`: index of each rollout's group. UsageError for a function that returns something else.
    """
    import torch

    from producer.algorithms.core_functions import call_core_function

    rewards = [rewards_of_tokens(config, result) for result in results]
    longest = max((len(reward) for reward in rewards), default=0)
    if not longest:
        return [tuple(() for _ in result.turns) for result in results]
    rewards_BT = torch.tensor([reward + [0.0] * (longest - len(reward)) for reward in rewards])
    mask_BT = torch.tensor(
        [[1.0] * len(reward) + [0.0] * (longest - len(reward)) for reward in rewards]
    )
    try:
        found_BT, _ = call_core_function(
            find_core_function(config), rewards_BT, mask_BT, list(groups)
        )
    except ValueError as error:
        message = f"core_function: {config.core_function}: {error}"
        raise UsageError(message) from error
    return [
        by_turn(result, row[: len(own)])
        for result, row, own in zip(results, found_BT.tolist(), rewards, strict=True)
    ]


def find_core_function(config: RunConfig) -> "CoreFunction":
    """The configured function. UsageError names what there is."""
    from producer.algorithms.core_functions import UnknownFunctionError, choose_core_function
    from producer.process_rewards.registry import public_names

    module = None
    if config.core_algos is not None:
        try:
            module = public_names(load_user_module(config.core_algos))
        except ValueError as error:
            message = f"core_algos: {error}"
            raise UsageError(message) from error
    try:
        chosen = choose_core_function("grpo", command_line=config.core_function, module=module)
    except UnknownFunctionError as error:
        message = f"core_function: {error}"
        raise UsageError(message) from error
    assert chosen.function is not None  # noqa: S101  # it was named
    return chosen.function


def by_turn(result: RolloutResult, numbers: Sequence[float]) -> TokenNumbers:
    """Numbers of a rollout's completion tokens, turn by turn."""
    found, at = [], 0
    for turn in result.turns:
        end = at + len(turn.tokens.completion_tokens)
        found.append(tuple(numbers[at:end]))
        at = end
    return tuple(found)
