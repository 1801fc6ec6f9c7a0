"""A completion's tokens, step by step."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer.process_rewards.cocte import Step, split_steps, starts_of, token_spans

COMPLETION = "Well: ```sql\nWITH a AS (SELECT 1)\n\nSELECT * FROM a\n```"


def test_every_token_belongs_to_the_step_of_its_first_character() -> None:
    tokens = [
        "Well",
        ": ```sql\n",
        "WITH a",
        " AS (SELECT 1)",
        "\n\nSEL",
        "ECT * FROM a",
        "\n",
        "```",
    ]
    assert "".join(tokens) == COMPLETION
    # The token that straddles the blank line began in the first step.
    assert token_spans(split_steps(COMPLETION), starts_of(tokens)) == ((0, 5), (5, 8))


def test_special_tokens_belong_where_the_token_before_does() -> None:
    steps = split_steps("WITH a AS (SELECT 1)\n\nSELECT 2")
    assert token_spans(steps, [0, 4, 22, 0, 29, 0]) == ((0, 2), (2, 6))


def test_a_step_inside_one_token_has_none() -> None:
    steps = split_steps("SELECT 1\n\nx\n\ny")
    assert token_spans(steps, [0, 8, 13]) == ((0, 2), (2, 2), (2, 3))
    assert token_spans(steps, []) == ((0, 0), (0, 0), (0, 0))


def test_no_step_is_no_span() -> None:
    with pytest.raises(ValueError, match="at least one step"):
        token_spans([], [0])


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.lists(st.text(max_size=4)))
def test_spans_cover_every_token_once(lengths: list[int], texts: list[str]) -> None:
    steps, at = [], 0
    for length in lengths:
        steps.append(Step("x" * length, at, at + length))
        at += length + 2
    spans = token_spans(steps, starts_of(texts))
    assert spans[0].first == 0
    assert spans[-1].last == len(texts)
    assert all(before.last == after.first for before, after in pairwise(spans))
    assert all(span.first <= span.last for span in spans)
