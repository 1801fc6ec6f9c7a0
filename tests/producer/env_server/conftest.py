"""The command line in this process."""

from tests.support.cua_train import cua_train

__all__ = ["cua_train"]
