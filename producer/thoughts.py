"""Thoughts of a reasoning policy, which are no part of its answer: in one place for every reader.

    <think>I could terminate(success), but Wi-Fi is off.</think>click(31,52)

A thought that is not closed was cut off: all that follows is thought. One that is closed and was
not opened was opened by the prompt: all that stands before is thought. A tag within a literal of
the answer (a text that is typed, a string of SQL) is no tag; each format says what its literals
are, as a regular expression.

The tags are those of vLLM's and SGLang's reasoning parsers and of Open WebUI. Names of XML tags are
told by their words and not listed, since models take whatever name a prompt suggests. Other tags
are part of the answer, also around the beginning of one: an answer may be XML.
"""

from functools import cache
from typing import Final

import regex as re

_WORDS: Final = "think|thought|reason|analysis|reflection|scratch_?pad|monologue|rationale"
"""What the name of a thought's tag has somewhere: `<think>`, `<seed:think>`, `<antThinking>`."""
_NAME: Final = rf"(?!\|)(?:(?=[\w:|-]*?(?:{_WORDS}))[\w:|-]++|(?:cot|plan)(?![\w:|-]))"
_MARK: Final = rf"(?=[\w:-]*?(?:{_WORDS}))[\w:-]++\|>"
_MARK_ENDS: Final = r"(?=/|[\w:-]*?(?<![a-z])end(?![a-z]))/?"
"""`<|end_of_thought|>`, `<|END_THINKING|>`, `<|think:end|>`, `<|/think|>`."""
_ATTRIBUTE: Final = r"""\s++[\w:-]++=(?:"[^"<>]*+"|'[^'<>]*+'|[^\s<>"'=]++)"""
"""Nothing else may stand in a tag: `a <think AND b> 3` is a comparison."""
_PAIRS: Final = {
    r"\[THINK\]": r"\[/THINK\]",
    "◁think▷": "◁/think▷",
    r"\[unused16\]": r"\[unused17\]",
    r"<\|inner_prefix\|>": r"<\|inner_suffix\|>",
    r"<\|channel>": r"<channel\|>",
    r"<\|open\|>think<\|sep\|>": r"<\|close\|>think<\|sep\|>",
}
"""Magistral, Kimi VL, openPangu, Apertus, Gemma 4, Kimi K3."""
_ANSWERS: Final = (
    r"\[BEGIN FINAL RESPONSE\]",
    r"<\|channel\|>\s*+final\b[^<]*+(?:<\|constrain\|>[^<]*+)?+<\|message\|>",
)
"""What begins an answer, after thoughts without a tag: Apriel, gpt-oss."""
_ENDS: Final = (r"\[END FINAL RESPONSE\]", r"<\|return\|>")
"""What ends one; the same models'."""
_SPOKEN: Final = (
    r"\AHere(?: is|'s) my thought process:(?=[\s\S]*?Here(?: is|'s) my response:)",
    r"\Aanalysis(?=[A-Z]|[\s\S]*?assistantfinal)",
)
"""Granite 3.2, and gpt-oss without its special tokens. Any model may write Granite's first
sentence: without its second there is no thought."""
_OPENING_NAME: Final = rf"<(?P<opens>{_NAME})(?:{_ATTRIBUTE})*+\s*+>"
_CLOSING_NAME: Final = rf"</(?P<closes>{_NAME})\s*+>"
_CLOSES: Final = "|".join([rf"(?i:<\|{_MARK_ENDS}{_MARK})", *_PAIRS.values(), *_ANSWERS])
_OPENS: Final = (r"<\|channel\|>\s*+analysis\s*+<\|message\|>", *_PAIRS, *_ENDS, *_SPOKEN)
_EITHER: Final = rf"(?i:<{_NAME}(?:{_ATTRIBUTE})*+\s*+>|</{_NAME}\s*+>|<\|/?{_MARK})"
_OTHERS: Final = "|".join([*_OPENS, *_PAIRS.values(), *_ANSWERS])
TAG: Final = rf"(?=[<\[◁]|\A)(?:{_EITHER}|{_OTHERS})"
BEGIN: Final = r"\A\s*+"
"""Where an answer begins: at the completion's start, thoughts apart."""
_CLOSING: Final = re.compile(rf"(?i:{_CLOSING_NAME})|{_CLOSES}")
_WITHIN: Final = rf"(?i:{_OPENING_NAME}|{_CLOSING_NAME})|{_CLOSES}"
_AFTER_NAME: Final = re.compile(_WITHIN)
_AFTER_MARK: Final = re.compile(rf"{_WITHIN}|<\|end(?:_message)?\|>")
"""`<|end|>` ends answers too (gpt-oss, Phi): it closes only what such a token opened."""
_AFTER_SPOKEN: Final = re.compile(
    rf"{_WITHIN}|Here(?: is|'s) my response:|assistant(?:final|commentary)"
)
_JSON_PIECE: Final = rf'"(?:[^"\\\n]|\\.)*+"(?=\s*+[,:}}\]])|\\.|(?!{TAG})'
JSON_LITERAL: Final = rf'\{{(?=\s*+")(?:{_JSON_PIECE}[\s\S])++'
"""An object of JSON: a tag in one of its strings is text."""
CALL_LITERAL: Final = rf"<tool_call>\s*+(?=\{{)(?:{_JSON_PIECE}(?!</?tool_call>)[\s\S])++"
"""A call as JSON between tags."""
_SQL_QUOTED: Final = r"(?<!\w)'[^'\n]*+'(?!\w)|(?<!\w)\"[^\"\n]*+\"(?!\w)"
_FENCE: Final = r"(?:(?<!`)`{3,}+|^[ \t]*+~{3,}+)"
QUERY_LITERAL: Final = (
    rf"{BEGIN}(?=(?:\(\s*+)*+(?i:SELECT|WITH|VALUES)\b)"
    rf"(?:{_SQL_QUOTED}|(?!{TAG}|{_FENCE})[\s\S])++"
)
"""An answer that is a query: a tag in one of its strings is text."""
BLOCK_LITERAL: Final = (
    rf"{_FENCE}[\w{{}}.:,=+#/-]*+\s(?:{_SQL_QUOTED}|(?!{TAG}|{_FENCE})[\s\S])*+"
    rf"(?:{_FENCE}(?!\w++[ \t]*+\r?\n))?+"
)
"""A fenced block; a fence that names a language begins the next one."""
FINAL_LITERAL: Final = rf"^Final Answer:(?:{_SQL_QUOTED}|(?!{TAG})[^\n])++"
"""The answer of DB Bench, on one line."""
COMPACT_LITERAL: Final = rf"{BEGIN}\w++\([^()]*+\)\s*+\Z"
"""A call that is the whole answer."""


