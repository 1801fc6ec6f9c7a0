"""Thoughts of a reasoning policy, which are no part of its answer: in one place for every reader.

    <think>I could terminate(success), but Wi-Fi is off.</think>click(31,52)

A thought that is not closed was cut off: all that follows is thought. One that is closed and was
not opened was opened by the prompt: all that stands before is thought. A tag within a literal of
the answer (a text that is typed, a string of SQL) is no tag; each format says what its literals
are, as a regular expression.
"""

import re
from functools import cache
from typing import Final

_NAMES: Final = (
    *("think", "thinking", "thought", "thoughts", "reasoning"),
    *("analysis", "reflection", "scratchpad"),
    *("seed:think", "longcat_think"),
)
_OTHERS: Final = {
    r"\[THINK\]": r"\[/THINK\]",
    "◁think▷": "◁/think▷",
    r"<\|begin_of_thought\|>": r"<\|end_of_thought\|>",
    r"<\|START_THINKING\|>": r"<\|END_THINKING\|>",
}
"""Opening and closing tags of Magistral, Kimi, OpenThinker and Command A."""
_ATTRIBUTE: Final = r"""\s++[\w:-]++=(?:"[^"<>]*+"|'[^'<>]*+'|[^\s<>"'=]++)"""
"""Nothing else may stand in a tag: `a <think AND b> 3` is a comparison."""
_CLOSES: Final = "|".join([rf"(?i:</(?:{'|'.join(_NAMES)})\s*+>)", *_OTHERS.values()])
_OPENS: Final = "|".join([rf"(?i:<(?:{'|'.join(_NAMES)})(?:{_ATTRIBUTE})*+\s*+>)", *_OTHERS])
TAG: Final = rf"(?:{_OPENS}|{_CLOSES})"
_ENDED: Final = (
    *(f"(?<=(?i:</{name}>))" for name in _NAMES),
    *map("(?<={})".format, _OTHERS.values()),
)
BEGIN: Final = rf"(?:\A|{'|'.join(_ENDED)})\s*+"
"""Where an answer begins: at the completion's start, and after a thought."""
_CLOSING: Final = re.compile(_CLOSES)
_JSON_PIECE: Final = rf'"(?:[^"\\\n]|\\.)*+"(?=\s*+[,:}}\]])|\\.|(?!{TAG})'
JSON_LITERAL: Final = rf'\{{(?=\s*+")(?:{_JSON_PIECE}[\s\S])++'
"""An object of JSON: a tag in one of its strings is text."""
CALL_LITERAL: Final = rf"<tool_call>\s*+(?=\{{)(?:{_JSON_PIECE}(?!</?tool_call>)[\s\S])++"
"""A call as JSON between tags."""
_SQL_QUOTED: Final = r"(?<!\w)'[^'\n]*+'(?!\w)|(?<!\w)\"[^\"\n]*+\"(?!\w)"
QUERY_LITERAL: Final = (
    rf"{BEGIN}(?=(?:\(\s*+)*+(?i:SELECT|WITH|VALUES)\b)"
    rf"(?:{_SQL_QUOTED}|(?!{TAG}|```)[\s\S])++"
)
"""An answer that is a query: a tag in one of its strings is text."""
BLOCK_LITERAL: Final = rf"```\w*+\s(?:{_SQL_QUOTED}|(?!{TAG}|```)[\s\S])*+(?:```)?+"
"""A fenced block."""
FINAL_LITERAL: Final = rf"^Final Answer:(?:{_SQL_QUOTED}|(?!{TAG})[^\n])++"
"""The answer of DB Bench, on one line."""
COMPACT_LITERAL: Final = rf"{BEGIN}\w++\([^()]*+\)\s*+\Z"
"""A call that is the whole answer."""


def hide_thoughts(text: str, literals: str | None) -> str:
    """The text with spaces in place of its thoughts, so that every place stays where it is.

    `literals`: what of an answer is no thought although a tag stands in it; None: nothing.
    """
    shown: list[str] = []
    at = begin = 0
    pieces = _pieces(literals)
    while (piece := pieces.search(text, at)) is not None:
        at = piece.end()
        tag = piece["tag"]
        if tag is None:
            continue
        if _CLOSING.fullmatch(tag) is not None:
            shown = [" " * at]
        else:
            closing = _CLOSING.search(text, at)
            at = len(text) if closing is None else closing.end()
            shown += text[begin : piece.start()], " " * (at - piece.start())
        begin = at
    return "".join([*shown, text[begin:]]) if shown else text


@cache
def _pieces(literals: str | None) -> re.Pattern[str]:
    literal = "" if literals is None else f"|{literals}"
    return re.compile(f"(?P<tag>{TAG}){literal}", re.MULTILINE)
