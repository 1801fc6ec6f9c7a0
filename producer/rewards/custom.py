"""A reward function of the user's, named `package.module:function`: loaded, checked, hashed.

The module is looked for where Python looks, then in the working folder.
"""

import hashlib
import importlib
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import cast

from producer.rewards.outcome import Outcome, Reward
from producer.rewards.user_code import UserCode, finite_number

FORM = "write it as package.module:function"


def custom_reward(name: str, limit_s: float) -> Reward:
    """The function, which raises RewardError with its name. ValueError for none that can be used.

    `limit_s`: of a call.
    """
    module_name, _, function_name = name.partition(":")
    module = _import(module_name)
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


def source_sha256(name: str) -> str:
    """Hex sha256 of the module's file, which the training records. ValueError without one."""
    module = _import(name.partition(":")[0])
    if module.__file__ is None or Path(module.__file__).suffix != ".py":
        message = f"{module.__name__} has no source file, so what it does cannot be recorded"
        raise ValueError(message)
    return hashlib.sha256(Path(module.__file__).read_bytes()).hexdigest()


def _import(name: str) -> ModuleType:
    if not name or not all(part.isidentifier() for part in name.split(".")):
        message = f"{name!r} is no module's name; {FORM}"
        raise ValueError(message)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        message = f"there is no module {error.name!r}; {FORM}, from the folder that holds it"
        raise ValueError(message) from None
    except (Exception, SystemExit) as error:
        message = f"importing {name} raised {type(error).__name__}: {error}"
        raise ValueError(message) from error
