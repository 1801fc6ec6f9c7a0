"""Names of trainings: folder names, and the keys of ids."""

import unicodedata
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer.training_name import MAX_BYTES, check_training_name, new_training_name
from schemas.ids import training_id

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "name", ["a", "0", "first-try_2.1", "训练-1", "тренировка", "प्रशिक्षण", "تدريب", "é" * 100]
)
def test_letters_and_digits_of_every_script_make_a_name(name: str) -> None:
    assert check_training_name(name) == unicodedata.normalize("NFC", name)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            ".",
            "..",
            ".a",
            "-a",
            "_a",
            "a/b",
            "a\\b",
            "a b",
            "a\nb",
            "a\0",
            "a\u202eb",
            "\u0301a",
        ),
        *("a" * 101, "训" * 81, "a:b", "a*", "a$b", "😀"),
    ],
)
def test_what_is_no_folder_or_cannot_be_typed_is_no_name(name: str) -> None:
    with pytest.raises(ValueError, match=r"empty|starts with|contains|characters"):
        check_training_name(name)


def test_two_ways_to_write_a_letter_are_one_name() -> None:
    assert check_training_name("e\u0301te\u0301") == check_training_name("\u00e9t\u00e9")


def test_an_ascii_name_keeps_its_id() -> None:
    assert training_id(check_training_name("first")) == UUID("fc5b7f7e-b4d0-5def-9ddf-1abfe64ba4f7")


@given(st.text(max_size=120))
def test_a_name_that_is_accepted_is_a_folder_name_and_accepted_again(text: str) -> None:
    try:
        name = check_training_name(text)
    except ValueError:
        return
    assert check_training_name(name) == name
    assert len(name.encode()) <= MAX_BYTES
    assert name not in {".", ".."}
    assert not set(name) & set("/\\\0")


@pytest.mark.parametrize(
    "model_name",
    [
        "demo",
        "Qwen/Qwen3-VL-30B-A3B-Instruct",
        "/a folder/My Policy v2/",
        "策略",
        "..",
        "😀",
        "x" * 300,
    ],
)
def test_a_new_name_is_a_valid_one_and_never_the_same(model_name: str) -> None:
    one, other = new_training_name(model_name, NOW), new_training_name(model_name, NOW)
    assert check_training_name(one) == one
    assert one != other
    assert "-20260301-120000-" in one
