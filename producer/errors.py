"""Errors that reach a user of `cua-train`, by the exit code they end in.

Their text says what was expected, found and to do.
"""

from typing import ClassVar


class CuaTrainError(Exception):
    """The run failed: exit 1."""

    exit_code: ClassVar[int] = 1


class UsageError(CuaTrainError):
    """The command or its configuration is wrong: exit 2."""

    exit_code: ClassVar[int] = 2


class NotFoundError(CuaTrainError):
    """Something that was named does not exist: exit 3."""

    exit_code: ClassVar[int] = 3


class MismatchError(CuaTrainError):
    """A check found what must not be: exit 4."""

    exit_code: ClassVar[int] = 4


class UnreachableError(CuaTrainError):
    """A service (the log, a device provider) cannot be reached: exit 5."""

    exit_code: ClassVar[int] = 5


class LogBrokenError(CuaTrainError):
    """The log can no longer be written (full disk): nothing more is appended, the run stops.

    Exit 1.
    """


class StopRequestedError(Exception):
    """The run was asked to stop (Ctrl-C, SIGTERM), or another process has taken the training over.

    Exit 130.
    """
