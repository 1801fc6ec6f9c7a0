"""What a device query is: the shell command to run, how its output is read, what it can answer.

An answer is text (`True`, `255`, `com.android.chrome`), so that tasks in files can state what they
expect. Expected answers that a query can never give are rejected.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

PACKAGE_PATTERN = r"[a-z]\w*(?:\.\w+)+"
"""Matches an app's package name; always used with re.IGNORECASE."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The values that a query can answer."""

    description: str
    """Description for messages and documents: `True or False`."""
    pattern: str
    """Regular expression that matches each possible value in full. Case is ignored, as it is when
    answers are compared."""
    highest: int | None = None
    """Largest allowed whole number; None if there is no limit or the values are not numbers."""

    def allows(self, expected: str) -> bool:
        """Whether a query with this answer can ever give `expected`."""
        text = expected.strip()
        if re.fullmatch(self.pattern, text, re.IGNORECASE) is None:
            return False
        return self.highest is None or int(text) <= self.highest


def whole_number(highest: int | None = None, unit: str = "") -> Answer:
    """A whole number from 0 up to `highest`, without leading zeros, as devices write it."""
    limits = "from 0" if highest is None else f"from 0 to {highest}"
    return Answer(f"a whole number {limits}{unit}", "0|[1-9][0-9]{0,17}", highest)


TRUE_OR_FALSE = Answer("True or False", "true|false")
PACKAGE = Answer("the package name of an app, such as com.android.chrome", PACKAGE_PATTERN)
TEXT = Answer("a text that is not empty", r"(?s:.*\S.*)")
HOST = Answer("a host name without www., such as example.com", r"(?!www\.)[\w-]+(?:\.[\w-]+)*")
LANGUAGE = Answer("a language code without a region, such as en", "[a-z]{2,3}")


def one_of(*values: str) -> Answer:
    """Exactly one of these texts."""
    return Answer(" or ".join(values), "|".join(map(re.escape, values)))


Reader = Callable[[str], str]
"""Maps a command's output to the answer, which is empty if the output cannot be read."""


@dataclass(frozen=True, slots=True)
class Query:
    """How to get one answer from a device."""

    command: str
    """Command for the device's shell."""
    read: Reader
    answer: Answer = TRUE_OR_FALSE
    """The values that the query can answer."""


@dataclass(frozen=True, slots=True)
class QueryFamily:
    """Queries whose name ends in a parameter."""

    make: Callable[[str], Query]
    """Makes the query for a parameter."""
    parameter: str
    """The parameter's placeholder in messages and documents."""
    pattern: str
    """Regular expression that matches each valid parameter in full."""
