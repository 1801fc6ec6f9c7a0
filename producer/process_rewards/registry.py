"""Reward functions, reward managers and core algorithms by name, including a user's own.

    from producer.process_rewards.registry import register_reward_function

    @register_reward_function("sql_reward")
    def sql_reward_function(port, db_id, question_id, solution_str, ground_truth, extra_info):
        return 1.0

    @register_reward_manager("sql_manager")
    class SQLRewardManager:
        def __init__(self, tokenizer, num_examine, config, compute_score=None): ...
        def __call__(self, data):  # a RewardBatch; rewards [B, T]
            ...

A file that imports the decorators from `src.trainer.training_manager`, as RewardSQL's README does,
is loaded unchanged (`user_module`).
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeVar, cast

from producer.process_rewards.row_sets import sql_reward_function
from producer.process_rewards.step_and_outcome import StepAndOutcomeManager
from schemas.advice import did_you_mean

Kind = Literal["reward function", "reward manager", "core algorithms"]
RewardFunction = Callable[..., float]
Component = TypeVar("Component", bound=Callable[..., Any])
FUNCTION_PARAMETERS: Final = (
    "port",
    "db_id",
    "question_id",
    "solution_str",
    "ground_truth",
    "extra_info",
)
TEXT_PARAMETERS: Final = ("input_text", "response_text")
MANAGER_PARAMETERS: Final = ("tokenizer", "num_examine", "config", "compute_score")
DEFAULT_FUNCTION, DEFAULT_MANAGER = "sql_reward", "step_and_outcome"


class Registry:
    """Components by kind and name."""

    def __init__(self) -> None:
        """Start with our own components, also under the names in RewardSQL's train_verl.py."""
        self._components: dict[Kind, dict[str, Any]] = {
            "reward function": dict.fromkeys(
                (DEFAULT_FUNCTION, "sql_reward_func"), sql_reward_function
            ),
            "reward manager": dict.fromkeys(
                (DEFAULT_MANAGER, "sql_reward_manager"), StepAndOutcomeManager
            ),
            "core algorithms": {},
        }

    def register(self, kind: Kind, name: str, component: Component) -> Component:
        """Register a component. A name that is registered again refers to the latest component.

        Raises ValueError for an empty name or a component that cannot be called. Its arguments are
        checked only when it is chosen, because a file may register more than is used.
        """
        if not name.strip():
            message = f"a {kind} needs a name; found {name!r}"
            raise ValueError(message)
        if not callable(component):
            message = f"{kind} {name!r} cannot be called"
            raise ValueError(message)  # noqa: TRY004  # as every other mistake of a user's file
        self._components[kind][name] = component
        return component

    def get(self, kind: Kind, name: str) -> Any:  # noqa: ANN401  # a function or a class
        """The component of this name. Raises ValueError that lists the existing names."""
        known = self._components[kind]
        if name not in known:
            message = (
                f"there is no {kind} {name!r}.{did_you_mean(name, known)} There are"
                f" {', '.join(known) or 'none'}; register it with a decorator of"
                " producer.process_rewards.registry"
            )
            raise ValueError(message)
        return known[name]

    def names(self, kind: Kind, module: str | None = None) -> list[str]:
        """Names of all components of this kind, or of those that the module defines."""
        return [
            name
            for name, component in self._components[kind].items()
            if module in {None, getattr(component, "__module__", None)}
        ]

    def get_reward_function(self, name: str) -> RewardFunction:
        """The reward function of this name, called with `FUNCTION_PARAMETERS` as keywords.

        A function that takes `input_text, response_text, **kwargs` gets the question or prompt of
        `extra_info`, the answer, and the rest. Raises ValueError for an unknown name, and for a
        function with other arguments.
        """
        function = self.get("reward function", name)
        if _takes(function, FUNCTION_PARAMETERS):
            return cast("RewardFunction", function)
        if _takes(function, (*TEXT_PARAMETERS, *FUNCTION_PARAMETERS)):
            return _of_texts(function)
        message = f"reward function {name!r} must take {', '.join(FUNCTION_PARAMETERS)}"
        raise ValueError(message)

    def get_reward_manager(self, name: str) -> Callable[..., Any]:
        """The reward manager class of this name.

        Raises ValueError for an unknown name, and for a class with other arguments.
        """
        manager: Callable[..., Any] = self.get("reward manager", name)
        if not _takes(manager, MANAGER_PARAMETERS):
            message = f"reward manager {name!r} must take {', '.join(MANAGER_PARAMETERS)}"
            raise ValueError(message)
        return manager


registry: Final = Registry()
"""The registry of this process."""


def register_reward_function(name: str) -> Callable[[Component], Component]:
    """Decorator that registers a reward function, which takes `FUNCTION_PARAMETERS`."""
    return lambda function: registry.register("reward function", name, function)


def register_reward_manager(name: str) -> Callable[[Component], Component]:
    """Decorator that registers a reward manager class, created with `MANAGER_PARAMETERS`."""
    return lambda manager: registry.register("reward manager", name, manager)


def register_core_algos(name: str) -> Callable[[Component], Component]:
    """Decorator that registers a class whose static methods are core functions."""
    return lambda algorithms: registry.register("core algorithms", name, algorithms)


def public_names(module: object) -> dict[str, object]:
    """The public names of a module or class, with their values."""
    return {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}


def _takes(component: Callable[..., Any], parameters: Sequence[str]) -> bool:
    """Whether the component can be called with these parameters as keywords."""
    try:
        inspect.signature(component).bind(**dict.fromkeys(parameters))
    except (TypeError, ValueError):
        return False
    return True


def _of_texts(function: Callable[..., float]) -> RewardFunction:
    def reward(**given: Any) -> float:  # noqa: ANN401  # the parameters of the other kind
        extra = given["extra_info"] or {}
        asked = extra.get("prompt", extra.get("question", ""))
        return function(input_text=asked, response_text=given["solution_str"], **given)

    return reward
