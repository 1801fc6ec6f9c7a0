"""Whatever a policy writes is an event of its turn, which every reader reads back as it is."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from producer.bounded_text import MAX_CHARS, MAX_DEPTH, cut_json, is_deeper
from producer.codecs.codec import Codec
from producer.environments.environment import TextObservation
from producer.policy.policy import Completion, SampleRequest
from producer.rollouts.events import turn_taken
from producer.rollouts.requests import Acted, Sampled
from producer.task import Task
from schemas import wire
from schemas.turn import TurnTaken
from tests.producer.codecs.test_thoughts import REAL

NOW = datetime(2026, 11, 26, tzinfo=UTC)
TASK = Task("task", "task", "Do it", None, None, 5, None, None)
LONG = 2 * MAX_CHARS
"""Characters: an event keeps half of them."""
CODECS = [pytest.param(codec, id=codec.name) for codec in REAL]


def event_of(codec: Codec, text: str) -> TurnTaken:
    """The turn of a completion, written to the log's bytes and read back."""
    completion = Completion(text, codec.parse(text, 400, 800), None)
    turn = turn_taken(
        SampleRequest(UUID(int=1), TASK, (), None, 0.0, 10, 0),
        Sampled(completion, NOW, 0.0, 0.0),
        Acted(TextObservation(None), completion.actions, 0.0),
        max_turns=5,
        policy_version=0,
        is_over=False,
        ended_at=NOW,
    )
    value = wire.encode(
        turn, id=UUID(int=2), source="s", time=NOW, subject="rollout/1", epoch=1, sequence=1
    )
    read = wire.decode(value).payload
    assert isinstance(read, TurnTaken)
    assert read.model_dump_json() == turn.model_dump_json()
    return read


def calls_of(inside: str) -> list[str]:
    """Completions of every format that have this JSON somewhere."""
    return [
        inside,
        f'<tool_call>{{"name": "mobile_use", "arguments": {inside}}}</tool_call>',
        *(
            f'<tool_call>{{"name": "{tool}", "arguments": {{"action": "wait", "time": 1,'
            f' "action_type": "screenshot", "x": {inside}}}}}</tool_call>'
            for tool in ("mobile_use", "computer_use", "action")
        ),
        f'<tool_call>{{"name": "finish", "arguments": {{"success": true, "x": {inside}}}}}',
        f'<tool_call>{{"name": {inside}, "arguments": {{}}}}</tool_call>',
        f'{{"type": "computer_call", "action": {{"type": "wait", "x": {inside}}}}}',
        f'{{"type": "computer_call", "action": {{"type": {inside}}}}}',
        f'{{"type": "function_call", "name": "wait", "arguments": {{"x": {inside}}}}}',
        json.dumps(
            {"type": "function_call", "name": "terminate", "arguments": f'{{"status": {inside}}}'}
        ),
        f'{{"type": "execute_sql", "sql": {inside}}}',
        f'{{"type": "terminate", "x": {inside}}}',
    ]


def nested(depth: int, begin: str = "[", end: str = "]", inside: str = "") -> str:
    return begin * depth + inside + end * depth


ODD = [
    *(nested(depth) for depth in (40, 60, 190, 197, 254, 256, 900, 20_000)),
    *(nested(depth, '{"a":', "}", "1") for depth in (60, 197, 254, 256, 900)),
    *("9" * digits for digits in (20, 400, 4_299, 4_301, 20_000)),
    *("NaN", "-Infinity", "1e999", "1e-400", "-0.0"),
    *(
        '"\\ud800"',
        '{"\\udfff": 1}',
        '"\ud800"',
        '"\\u0000"',
        '{"\\u0000": "\\u0000"}',
        '"\\uffff"',
    ),
    '"' + "a" * LONG + '"',
    "[" + "1," * (LONG // 2) + "1]",
]


@pytest.mark.parametrize("codec", CODECS)
def test_odd_json_anywhere_in_a_call_is_an_event(codec: Codec) -> None:
    for text in (text for inside in ODD for text in calls_of(inside)):
        event_of(codec, text)
        for call in codec.parse(text, 400, 800):
            assert (call.action is None) == (call.error_type is not None)


@pytest.mark.parametrize(
    "codec", [codec for codec in REAL if "{" in codec.encode(REAL[codec][1], 9, 9)]
)
def test_json_nested_too_deeply_is_a_parse_error_that_says_so(codec: Codec) -> None:
    for depth in (60, 197, 256):
        texts = calls_of(nested(depth))
        turns = [event_of(codec, text) for text in texts]
        said = [call.error_message or "" for turn in turns for call in turn.actions]
        assert f"the tool call is nested more than {MAX_DEPTH} deep" in said


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("codec", CODECS)
@given(value=JSON, deep=st.integers(0, 300), place=st.integers(0, len(calls_of("")) - 1))
@example(value="\ud800", deep=250, place=1)
def test_any_json_in_a_call_is_an_event(codec: Codec, value: Any, deep: int, place: int) -> None:
    event_of(codec, calls_of(nested(deep, inside=json.dumps(value)))[place])


@pytest.mark.parametrize("codec", CODECS)
@given(
    text=st.text(st.characters() | st.sampled_from("\0\ud800\udfff\x1f"))
    | st.lists(
        st.sampled_from(
            [
                *("<tool_call>", "</tool_call>", "<think>", "</think>", "```sql\n", "```"),
                *("SELECT ", "Action: Answer", "\nFinal Answer:", "type(", ")", "{", '"', "[1]"),
                *("\ud800", "\0"),
            ]
        )
    ).map("".join)
)
def test_any_text_is_an_event(codec: Codec, text: str) -> None:
    event_of(codec, text)


def test_depth_counts_the_lists_and_objects_around_each_other() -> None:
    assert not is_deeper(1, 0)
    assert is_deeper([], 0)
    assert not is_deeper([[1], {"a": 2}], 2)
    assert is_deeper([[1], {"a": []}], 2)
    assert is_deeper(json.loads(nested(900)), 899)


def test_what_is_recorded_of_a_validator_is_bounded_in_depth_too() -> None:
    deep: Any = "inside"
    for _ in range(5_000):
        deep = {"a": deep}
    found = cut_json(deep)
    assert not is_deeper(found, MAX_DEPTH)
    assert "nested more than 50 deep" in json.dumps(found, ensure_ascii=False)
    assert cut_json({"a": "\ud800"}) == {"a": "?"}
