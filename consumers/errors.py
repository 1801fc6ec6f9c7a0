"""Errors that reach a user of `cua-project`, each with its exit code.

Their text names what is wrong first, then what to do.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar


class CuaProjectError(Exception):
    """The command failed: exit 1."""

    exit_code: ClassVar[int] = 1


class UsageError(CuaProjectError):
    """The command or its configuration is wrong: exit 2."""

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


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean "x"?` for the end of a message; empty when nothing known is similar."""
    similar = get_close_matches(name, known, n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(similar)}?" if similar else ""
