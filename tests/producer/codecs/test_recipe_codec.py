"""The seed recipe's tools: what only they have. The contract of all codecs is tested elsewhere."""

import json
from typing import Any

import pytest

from producer.codecs.codec import CannotEncodeError
from producer.codecs.recipe import RecipeCodec
from schemas import actions
from schemas.actions import Action

WIDTH, HEIGHT = 360, 640
CODEC = RecipeCodec()


def call(tool: str, **arguments: Any) -> str:
    return f"<tool_call>{json.dumps({'name': tool, 'arguments': arguments})}</tool_call>"


def parse(text: str) -> list[Action | None]:
    return [item.action for item in CODEC.parse(text, WIDTH, HEIGHT)]


def error(text: str) -> tuple[str | None, str | None]:
    (one,) = CODEC.parse(text, WIDTH, HEIGHT)
    return one.error_type, one.error_message


def test_an_element_in_words_is_recorded_and_its_coordinates_are_the_place() -> None:
    target = {"element": "the Settings icon", "coordinates": [500, 250]}
    (one,) = CODEC.parse(call("action", action_type="click", target=target), WIDTH, HEIGHT)
    assert one.action == actions.Click(x=180, y=160)
    assert one.tool_args["target"] == target
    by_name = {"coordinates": {"x": 500, "y": 250}}
    assert parse(call("action", action_type="click", option="double", target=by_name)) == [
        actions.DoubleClick(x=180, y=160)
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            {"action_type": "click", "option": "right", "target": {"coordinates": [0, 1000]}},
            actions.Click(x=0, y=639, button="right"),
        ),
        (
            {"action_type": "long_press", "target": {"coordinates": [500, 500]}, "duration": 2},
            actions.LongPress(x=180, y=320, duration_s=2.0),
        ),
        (
            {
                "action_type": "drag",
                "start_target": {"coordinates": [0, 0]},
                "end_target": {"coordinates": [500, 500]},
            },
            actions.Drag(path=((0, 0), (180, 320))),
        ),
        (
            {
                "action_type": "scroll",
                "target": {"coordinates": [500, 500]},
                "direction": "up",
                "distance": 300,
            },
            actions.Scroll(x=180, y=320, scroll_y=-300),
        ),
        ({"action_type": "type", "text": "hello"}, actions.Type(text="hello")),
        ({"action_type": "key", "keys": ["ctrl", "a"]}, actions.KeyPress(keys=("ctrl", "a"))),
        ({"action_type": "button", "button": "home"}, actions.SystemButton(button="home")),
    ],
)
def test_an_action_type_is_an_action(arguments: dict[str, Any], expected: Action) -> None:
    assert parse(call("action", **arguments)) == [expected]


def test_a_finish_with_a_message_answers_and_ends() -> None:
    assert parse(call("finish", success=True)) == [actions.Terminate(status="success")]
    assert parse(call("finish", success=False, result_message="no such app")) == [
        actions.Answer(text="no such app"),
        actions.Terminate(status="failure"),
    ]
    assert parse(call("wait", duration=3)) == [actions.Wait(duration_s=3)]


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("I will click now", "parse", "no <tool_call>"),
        (call("click", x=3), "tool_name", "unknown tool 'click'; use action, wait, finish"),
        (call("action", action_type="hover"), "tool_name", "unknown action_type 'hover'"),
        (call("action", action_type="click"), "tool_arg", "target must be"),
        (
            call("action", action_type="click", target={"coordinates": [1001, 3]}),
            "tool_arg",
            "numbers from 0 to 1000",
        ),
        (call("finish", success="yes"), "tool_arg", "success must be true or false"),
        (call("wait", duration="soon"), "tool_arg", "duration_s"),
        (
            call(
                "action",
                action_type="scroll",
                target={"coordinates": [1, 1]},
                direction="up",
                distance=-5,
            ),
            "tool_arg",
            "distance must be 0 to 100000",
        ),
    ],
)
def test_a_call_that_says_no_action_is_named(text: str, kind: str, message: str) -> None:
    found = error(text)
    assert found[0] == kind
    assert message in str(found[1])


def test_what_the_tools_have_no_word_for_cannot_be_written() -> None:
    for action in (
        actions.OpenApp(package="com.android.settings"),
        actions.Answer(text="3"),
        actions.Scroll(x=1, y=1, scroll_x=5, scroll_y=5),
        actions.Drag(path=((0, 0), (1, 1), (2, 2))),
    ):
        with pytest.raises(CannotEncodeError, match="recipe cannot express"):
            CODEC.encode(action, WIDTH, HEIGHT)
