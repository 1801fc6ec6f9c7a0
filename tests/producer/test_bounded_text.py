"""Text of any length becomes text that an event has room for, and says that it was cut."""

from pydantic import JsonValue

from producer.bounded_text import MAX_CHARS, cut, cut_json, cut_optional


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
