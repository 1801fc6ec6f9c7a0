"""verl's `core_algos`, imported without the distributed stack that it is shipped with.

verl's packages import ray, tensordict, omegaconf and others (about 400 MB, and a transformers older
than ours) before they reach the algorithms, which use none of them. Those names are answered with
empty stand-ins while verl is imported; every line of `core_algos` itself is verl's.
"""

import importlib
import sys
import warnings
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

STAND_INS = frozenset({"ray", "tensordict", "omegaconf", "codetiming", "orjson"})
"""Packages that verl imports and its algorithms do not use."""


class _StandIn(ModuleType):
    """A module whose every public name is an empty class."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda *_, **__: None})


class _Finder(MetaPathFinder, Loader):
    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        del path, target
        is_ours = fullname.partition(".")[0] in STAND_INS
        return ModuleSpec(fullname, self, is_package=True) if is_ours else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = _StandIn(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module: ModuleType) -> None:
        del module


def load(name: str = "core_algos") -> ModuleType:
    """`verl.trainer.ppo.core_algos`, or its neighbour. ImportError without the extra `oracles`."""
    finder = _Finder()
    sys.meta_path.append(finder)  # last: what is installed wins
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(f"verl.trainer.ppo.{name}")
    finally:
        sys.meta_path.remove(finder)
