"""Answers imports of `tinker_cookbook.recipes.cua_rl` where tinker-cookbook is not installed.

A finder at the end of `sys.meta_path`: every installed package is found before it, so that a real
tinker_cookbook is never shadowed.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

NAME = "tinker_cookbook"
FOLDER = Path(__file__).parent / NAME


class AliasFinder(MetaPathFinder):
    """Finds `tinker_cookbook` in this package; its modules are found in its folder as any are."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002  # as the interface
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """None for any other name."""
        if fullname != NAME:
            return None
        file = FOLDER / "__init__.py"
        return spec_from_file_location(fullname, file, submodule_search_locations=[str(FOLDER)])


def install() -> None:
    """Append the finder. Idempotent."""
    if not any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        sys.meta_path.append(AliasFinder())
