"""Every codec keeps the same contract; tests of a single codec follow."""

import json
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from producer.codecs.codec import CannotEncodeError, Codec
from producer.codecs.compact import CompactCodec
from producer.codecs.openai import OpenAICodec
from producer.codecs.qwen import QwenToolCodec
from producer.codecs.recipe import RecipeCodec
from schemas import actions
from schemas.actions import Action

MOBILE, COMPUTER = QwenToolCodec("mobile_use"), QwenToolCodec("computer_use")
CODECS: tuple[Codec, ...] = (
    CompactCodec(),
    MOBILE,
    COMPUTER,
    OpenAICodec(),
    RecipeCodec(),
)
WIDTH, HEIGHT = 360, 640
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
X, Y = st.integers(0, WIDTH - 1), st.integers(0, HEIGHT - 1)
SOME_ACTION: st.SearchStrategy[Action] = st.one_of(
    st.builds(actions.Click, x=X, y=Y, button=st.sampled_from(["left", "right", "wheel", "back"])),
    st.builds(actions.DoubleClick, x=X, y=Y),
    st.builds(actions.LongPress, x=X, y=Y),
    st.builds(actions.Swipe, x=X, y=Y, to_x=X, to_y=Y),
    st.builds(
        actions.Scroll, x=X, y=Y, scroll_x=st.integers(-99, 99), scroll_y=st.integers(-99, 99)
    ),
    st.builds(actions.Move, x=X, y=Y),
    st.builds(actions.Drag, path=st.lists(st.tuples(X, Y), min_size=2, max_size=4).map(tuple)),
    st.builds(
        actions.KeyPress,
        keys=st.lists(st.sampled_from(["enter", "ctrl", "a"]), min_size=1, max_size=2).map(tuple),
    ),
    st.builds(actions.Type, text=WORDS),
    st.builds(
        actions.SystemButton,
        button=st.sampled_from(["home", "back", "recents", "power", "volume_up", "volume_down"]),
    ),
    st.builds(actions.OpenApp, package=WORDS),
    st.builds(actions.Wait),
    st.builds(actions.Screenshot),
    st.builds(actions.Answer, text=WORDS),
    st.builds(actions.Terminate, status=st.sampled_from(["success", "failure"])),
)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
@given(action=SOME_ACTION)
def test_what_a_codec_writes_it_reads_back_within_its_resolution(
    codec: Codec, action: Action
) -> None:
    try:
        text = codec.encode(action, WIDTH, HEIGHT)
    except CannotEncodeError:
        assume(False)
    (taken,) = codec.parse(text, WIDTH, HEIGHT)
    assert taken.error_type is None
    assert taken.action is not None
    written, read = action.model_dump(), taken.action.model_dump()
    assert written.keys() == read.keys()
    for name, value in written.items():
        # A hundredth of 640 px is 6.4 px: its middle is at most 4 px from any of its pixels.
        close = name in {"x", "y", "to_x", "to_y"} and abs(value - read[name]) <= 4
        assert close or value == read[name] or (name == "path" and near(value, read[name])), name
    assert codec.encode(taken.action, WIDTH, HEIGHT) == text, "written again it is the same"


def near(path: Any, other: Any) -> bool:
    return len(path) == len(other) and all(
        abs(one - two) <= 4
        for point, its in zip(path, other, strict=True)
        for one, two in zip(point, its, strict=True)
    )


NUMBERS = st.one_of(
    st.integers(-(10**400), 10**400),
    st.floats(),
    st.booleans(),
    st.none(),
    WORDS,
    st.lists(st.integers(-9, 2000), max_size=3),
    st.just({"x": [{}] * 3}),
)
NAMES = st.sampled_from(
    [
        *("action", "coordinate", "coordinate2", "text", "time", "button", "status", "pixels"),
        *("keys", "type", "x", "y", "path", "scroll_direction", "scroll_amount", "duration"),
        *("start_coordinate", "duration_s", "scroll_x", "scroll_y", "coordinates", "option"),
        *("direction", "distance"),
    ]
)
VERBS = st.sampled_from(
    [
        *("click", "left_click", "long_press", "swipe", "scroll", "hscroll", "wait", "key", "type"),
        *("left_click_drag", "terminate", "drag", "keypress", "move", "screenshot", "teleport"),
    ]
)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
@given(verb=VERBS, fields=st.dictionaries(NAMES, NUMBERS, max_size=5), wrapper=st.integers(0, 6))
@example(verb="click", fields={"type": []}, wrapper=4)
@example(verb="click", fields={"action": [], "type": {}}, wrapper=0)
def test_no_arguments_make_a_codec_raise_and_every_action_is_on_the_screen(
    codec: Codec, verb: str, fields: dict[str, Any], wrapper: int
) -> None:
    given_ = {"action": verb, **fields}
    content: Any = [
        {"name": "mobile_use", "arguments": given_},
        {"name": "computer_use", "arguments": given_},
        {"type": "computer_call", "action": {"type": verb, **fields}},
        {"type": "function_call", "name": verb, "arguments": json.dumps(fields)},
        [{"type": verb, **fields}] * 2,
        {"name": "action", "arguments": {"action_type": verb, "target": fields, **fields}},
        {"name": "finish", "arguments": {"success": fields.get("x"), "result_message": verb}},
    ][wrapper]
    text = json.dumps(content)
    for written in (text, f"<tool_call>{text}</tool_call>"):
        for item in codec.parse(written, WIDTH, HEIGHT):
            assert (item.action is None) == (item.error_type is not None)
            if item.action is not None:
                said = item.action.model_dump()
                points = [(said["x"], said["y"])] if "x" in said else said.get("path", ())
                assert all(0 <= x < WIDTH and 0 <= y < HEIGHT for x, y in points)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
