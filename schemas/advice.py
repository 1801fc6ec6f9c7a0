"""What an error advises: steps that the failing command can take, and the name that was meant.

Both sides' errors are `AdvisedError`s; what is wrong comes first.
"""

import difflib
import re
from collections.abc import Collection, Iterable, Sequence

FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
COMMAND = re.compile(r"`?cua-(?:train|project) [^`,;]*`?")
"""A whole command line, whose flags are its own."""


def flags_in(text: str) -> set[str]:
    """The flags that a text names, apart from those of the commands that it shows."""
    return set(FLAG.findall(COMMAND.sub("", text)))


class AdvisedError(Exception):
    """A message, and what to do about it."""

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
        self.ways = tuple(way for way in self.ways if flags_in(way) <= set(flags))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The sentence ` Did you mean 'x'?` for the closest known name, or an empty string."""
    by_folded = {item.casefold(): item for item in known}
    folded = name.casefold()
    close = difflib.get_close_matches(folded, by_folded, n=1) or [
        item
        for item in by_folded
        if len(folded) > 2 and folded in item  # noqa: PLR2004
    ]
    return f" Did you mean {by_folded[close[0]]!r}?" if close else ""
