"""Text of any length becomes text that an event has room for, and says that it was cut."""

import gc
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from producer.bounded_text import MAX_CHARS, cut, cut_json, cut_optional, is_longer
from schemas.actions import Action
from schemas.turn import TakenAction
from tests.producer.codecs.test_codecs import SOME_ACTION


def test_a_short_text_stays_as_it_is() -> None:
    assert cut("x" * MAX_CHARS) == "x" * MAX_CHARS
    assert cut_optional(None) is None
    value: JsonValue = {"commands": ["a", "b"], "n": 1, "none": None}
    assert cut_json(value) == value


def test_a_long_text_says_how_much_of_it_is_missing() -> None:
    assert cut("abcdef", 4) == "abcd … [cut: 2 more characters]"
    assert cut_optional("abcdef", 4) == cut("abcdef", 4)
    assert cut_json({"a": ["abcdef"]}, 10) == {"a": ["abcdef"]}


def test_many_short_texts_are_cut_as_a_whole() -> None:
    found = cut_json(["short"] * MAX_CHARS)
    assert isinstance(found, str)
    assert len(found) < MAX_CHARS + 100
    assert "[cut: " in found


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=30,
    ),
    st.integers(0, 200),
)
def test_what_is_surely_longer_is_longer(value: JsonValue, max_chars: int) -> None:
    if is_longer(value, max_chars):
        assert len(str(value)) > max_chars


@pytest.mark.parametrize(
    ("value", "is_found"),
    [
        ("ab", False),
        ("abc", True),
        (["a", "b"], True),
        ({"ab": 1}, True),
        ([[]], False),
        ({}, False),
    ],
)
def test_a_value_is_measured_with_its_parts(value: JsonValue, *, is_found: bool) -> None:
    assert is_longer(value, 2) is is_found


@pytest.mark.parametrize(
    "argument",
    [
        "x" * 80_000_000,
        "\n" * 80_000_000,
        ["y" * 1000] * 80_000,
        {f"key {number}": "z" * 1000 for number in range(80_000)},
        [1] * 5_000_000,
    ],
    ids=["a text", "line breaks", "texts", "named texts", "numbers"],
)
def test_an_absurd_argument_is_cut_without_being_read(argument: JsonValue) -> None:
    gc.collect()
    gc.disable()  # it would look at everything that other tests have left
    try:
        began_s = time.thread_time()
        found = cut_json(argument, 1000)
        assert is_longer({"text": argument}, 16_384)
        took_s = time.thread_time() - began_s
    finally:
        gc.enable()
    assert took_s < 0.2  # 5 ms; its text alone would take 300 and more
    assert isinstance(found, str)
    assert 1000 < len(found) < 1100
    assert "[cut: " in found


@given(SOME_ACTION)
def test_every_action_is_measured_whatever_its_fields_are_called(action: Action) -> None:
    call = TakenAction(tool_name=action.type, tool_args={}, action=action)
    assert is_longer(call, 0)
    assert not is_longer(call, len(str(call)) * 4)
