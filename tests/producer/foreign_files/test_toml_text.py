"""A configuration as TOML: whatever a text holds is read back."""

import tomllib

import pytest

from producer.errors import UsageError
from producer.foreign_files.toml_text import toml_comment, toml_text


@pytest.mark.parametrize(
    ("value", "message"),
    [(None, "tasks contains null"), ("x\ud800", "tasks contains an unpaired surrogate")],
)
def test_what_toml_cannot_hold_is_refused_with_its_field(value: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        toml_text({"tasks": [value]}, {})


def test_whatever_a_text_holds_is_read_back_and_no_comment_ends_early() -> None:
    odd = "a\"b\\c\n\t\r\x00\x1f\x7f\u2028 é 😀 # [x] = 'y'"
    fields = {
        "a": odd,
        "b": [odd, {"c d": odd, "e": [1, -2.5, True, 1e-30, 1e300]}],
        "f.g": {"h": {}},
        "i": [],
    }
    text = toml_comment([odd, "seed = 1\nseed = 2"]) + toml_text(fields, dict.fromkeys(fields, odd))
    assert tomllib.loads(text) == fields
