"""Text of agents and data sets as a page shows it: bounded, with invisible characters named.

Whoever wrote it may be hostile or confused: a character that turns the text around would make a
page say something else than the tables have.
"""

import unicodedata

from consumers.monitor.html import Node, tag

LONGEST = 20_000
"""Characters of a text; the tables have all of it."""
LONGEST_NAME = 200
"""Characters of a name, a value in a cell, a reason."""
UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})
"""Unicode categories of characters that are not seen, or that turn the text around."""
JOINERS = frozenset({"\u200c", "\u200d"})
"""Of emoji and of Persian and Indic words: they belong to what is written."""


def excerpt(text: str, longest: int = LONGEST) -> list[Node]:
    """The beginning of a text, and how much is left out."""
    rest = len(text) - longest
    nodes = seen(text[:longest], kept=JOINERS)
    if rest > 0:
        nodes.append(tag("span", f" … {rest:,} characters more", class_="faint"))
    return nodes


def name(text: str) -> list[Node]:
    """A name, a value or a reason: one line's worth of it."""
    return excerpt(text, LONGEST_NAME)


def seen(text: str, kept: frozenset[str] = frozenset()) -> list[Node]:
    """The text with a name in place of every invisible character but `kept`."""
    if text.isprintable():
        return [text]
    nodes: list[Node] = []
    begun = 0
    for place, character in enumerate(text):
        if character in "\n\t" or character in kept:
            continue
        if unicodedata.category(character) in UNSEEN:
            nodes.append(text[begun:place])
            nodes.append(tag("span", f"U+{ord(character):04X}", class_="unseen"))
            begun = place + 1
    nodes.append(text[begun:])
    return nodes
