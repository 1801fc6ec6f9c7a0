"""What files written for RewardSQL and verl import, by the module that they import it from.

Ours stand for RewardSQL's reward manager, reward function and core functions. What would train or
score there and has no counterpart here says so when it is called.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, NoReturn

from producer.process_rewards import registry
from producer.process_rewards.reward_batch import RewardBatch
from producer.process_rewards.sql_reward import sql_reward_function
from producer.process_rewards.step_and_outcome import StepAndOutcomeManager


class VERLTrainingManager:
    """RewardSQL's trainer, which a file may name and which does not train here."""

    def __init__(self, *_given: object, **_named: object) -> None:
        """Raises NotImplementedError."""
        message = "VERLTrainingManager is RewardSQL's own; train with `cua-train sql rl --config`"
        raise NotImplementedError(message)


def default_compute_score(*_given: object, **_named: object) -> NoReturn:
    """Stands for verl's rules of scoring. Raises NotImplementedError."""
    message = "verl is not installed, so its rules of scoring are not known; write your own"
    raise NotImplementedError(message)


def _core_function(name: str) -> Callable[..., Any]:
    """Ours of this name; its module imports torch, which registered files need not."""

    def compute(*given: object, **named: object) -> object:
        module = import_module("producer.algorithms.process_advantages")
        return getattr(module, name)(*given, **named)

    return compute


TRAINING_MANAGER: Final = "src.trainer.training_manager"
EXAMPLE: Final = "examples.RewardSQL.verl"
OF_REWARDSQL: Final[dict[str, dict[str, Any]]] = {
    TRAINING_MANAGER: {
        "VERLTrainingManager": VERLTrainingManager,
        "register_reward_function": registry.register_reward_function,
        "register_reward_manager": registry.register_reward_manager,
        "register_core_algos": registry.register_core_algos,
        "registry": registry.registry,
    },
    f"{EXAMPLE}.custom": {
        "CustomRewardManager": StepAndOutcomeManager,
        "reward_func": sql_reward_function,
    },
    f"{EXAMPLE}.core_algos": {
        name: _core_function(name)
        for name in (
            "compute_grpo_process_advantage_avg_unique",
            "compute_weighted_grpo_advantage",
            "compute_token_wise_advantage",
        )
    },
}
"""Module -> its names."""
OF_VERL: Final[dict[str, dict[str, Any]]] = {
    "verl": {"DataProto": RewardBatch},
    "verl.utils.torch_functional": {},
    "verl.utils.reward_score": {
        "_default_compute_score": default_compute_score,
        "default_compute_score": default_compute_score,
    },
}
"""The same of verl."""
