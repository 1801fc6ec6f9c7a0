"""Loads, unchanged, a user's file that registers rewards or holds core functions.

Files written for RewardSQL import from its own modules (`OF_REWARDSQL`) and from verl (`OF_VERL`).
Where those are not installed, stand-ins with our counterparts replace them while the file is
loaded; importing anything else from them fails with an error that names it.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NoReturn

from producer.process_rewards import registry
from producer.process_rewards.row_sets import sql_reward_function
from producer.process_rewards.step_and_outcome import RewardBatch, StepAndOutcomeManager
from producer.rewards.user_module import load_module


class VERLTrainingManager:
    """Stands in for RewardSQL's trainer, which a file may name but which does not train here."""

    def __init__(self, *_given: object, **_named: object) -> None:
        """Raise NotImplementedError."""
        message = "VERLTrainingManager is RewardSQL's own; train with `cua-train sql rl --config`"
        raise NotImplementedError(message)


def default_compute_score(*_given: object, **_named: object) -> NoReturn:
    """Stands in for verl's scoring rules. Raises NotImplementedError."""
    message = "verl is not installed, so its rules of scoring are not known; write your own"
    raise NotImplementedError(message)


def _core_function(name: str) -> Callable[..., Any]:
    """Our function of this name. Its module, which imports torch, is imported on the first call."""

    def compute(*given: object, **named: object) -> object:
        module = import_module("producer.algorithms.token_advantages")
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
"""Maps a module of RewardSQL to the names it provides."""
OF_VERL: Final[dict[str, dict[str, Any]]] = {
    "verl": {"DataProto": RewardBatch},
    "verl.utils.torch_functional": {},
    "verl.utils.reward_score": {
        "_default_compute_score": default_compute_score,
        "default_compute_score": default_compute_score,
    },
}
"""Maps a module of verl to the names it provides."""


VERL_NEEDS: Final = ("verl", "ray", "tensordict")
"""verl cannot be imported if any of these is missing."""


class _StandIn(ModuleType):
    """A module that is not installed."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []


def load_user_module(name: str) -> ModuleType:
    """Load the user's module, with stand-ins for missing imports. Raises ValueError if it fails.

    Whatever it registers is in `registry` afterwards.
    """
    path = Path(name).expanduser()
    with _stand_ins(path.resolve() if path.suffix == ".py" else Path.cwd() / name):
        return load_module(name)


def is_stand_in(module: ModuleType) -> bool:
    """Whether the module is our stand-in for a module of RewardSQL that is not installed."""
    return isinstance(module, _StandIn)


@contextmanager
def _stand_ins(path: Path) -> Iterator[None]:
    """Make missing modules importable inside the context. `path` is that of the user's module."""
    # The user's copy of RewardSQL takes precedence over ours.
    for folder in path.parents:
        if (folder / "examples/RewardSQL").is_dir():
            sys.path.append(str(folder))
            break
    added = {name: module for name, module in _missing().items() if name not in sys.modules}
    sys.modules.update(added)
    try:
        yield
    finally:
        for name in added:
            sys.modules.pop(name, None)


def _missing() -> dict[str, ModuleType]:
    """Stand-ins for modules that the published files import and that are not installed."""
    wanted = {name: names for name, names in OF_REWARDSQL.items() if not _is_there(name)}
    if not all(_is_installed(name) for name in VERL_NEEDS):
        wanted |= OF_VERL
    found: dict[str, ModuleType] = {}
    for name, names in wanted.items():
        package, at = "", ""
        for part in name.split("."):
            package, at = at, f"{at}.{part}".lstrip(".")
            module = found.setdefault(at, _StandIn(at))
            if package:
                setattr(found[package], part, module)
        vars(found[name]).update(names)
    return found


def _is_installed(package: str) -> bool:
    """Whether a package is installed.

    A bare folder of that name, as in RewardSQL's example, is not.
    """
    spec = find_spec(package)
    return spec is not None and spec.origin is not None


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