@given(
    text=st.one_of(
        WORDS,
        st.from_regex(r"[a-z_]{1,12}\([0-9a-z, ]{0,12}\)"),
        WORDS.map(lambda words: f"<tool_call>{words}</tool_call>"),
    )
)
def test_no_text_makes_a_codec_raise_and_what_cannot_be_parsed_has_a_reason(
    codec: Codec, text: str
) -> None:
    taken = codec.parse(text, WIDTH, HEIGHT)
    assert taken
    for item in taken:
        assert (item.action is None) == (item.error_type is not None)
        assert (item.error_type is None) == (item.error_message is None)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("click(31,52)", actions.Click(x=113, y=336)),
        ("click(wi-fi network 31, wi-fi network 52)", actions.Click(x=113, y=336)),
        ("click(chrome31,chrome52)", actions.Click(x=113, y=336)),
        ("click(\u5fae\u4fe1 31,\u5fae\u4fe152)", actions.Click(x=113, y=336)),
        ("long_press(chrome 31,52)", actions.LongPress(x=113, y=336)),
        ("swipe(up)", actions.Swipe(x=181, y=451, to_x=181, to_y=195)),
        ("swipe(0,99,99,0)", actions.Swipe(x=1, y=636, to_x=358, to_y=3)),
        ("type(a (b), c)", actions.Type(text="a (b), c")),
        (" button(home)\n", actions.SystemButton(button="home")),
        ("terminate(failure)", actions.Terminate(status="failure")),
    ],
)
def test_compact_calls_mean_the_middle_of_a_hundredth(text: str, action: Action) -> None:
    # 31.5 hundredths of 360 are 113.4; 52.5 of 640 are 336.
    assert CompactCodec().parse(text, WIDTH, HEIGHT)[0].action == action


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "parse"),
        ("click 31 52", "parse"),
        ("click(1,2) click(3,4)", "tool_arg"),
        ("tap(1,2)", "tool_name"),
        ("click(100,2)", "tool_arg"),
        ("click(1)", "tool_arg"),
        ("click(chrome,chrome)", "tool_arg"),
        ("click(chrome 131,chrome 5)", "tool_arg"),
        ("click(-1,2)", "tool_arg"),
        ("swipe(sideways)", "tool_arg"),
        ("button(bell)", "tool_arg"),
        ("wait(3)", "tool_arg"),
        ("terminate()", "tool_arg"),
    ],
)
def test_compact_mistakes_are_told_apart(text: str, error: str) -> None:
    (taken,) = CompactCodec().parse(text, WIDTH, HEIGHT)
    assert (taken.action, taken.error_type) == (None, error)


def call(name: str = "mobile_use", **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


@pytest.mark.parametrize(
    ("text", "action"),
    [
        (call(action="click", coordinate=[500, 500]), actions.Click(x=180, y=320)),
        (call(action="click", coordinate=[0, 1000]), actions.Click(x=0, y=639)),
        (
            call(action="swipe", coordinate=[500, 700], coordinate2=[500, 300]),
            actions.Swipe(x=180, y=448, to_x=180, to_y=192),
        ),
        (call(action="system_button", button="Menu"), actions.SystemButton(button="recents")),
        (call(action="system_button", button="Enter"), actions.KeyPress(keys=("enter",))),
        (call(action="key", text="volume_up"), actions.SystemButton(button="volume_up")),
        (
            call(action="open", text="com.android.chrome"),
            actions.OpenApp(package="com.android.chrome"),
        ),
        (call(action="terminate", status="failure"), actions.Terminate(status="failure")),
    ],
)
def test_qwen_calls_scale_thousandths_to_pixels(text: str, action: Action) -> None:
    assert MOBILE.parse(f"I will do it.\n{text}", WIDTH, HEIGHT)[0].action == action


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("click there", "parse"),
        ("<tool_call>{</tool_call>", "parse"),
        ("<tool_call>[1]</tool_call>", "parse"),
        (
            (
                '<tool_call>{"name": "mobile_use", "arguments": {"action": "type", "text":'
                ' "\\ud800"}}</tool_call>'
            ),
            "parse",
        ),
        (f"<tool_call>{'[' * 100_000}</tool_call>", "parse"),
        (call("phone_use", action="click", coordinate=[1, 1]), "tool_name"),
        (call(action="teleport"), "tool_name"),
        (call(action=["click"]), "tool_name"),
        (call(action="click", coordinate=[1001, 5]), "tool_arg"),
        (call(action="click", coordinate=["a", 5]), "tool_arg"),
        (call(action="click"), "tool_arg"),
        (call(action="wait", time=float("nan")), "tool_arg"),
        (call(action="wait", time=1e9), "tool_arg"),
        (call(action="terminate", status="maybe"), "tool_arg"),
    ],
)
def test_qwen_mistakes_are_told_apart(text: str, error: str) -> None:
    (taken,) = MOBILE.parse(text, WIDTH, HEIGHT)
    assert (taken.action, taken.error_type) == (None, error)


def test_qwen_reads_several_calls_in_order_and_one_that_was_cut_off() -> None:
    text = call(action="click", coordinate=[500, 500]) + call(action="wait", time=2).removesuffix(
        "\n</tool_call>"
    )
    assert [taken.action for taken in MOBILE.parse(text, WIDTH, HEIGHT)] == [
        actions.Click(x=180, y=320),
        actions.Wait(duration_s=2.0),
    ]
