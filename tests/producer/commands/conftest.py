"""The command line as a fixture."""

from tests.support.cua_train import cua_train

__all__ = ["cua_train"]
