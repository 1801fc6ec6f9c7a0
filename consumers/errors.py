"""Errors that reach a user of `cua-project`, by the exit code they end in.

Their text says what was expected, found and to do.
"""

from typing import ClassVar


class CuaProjectError(Exception):
    """The command failed: exit 1."""

    exit_code: ClassVar[int] = 1


class UsageError(CuaProjectError):
    """The command or its configuration is wrong: exit 2."""

    exit_code: ClassVar[int] = 2


class NotFoundError(CuaProjectError):
    """Something that was named does not exist: exit 3."""

    exit_code: ClassVar[int] = 3


class MismatchError(CuaProjectError):
    """A check found a difference: exit 4."""

    exit_code: ClassVar[int] = 4


class UnreachableError(CuaProjectError):
    """The log or the database cannot be reached: exit 5."""

    exit_code: ClassVar[int] = 5
