"""The advantage function of a text-to-SQL training: by name, by algorithm, or user-defined.

A core function takes `token_level_rewards` and `eos_mask` [B, T] and `index` [B] as keywords, and
returns advantages and returns [B, T].
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Final, Literal, cast

import numpy as np
import torch
from torch import Tensor

from producer.algorithms.advantages import ADVANTAGES, Rewards
from producer.algorithms.names import AdvantageName
from producer.algorithms.token_advantages import (
    AdvantagesAndReturns,
    Index,
    compute_grpo_process_advantage_avg_unique,
    compute_token_wise_advantage,
    compute_weighted_grpo_advantage,
    discounted_returns,
    groups_of,
    whitened,
)

CoreFunction = Callable[..., AdvantagesAndReturns]
CoreAlgorithm = Literal["grpo", "ppo", "rloo", "prime"]
PARAMETERS: Final = ("token_level_rewards", "eos_mask", "index")
PROCESS, OUTCOME = "compute_grpo_process_advantage_avg_unique", "compute_grpo_outcome_advantage"
SEARCHED: Final[dict[CoreAlgorithm, tuple[str, ...]]] = {
    "grpo": (
        PROCESS,
        "compute_grpo_advantage",
        "compute_weighted_grpo_advantage",
        "compute_token_wise_advantage",
    ),
    "rloo": ("compute_rloo_advantage", "compute_rloo_outcome_advantage"),
    "ppo": ("compute_gae_advantage_return",),
    "prime": ("compute_prime_advantage",),
}
"""Names looked up in a user's module, in order of preference."""
OWN_ESTIMATOR: Final[dict[CoreAlgorithm, str]] = {"ppo": "gae", "prime": "prime"}
"""Algorithms whose advantages need more than rewards: values, or a reward model's log-probs."""


def choose_core_function(
    algorithm: CoreAlgorithm, module: Mapping[str, object], *, has_process_rewards: bool = True
) -> str:
    """The name of the algorithm's function, or of its own estimator (`OWN_ESTIMATOR`).

    The names of `SEARCHED` are looked up in the user's `module` first. If there is none, grpo uses
    the process advantage, or the outcome advantage if there are no process rewards.
    """
    found = [name for name in SEARCHED[algorithm] if name in module]
    if found:
        return found[0]
    if algorithm in OWN_ESTIMATOR:
        return OWN_ESTIMATOR[algorithm]
    if algorithm == "grpo" and has_process_rewards:
        return PROCESS
    return f"compute_{algorithm}_outcome_advantage"


def call_core_function(
    chosen: CoreFunction, token_level_rewards: Tensor, eos_mask: Tensor, index: Index
) -> AdvantagesAndReturns:
    """Call the function and check its advantages and returns.

    It gets the index as a numpy array of numbers, whatever the groups are called. Raises ValueError
    if it raises, returns another shape, or returns numbers that are not finite in float32.
    """
    numbers = np.zeros(len(token_level_rewards), dtype=np.int64)
    for number, places in enumerate(groups_of(index)):
        numbers[places] = number
    try:
        found = chosen(token_level_rewards=token_level_rewards, eos_mask=eos_mask, index=numbers)
    except (Exception, SystemExit) as error:
        # Our own functions' messages already explain the error.
        is_ours = isinstance(error, ValueError) and chosen in CORE_FUNCTIONS.values()
        message = str(error) if is_ours else f"it raised {type(error).__name__}: {error}"
        raise ValueError(message) from error
    shape = tuple(token_level_rewards.shape)
    if not isinstance(found, tuple) or len(found) != 2:  # noqa: PLR2004  # advantages and returns
        message = f"a core function must return (advantages, returns); found {type(found).__name__}"
        raise ValueError(message)
    for name, value in zip(("advantages", "returns"), found, strict=True):
        is_fine = isinstance(value, Tensor) and tuple(value.shape) == shape
        if not is_fine or value.is_complex() or not bool(torch.isfinite(value.float()).all()):
            message = f"a core function must return finite {name} of shape {shape}"
            raise ValueError(message)
    return found


def named_core_function(name: str, module: Mapping[str, object]) -> CoreFunction:
    """The function of this name in the user's `module`, else ours.

    Raises ValueError for an unknown name, and for a function with other arguments.
    """
    function = module.get(name, CORE_FUNCTIONS.get(name))
    if not callable(function):
        own = [key for key, value in module.items() if inspect.isfunction(value)]
        known = ", ".join(dict.fromkeys([*own, *CORE_FUNCTIONS]))
        message = f"there is no core function {name!r}; use one of {known}"
        raise ValueError(message)  # noqa: TRY004  # as every other mistake of a user
    try:
        inspect.signature(function).bind(**dict.fromkeys(PARAMETERS))
    except TypeError as error:
        message = f"{name} must take {', '.join(PARAMETERS)}: {error}"
        raise ValueError(message) from None
    return cast("CoreFunction", function)


def _of_outcomes(name: AdvantageName) -> CoreFunction:
    """A rollout's advantage, from the sum of its rewards, assigned to every token of the mask."""

    def compute(
        token_level_rewards: Tensor, eos_mask: Tensor, index: Index
    ) -> AdvantagesAndReturns:
        groups_B = [0] * len(token_level_rewards)
        for number, places in enumerate(groups_of(index)):
            for place in places:
                groups_B[place] = number
        rewards = Rewards(
            token_level_rewards.double().sum(dim=1).tolist(),
            groups_B,
            (eos_mask > 0).sum(dim=1).tolist(),
        )
        advantages_B = torch.tensor(ADVANTAGES[name].compute(rewards), dtype=torch.float64)
        advantages_BT = advantages_B.to(eos_mask.device)[:, None] * eos_mask
        advantages_BT = advantages_BT.to(token_level_rewards.dtype)
        return advantages_BT, advantages_BT

    return compute


def compute_reinforce_plus_plus_outcome_advantage(
    token_level_rewards: Tensor, eos_mask: Tensor, index: Index, gamma: float = 1.0
) -> AdvantagesAndReturns:
    """REINFORCE++ (arXiv 2501.03262): rewards to go, whitened over the batch; ignores groups.

    The returns are those before whitening.
    """
    del index
    returns_BT = discounted_returns(token_level_rewards, eos_mask, gamma=gamma)
    return whitened(returns_BT, eos_mask) * eos_mask, returns_BT


CORE_FUNCTIONS: Final[dict[str, CoreFunction]] = {
    PROCESS: compute_grpo_process_advantage_avg_unique,
    "compute_weighted_grpo_advantage": compute_weighted_grpo_advantage,
    "compute_token_wise_advantage": compute_token_wise_advantage,
    OUTCOME: _of_outcomes("grpo"),
    "compute_grpo_advantage": _of_outcomes("grpo"),
    "compute_dr_grpo_outcome_advantage": _of_outcomes("dr_grpo"),
    "compute_rloo_outcome_advantage": _of_outcomes("rloo"),
    "compute_opo_outcome_advantage": _of_outcomes("opo"),
    "compute_gpg_outcome_advantage": _of_outcomes("gpg"),
    "compute_grpo_passk_outcome_advantage": _of_outcomes("grpo_passk"),
    "compute_reinforce_plus_plus_outcome_advantage": compute_reinforce_plus_plus_outcome_advantage,
    "compute_reinforce_plus_plus_baseline_outcome_advantage": _of_outcomes(
        "reinforce_plus_plus_baseline"
    ),
}
"""Name -> function for each of our core functions; names as in verl and RewardSQL."""
