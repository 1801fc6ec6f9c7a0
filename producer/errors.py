"""Errors that `cua-train` shows to its user, each with its exit code.

Their messages name what is wrong, then what to do.
"""

from typing import ClassVar

from schemas.advice import AdvisedError


class CuaTrainError(AdvisedError):
    """The run failed. Exit 1."""

    exit_code: ClassVar[int] = 1


class UsageError(CuaTrainError):
    """The command line or the configuration is wrong, or a package is missing. Exit 2."""

    exit_code: ClassVar[int] = 2


class NotFoundError(CuaTrainError):
    """Something the user named does not exist. Exit 3."""

    exit_code: ClassVar[int] = 3


class MismatchError(CuaTrainError):
    """A check failed. Exit 4."""

    exit_code: ClassVar[int] = 4


class UnreachableError(CuaTrainError):
    """A service (the log, a device provider) cannot be reached. Exit 5."""

    exit_code: ClassVar[int] = 5


class TakenOverError(CuaTrainError):
    """Another process continues what this one was doing. Exit 1."""


class LogBrokenError(CuaTrainError):
    """The log cannot be written (disk full): nothing more is appended and the run stops. Exit 1."""


class EventTooLargeError(CuaTrainError):
    """An event is larger than the log takes; it is not appended. Exit 1."""


class StopRequestedError(Exception):
    """Stop requested (Ctrl-C, SIGTERM), or another process took the training over. Exit 130."""
