"""Codecs of tool calls: Qwen's official tools and OpenAI's computer use."""

import json
from typing import Any

import pytest
from hypothesis import given

from producer.codecs.codec import Codec
from producer.codecs.openai import OpenAICodec
from producer.codecs.qwen import QwenToolCodec
from producer.codecs.qwen_tools import resized, tool_schema, tools_prompt
from schemas import actions
from schemas.actions import Action
from tests.producer.codecs.test_codecs import HEIGHT, SOME_ACTION, WIDTH, call

MOBILE, COMPUTER = QwenToolCodec("mobile_use"), QwenToolCodec("computer_use")


def test_the_official_schemas_have_qwens_names_and_values() -> None:
    # Qwen's cookbooks: agent_function_call.py; `answer` is Qwen3-VL's.
    mobile: Any = tool_schema("mobile_use", "999x999")["function"]
    assert set(mobile["parameters"]["properties"]["action"]["enum"]) == {
        *("key", "click", "long_press", "swipe", "type", "system_button", "open", "wait"),
        *("terminate", "answer"),
    }
    assert mobile["parameters"]["properties"]["button"]["enum"] == ["Back", "Home", "Menu", "Enter"]
    assert mobile["parameters"]["required"] == ["action"]
    assert "The screen's resolution is 999x999." in mobile["description"]
    computer: Any = tool_schema("computer_use", "1x1")["function"]
    assert set(computer["parameters"]["properties"]["action"]["enum"]) == {
        *("key", "type", "mouse_move", "left_click", "left_click_drag", "right_click"),
        *("middle_click", "double_click", "triple_click", "scroll", "hscroll", "wait"),
        *("terminate", "answer"),
    }
    assert set(computer["parameters"]["properties"]) == {
        *("action", "keys", "text", "coordinate", "pixels", "time", "status"),
    }


def test_the_prompt_is_the_one_of_the_chat_template_for_one_tool() -> None:
    head, rest = tools_prompt("mobile_use").split("<tools>\n", 1)
    schema, tail = rest.split("\n</tools>", 1)
    assert head == (
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n"
    )
    assert json.loads(schema) == tool_schema("mobile_use", "999x999")
    assert tail == (
        "\n\nFor each function call, return a json object with function name and arguments within"
        " <tool_call></tool_call> XML tags:\n<tool_call>\n"
        '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
    )


@pytest.mark.parametrize(
    ("codec", "text", "error"),
    [
        (MOBILE, call("computer_use", action="left_click", coordinate=[1, 1]), "tool_name"),
        (MOBILE, call(action="left_click", coordinate=[1, 1]), "tool_name"),
        (MOBILE, call(action="scroll", coordinate=[1, 1], pixels=5), "tool_name"),
        (COMPUTER, call("computer_use", action="swipe", coordinate=[1, 1]), "tool_name"),
        (COMPUTER, call(action="click", coordinate=[1, 1]), "tool_name"),
        (COMPUTER, call("computer_use", action="left_click_drag", coordinate=[9, 9]), "tool_arg"),
        (COMPUTER, call("computer_use", action="wait", time=10**400), "tool_arg"),
        (OpenAICodec(), '{"type": "computer_call", "action": {"type": "tap"}}', "tool_name"),
        (OpenAICodec(), '{"type": "function_call", "name": "fly", "arguments": "{}"}', "tool_name"),
        (
            OpenAICodec(),
            '{"type": "computer_call", "action": {"type": "click", "x": 360, "y": 1}}',
            "tool_arg",
        ),
        (OpenAICodec(), '{"type": "message", "content": []}', "parse"),
        (OpenAICodec(), "click(1,2)", "parse"),
    ],
)
def test_what_a_tool_does_not_have_is_an_error_of_the_right_kind(
    codec: Codec, text: str, error: str
) -> None:
    (taken,) = codec.parse(text, WIDTH, HEIGHT)
    assert (taken.action, taken.error_type) == (None, error)


@pytest.mark.parametrize(
    ("codec", "text", "action"),
    [
        (
            COMPUTER,
            call("computer_use", action="mouse_move", coordinate=[500, 500])
            + call("computer_use", action="left_click_drag", coordinate=[0, 0]),
            actions.Drag(path=((180, 320), (0, 0))),
        ),
        (
            COMPUTER,
            call("computer_use", action="left_click", coordinate=[0, 1000]),
            actions.Click(x=0, y=639),
        ),
        (
            COMPUTER,
            call("computer_use", action="scroll", coordinate=[0, 0], pixels=-120),
            actions.Scroll(x=0, y=0, scroll_y=120),
        ),
        (
            COMPUTER,
            call("computer_use", action="scroll", pixels=-120),
            actions.Scroll(x=180, y=320, scroll_y=120),
        ),
        (
            OpenAICodec(),
            '{"type": "computer_call", "action": {"type": "drag", "path": [{"x": 1, "y": 2},'
            ' {"x": 3, "y": 4}]}}',
            actions.Drag(path=((1, 2), (3, 4))),
        ),
        (
            OpenAICodec(),
            '[{"type": "reasoning"}, {"type": "computer_call", "actions": [{"type": "wait"}]}]',
            actions.Wait(),
        ),
    ],
)
def test_a_call_of_another_family_is_an_action_of_ours(
    codec: Codec, text: str, action: Action
) -> None:
    assert [taken.action for taken in codec.parse(text, WIDTH, HEIGHT)] == [action]


@given(action=SOME_ACTION)
def test_openai_expresses_every_action_exactly(action: Action) -> None:
    codec = OpenAICodec()
    (taken,) = codec.parse(codec.encode(action, WIDTH, HEIGHT), WIDTH, HEIGHT)
    assert taken.action == action


def test_qwen25_writes_pixels_of_the_resized_screen() -> None:
    # 360 x 640 in multiples of 28: 364 x 644. Limits as in transformers: 1092 x 2408 has 2,629,536
    # pixels; at most 1,000,000 of them shrink it by 1.6216 to 673.4 x 1485, so 672 x 1484.
    scale = resized(28, 56 * 56, 1_000_000)
    assert scale(360, 640) == (364, 644)
    assert scale(1092, 2408) == (672, 1484)
    assert resized(28, 56 * 56, 1_000_000)(20, 20) == (56, 56)
    codec = QwenToolCodec("mobile_use", scale)
    written = codec.encode(actions.Click(x=180, y=320), WIDTH, HEIGHT)
    # The middle of pixel 180 of 360: 180.5 / 360 * 364 = 182.5; of 320: 320.5 / 640 * 644 = 322.5.
    assert json.loads(written.splitlines()[1])["arguments"]["coordinate"] == [183, 323]
    assert codec.parse(written, WIDTH, HEIGHT)[0].action == actions.Click(x=180, y=320)
    (outside,) = codec.parse(call(action="click", coordinate=[365, 1]), WIDTH, HEIGHT)
    assert outside.error_type == "tool_arg"
