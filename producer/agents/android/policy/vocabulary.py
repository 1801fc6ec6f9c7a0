"""How the default policy splits text into tokens, and how it names an element of a screen.

Imports no torch.
"""

import re
from typing import Final

from producer.agents.android.sim.screens.widget import Element
from producer.agents.android.sim.state.apps import APPS

NUM_COORDINATES: Final = 100
"""The numbers 0 to 99 each have a token: hundredths of a screen's width or height."""
WORD_PATTERN: Final = r"[0-9]{1,2}|[A-Za-z]+(?:-[A-Za-z]+)*|[^0-9A-Za-z\s]"
"""Matches a number of up to two digits, a word (including hyphens, as in `wi-fi`) or any other
single character."""
MAX_NAME_WORDS: Final = 3
_APP_LABELS: Final = {f"{app.key}_icon": app.label for app in APPS}
_KINDS: Final = frozenset(
    {"icon", "switch", "row", "tile", "slider", "button", "field", "tab", "use"}
)


def split_words(text: str) -> list[str]:
    """Split `text` into tokens, in order and in lower case."""
    return re.findall(WORD_PATTERN, text.lower())


def element_label(element: Element) -> str:
    """The element's label.

    Unlabelled elements (dock icons) use their app's label, or their own name.
    """
    return element.label or _APP_LABELS.get(element.name) or element.name.replace("_", " ")


def element_name(element: Element) -> str:
    """The first words of the element's label, by which the policy refers to it; may be empty.

    Leaves out numbers, which would run into the coordinates, and kinds such as `icon`: a name is
    found on the screen by its last word, which must tell elements apart.
    """
    words = [
        word
        for word in split_words(element_label(element))
        if word[0].isalpha() and word not in _KINDS
    ]
    return " ".join(words[:MAX_NAME_WORDS])
