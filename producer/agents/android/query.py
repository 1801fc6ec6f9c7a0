"""What a device query is: the shell command to run, how its output is read, what it can answer.

An answer is text (`True`, `255`, `com.android.chrome`), so that tasks in files can state what they
expect; what a query can never answer is refused.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

PACKAGE_PATTERN = r"[a-z]\w*(?:\.\w+)+"
"""Of an app's package name, whatever its case."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The values that a query can answer."""

    description: str
    """For messages and documents: `True or False`."""
    pattern: str
    """Matches every such value whole, whatever its case, because answers are compared so."""
    highest: int | None = None
    """Largest of whole numbers; None: no limit, or they are no numbers."""

    def allows(self, expected: str) -> bool:
        """Whether a query with this answer can ever give `expected`."""
        text = expected.strip()
        if re.fullmatch(self.pattern, text, re.IGNORECASE) is None:
            return False
        return self.highest is None or int(text) <= self.highest


def whole_number(highest: int | None = None, unit: str = "") -> Answer:
    """A whole number from 0, in the one way that a device writes it."""
    limits = "from 0" if highest is None else f"from 0 to {highest}"
    return Answer(f"a whole number {limits}{unit}", "0|[1-9][0-9]{0,17}", highest)


TRUE_OR_FALSE = Answer("True or False", "true|false")
PACKAGE = Answer("the package name of an app, such as com.android.chrome", PACKAGE_PATTERN)
TEXT = Answer("a text that is not empty", r"(?s:.*\S.*)")
HOST = Answer("a host name without www., such as example.com", r"(?!www\.)[\w-]+(?:\.[\w-]+)*")
LANGUAGE = Answer("a language code without a region, such as en", "[a-z]{2,3}")


def one_of(*values: str) -> Answer:
    """One of these texts."""
    return Answer(" or ".join(values), "|".join(map(re.escape, values)))


Reader = Callable[[str], str]
"""A command's output -> the answer; empty if it cannot be read."""


@dataclass(frozen=True, slots=True)
class Query:
    """How to get one answer from a device."""

    command: str
    """For the device's shell."""
    read: Reader
    answer: Answer = TRUE_OR_FALSE
    """What it can answer."""


@dataclass(frozen=True, slots=True)
class QueryFamily:
    """Queries whose name ends in a parameter."""

    make: Callable[[str], Query]
    """Parameter -> the query."""
    parameter: str
    """What the parameter is called in messages and documents."""
    pattern: str
    """Matches every parameter whole."""
