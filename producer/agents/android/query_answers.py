"""What a device query can answer, so that a task which expects anything else is refused."""

import re
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
