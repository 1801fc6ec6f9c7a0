"""Loads a user's code: a module, or a reward function in one."""

import hashlib
import importlib
import inspect
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final, cast

from producer.rewards.named import Outcome, Reward
from producer.rewards.user_code import UserCode, finite_number

FORM: Final = "give a .py file, or package.module from the folder that holds it"
FUNCTION: Final = (
    "write package.module:function (from the folder that holds it) or file.py:function"
)


def load_module(name: str, form: str = FORM) -> ModuleType:
    """Load a module from a path ending in .py or by its dotted name.

    Raises ValueError if it does not load. A changed file is loaded again; a dotted name is imported
    once. `form` ends the messages: it says what to give instead.
    """
    path = Path(name).expanduser()
    is_file = path.suffix == ".py"
    if is_file and not path.is_file():
        message = f"there is no file {name!r}; {form}"
        raise ValueError(message)
    if not is_file and not all(part.isidentifier() for part in name.split(".")):
        message = f"{name!r} is neither a .py file nor a module's name; {form}"
        raise ValueError(message)
    try:
        return _load_file(path.resolve()) if is_file else _import(name)
    except ModuleNotFoundError as error:
        message = f"{name}: there is no module {error.name!r}; {form}"
        raise ValueError(message) from error
    except (Exception, SystemExit) as error:
        message = f"{name}: loading it raised {type(error).__name__}: {error}"
        raise ValueError(message) from error


def custom_reward(name: str, limit_s: float) -> Reward:
    """The reward function of this name, which raises RewardError. Raises ValueError if unusable.

    `limit_s` is the time limit of one call.
    """
    module_name, _, function_name = name.partition(":")
    module = load_module(module_name, FUNCTION)
    function = getattr(module, function_name, None)
    if function is None:
        own = [
            key
            for key, value in vars(module).items()
            if inspect.isfunction(value) and value.__module__ == module.__name__
        ]
        message = f"{module_name} has no {function_name!r}; its functions are {', '.join(own)}"
        raise ValueError(message)
    if not callable(function) or inspect.iscoroutinefunction(function):
        message = f"{name} is no function that can be called with an Outcome"
        raise ValueError(message)
    try:
        inspect.signature(function).bind(object())
    except TypeError:
        message = f"{name} must take one argument, the episode's Outcome"
        raise ValueError(message) from None
    checked = cast("Reward", function)
    code = UserCode(f"the reward {name}", limit_s)

    def reward(outcome: Outcome) -> float:
        return finite_number(code.call(lambda: checked(outcome)), f"the reward {name}")

    return reward


def source_sha256(module: ModuleType) -> str:
    """Hex sha256 of the module's file, which a training records.

    Raises ValueError without a file.
    """
    file = getattr(module, "__file__", None)
    if file is None or Path(file).suffix != ".py":
        message = f"{module.__name__} has no source file, so what it does cannot be recorded"
        raise ValueError(message)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _load_file(path: Path) -> ModuleType:
    name = f"cua_user_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}_{path.stem}"
    spec = spec_from_file_location(name, path)
    assert spec is not None  # noqa: S101  # a .py file always has a spec
    assert spec.loader is not None  # noqa: S101
    module = module_from_spec(spec)
    # Dataclasses and pickles in the file look their module up by name.
    sys.modules[name] = module
    _add_to_path(path.parent)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _import(name: str) -> ModuleType:
    _add_to_path(Path.cwd())
    importlib.invalidate_caches()
    return importlib.import_module(name)


def _add_to_path(folder: Path) -> None:
    """Append the folder to sys.path. It stays there, because functions may import when called."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
