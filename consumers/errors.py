"""Errors that reach a user of `cua-project`, each with its exit code.

Their text names what is wrong first, then what to do.
"""

import difflib
import errno
import re
from collections.abc import Collection, Iterable, Sequence
from typing import ClassVar

OUT_OF_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Error numbers of the operating system for a full disk or quota."""


FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
COMMAND = re.compile(r"`?cua-(?:train|project) [^`,;]*`?")
"""A whole command line, whose flags are its own."""


def flags_in(text: str) -> set[str]:
    """The flags that a text names, apart from those of the commands that it shows."""
    return set(FLAG.findall(COMMAND.sub("", text)))


class CuaProjectError(Exception):
    """The command failed: exit 1."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str = "", *, ways: Sequence[str] = ()) -> None:
        """`ways`: what to do, each by itself. One may name a flag, which not every command has."""
        super().__init__(message)
        self.message = message
        self.ways = tuple(ways)

    def __str__(self) -> str:
        """The message with every way."""
        if not self.ways:
            return self.message
        *others, last = self.ways
        what_to_do = f"{', '.join(others)}, or {last}" if others else last
        return f"{self.message}; {what_to_do}"

    def for_command(self, flags: Collection[str]) -> None:
        """Leave out ways that name other flags than these: the command that fails has not them."""
        self.ways = tuple(one for one in self.ways if flags_in(one) <= set(flags))


class SchemaBusyError(CuaProjectError):
    """A migration or rebuild is running, and only one may: exit 1."""


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

    def __init__(self, message: str, *, ways: Sequence[str] = (), is_refusal: bool = False) -> None:
        """`is_refusal`: a server has answered that it does not let us in, and will not later."""
        super().__init__(message, ways=ways)
        self.is_refusal = is_refusal


class LimitExceededError(CuaProjectError):
    """A time limit was exceeded, or a check for alerts found a reason: exit 6."""

    exit_code: ClassVar[int] = 6


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The sentence ` Did you mean 'x'?` for the closest known name, or an empty string."""
    by_folded = {one.casefold(): one for one in known}
    folded = name.casefold()
    close = difflib.get_close_matches(folded, by_folded, n=1) or [
        one
        for one in by_folded
        if len(folded) > 2 and folded in one  # noqa: PLR2004
    ]
    return f" Did you mean {by_folded[close[0]]!r}?" if close else ""
