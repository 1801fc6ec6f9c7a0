"""Errors that reach a user of `cua-project`, each with its exit code.

Their text names what is wrong first, then what to do.
"""

from collections.abc import Sequence
from typing import ClassVar

from schemas.advice import AdvisedError


class CuaProjectError(AdvisedError):
    """The command failed: exit 1."""

    exit_code: ClassVar[int] = 1


class SchemaBusyError(CuaProjectError):
    """A migration or rebuild is running, and only one may: exit 1."""


class UsageError(CuaProjectError):
    """The command or its configuration is wrong, or a package is missing: exit 2."""

    exit_code: ClassVar[int] = 2


class NotFoundError(CuaProjectError):
    """Something named on the command line does not exist: exit 3."""

    exit_code: ClassVar[int] = 3


class MismatchError(CuaProjectError):
    """A check found a difference: exit 4."""

    exit_code: ClassVar[int] = 4


class UnreachableError(CuaProjectError):
    """The log or the database cannot be reached: exit 5."""

    exit_code: ClassVar[int] = 5

    def __init__(self, message: str, *, ways: Sequence[str] = (), is_refusal: bool = False) -> None:
        """`is_refusal`: a server has answered that it does not let us in, and will not later."""
        super().__init__(message, ways=ways)
        self.is_refusal = is_refusal


class LimitExceededError(CuaProjectError):
    """A time limit was exceeded, or a check for alerts found a reason: exit 6."""

    exit_code: ClassVar[int] = 6
