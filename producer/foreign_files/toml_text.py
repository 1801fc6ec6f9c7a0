"""Writes a configuration as TOML, with a comment after each field."""

import json
import re
from collections.abc import Iterable, Mapping
from textwrap import wrap
from typing import Any, Final

from producer.errors import UsageError

BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
"""Characters that would end a comment or control a terminal."""
SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
r"""A lone JSON surrogate such as `\ud800`, which no encoding can represent."""
COLUMNS: Final = 100


def toml_text(fields: Mapping[str, Any], comments: Mapping[str, str]) -> str:
    """Write one line per field, in the given order; `comments` maps a field to its comment.

    Raises UsageError for a null and for an unpaired surrogate, which TOML cannot represent.
    """
    lines = []
    for name, value in fields.items():
        line = f"{_key(name)} = {_value(value, name)}"
        comment = CONTROL.sub(" ", comments.get(name, ""))
        lines.append(f"{line}  # {comment}" if comment else line)
    return "".join(f"{line}\n" for line in lines)


def toml_comment(sentences: Iterable[str]) -> str:
    """Write each sentence as comment lines."""
    lines = []
    for sentence in sentences:
        text = CONTROL.sub(" ", sentence)
        lines += wrap(
            text,
            COLUMNS,
            initial_indent="# ",
            subsequent_indent="#   ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "".join(f"{line}\n" for line in lines)


def _key(name: str) -> str:
    return name if BARE_KEY.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any, field: str) -> str:
    match value:
        case str():
            if SURROGATE.search(value):
                message = (
                    f"{field} contains an unpaired surrogate, which is no valid Unicode; remove it"
                )
                raise UsageError(message)
            return _text(value)
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case list():
            return f"[{', '.join(_value(item, field) for item in value)}]"
        case dict():
            pairs = (f"{_key(name)} = {_value(item, field)}" for name, item in value.items())
            return f"{{ {', '.join(pairs)} }}"
        case _:
            message = f"{field} contains null, which TOML cannot express; remove it"
            raise UsageError(message)
