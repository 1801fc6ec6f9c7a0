"""A file of the user's that registers rewards or holds core functions, loaded as it is.

Files written for RewardSQL import from its own modules and from verl (`original_modules`). Where
those are not installed, stand-ins with our counterparts answer while the file is loaded, and an
import of anything else of theirs fails by name.
"""

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
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


VERL_NEEDS: Final = ("verl", "ray", "tensordict")
"""Without any of them verl cannot be imported."""
FORM: Final = "give a .py file, or package.module from the folder that holds it"


class _StandIn(ModuleType):
    """A module that is not installed; any other name of it is an error that names the module."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        message = f"{self.__name__} is not installed here, so {name} of it is not known"
        raise AttributeError(message)


def load_user_module(name: str) -> ModuleType:
    """The module at a path ending in .py, or of this dotted name. ValueError with what is wrong.

    What it registers is in `registry` afterwards. A file that was changed is loaded again.
    """
    path = Path(name).expanduser()
    is_file = path.suffix == ".py"
    if is_file and not path.is_file():
        message = f"there is no file {name!r}; {FORM}"
        raise ValueError(message)
    if not is_file and not all(part.isidentifier() for part in name.split(".")):
        message = f"{name!r} is neither a .py file nor a module's name; {FORM}"
        raise ValueError(message)
    try:
        with _stand_ins(path.resolve() if is_file else Path.cwd() / name):
            return _load_file(path.resolve()) if is_file else _import(name)
    except ModuleNotFoundError as error:
        message = f"{name}: there is no module {error.name!r}; {FORM}"
        raise ValueError(message) from error
    except (Exception, SystemExit) as error:
        message = f"{name}: loading it raised {type(error).__name__}: {error}"
        raise ValueError(message) from error


def is_stand_in(module: ModuleType) -> bool:
    """Whether it is ours under a name of RewardSQL's, which is not installed here."""
    return isinstance(module, _StandIn)


def source_sha256(module: ModuleType) -> str:
    """Hex sha256 of the module's file, which a training records. ValueError without one."""
    file = getattr(module, "__file__", None)
    if file is None or Path(file).suffix != ".py":
        message = f"{module.__name__} has no source file, so what it does cannot be recorded"
        raise ValueError(message)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _load_file(path: Path) -> ModuleType:
    name = f"cua_user_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}_{path.stem}"
    spec = spec_from_file_location(name, path)
    assert spec is not None  # noqa: S101  # of a .py file there is one
    assert spec.loader is not None  # noqa: S101
    module = module_from_spec(spec)
    # Dataclasses and pickles of the file look their module up by name.
    sys.modules[name] = module
    with _on_path(str(path.parent)):
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return module


def _import(name: str) -> ModuleType:
    with _on_path(str(Path.cwd())):
        importlib.invalidate_caches()
        return importlib.import_module(name)


@contextmanager
def _on_path(folder: str) -> Iterator[None]:
    """The folder is searched last; it stays, because functions may import when they are called."""
    if folder not in sys.path:
        sys.path.append(folder)
    yield


@contextmanager
def _stand_ins(path: Path) -> Iterator[None]:
    """Inside the context what is missing can be imported; `path` is of the user's module."""
    # The user's copy of RewardSQL comes before ours.
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
    """Stand-ins for what the published files import and this machine has not."""
    wanted = {name: names for name, names in OF_REWARDSQL.items() if not _is_there(name)}
    if not all(_is_installed(name) for name in VERL_NEEDS):
        wanted |= OF_VERL
    found: dict[str, ModuleType] = {}
    for name, names in wanted.items():
        _add_package(found, name)
        vars(found[name]).update(names)
    return found


def _add_package(modules: dict[str, ModuleType], name: str) -> None:
    """A stand-in for the module, and for each package around it."""
    package, _, last = name.rpartition(".")
    if name in modules:
        return
    module = modules[name] = _StandIn(name)
    module.__path__ = []
    if package:
        _add_package(modules, package)
        setattr(modules[package], last, module)


def _is_installed(package: str) -> bool:
    """Whether it is there; a folder of that name alone, as RewardSQL's example has one, is not."""
    spec = find_spec(package)
    return spec is not None and spec.origin is not None


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
