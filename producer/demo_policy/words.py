"""How the built policy cuts text: numbers of two digits, words (hyphens inside stay.

`wi-fi`) and marks, all lowered. It knows no torch.
"""

import re
from typing import Final

NUM_NUMBERS: Final = 100
"""0 to 99 are tokens of their own: hundredths of a screen's width and height."""
PIECE: Final = r"[0-9]{1,2}|[A-Za-z]+(?:-[A-Za-z]+)*|[^0-9A-Za-z\s]"


def pieces(text: str) -> list[str]:
    """The words, numbers and marks of `text` in order, as the tokenizer cuts and spells them."""
    return re.findall(PIECE, text.lower())