def hide_thoughts(text: str, literals: str | None) -> str:
    """The text with spaces in place of its thoughts, so that every place stays where it is.

    `literals`: what of an answer is no thought although a tag stands in it; None: nothing.
    """
    shown: list[str] = []
    at = begin = before = 0
    is_blank = True
    first, later = _pieces(literals)
    while True:
        piece = first.match(text, at) if is_blank and at == begin else None
        piece = piece or later.search(text, at)
        if piece is None:
            break
        at = piece.end()
        tag = piece["tag"]
        if tag is None:
            continue
        if _CLOSING.fullmatch(tag) is not None:
            before = at
            shown = []
            is_blank = True
        else:
            at = _end(text, at, tag)
            said = text[begin : piece.start()]
            shown += said, " " * (at - piece.start())
            is_blank = is_blank and not said.strip()
        begin = at
    return "".join([" " * before, *shown, text[begin:]])


def _end(text: str, at: int, tag: str) -> int:
    """Where the thought ends that the tag before `at` opens.

    Any closing tag ends it, since policies mix them up, but for one of a pair of another name
    within: XML that the thought quotes.
    """
    name = re.match(_OPENING_NAME, tag, re.IGNORECASE)
    pairs: set[str] = set()
    for found in _after(tag).finditer(text, at):
        within = (found["opens"] or "").lower()
        if within:
            if name is None or not _alike(within, name["opens"].lower()):
                pairs.add(within)
        elif (found["closes"] or "").lower() in pairs:
            pairs.remove(found["closes"].lower())
        else:
            return int(found.end())
    return len(text)


def _alike(name: str, other: str) -> bool:
    return name in other or other in name


def _after(opening: str) -> re.Pattern[str]:
    if "|" in opening:
        return _AFTER_MARK
    return _AFTER_NAME if opening[0] in "<[◁" else _AFTER_SPOKEN


@cache
def _pieces(literals: str | None) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Tags and literals where an answer begins, and anywhere else."""
    literal = "" if literals is None else f"|{literals}"
    tag = f"(?P<tag>{TAG})"
    return (
        re.compile(tag + literal.replace(BEGIN, r"\s*+"), re.MULTILINE),
        re.compile(tag + literal.replace(BEGIN, "(?!)"), re.MULTILINE),
    )
