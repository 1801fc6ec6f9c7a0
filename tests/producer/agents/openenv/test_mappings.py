"""What servers are sent, and how a policy writes where there is no screen."""

from typing import get_args

import pytest

from producer.agents.environment_server import ActionsName, check_server_urls, check_size, size_px
from producer.agents.openenv.codecs import JsonActionCodec, TextCodec
from producer.agents.openenv.mappings import MAPPINGS
from producer.agents.openenv.observations import picture_of, words_of
from producer.codecs.codec import CannotEncodeError
from producer.environments.environment import ActionRefusedError, EnvironmentFailedError
from schemas.actions import (
    Action,
    Answer,
    Click,
    DoubleClick,
    Drag,
    ExecuteSql,
    KeyPress,
    LongPress,
    Move,
    Screenshot,
    Scroll,
    Swipe,
    SystemButton,
    Terminate,
    Type,
    Wait,
)


@pytest.mark.parametrize(
    ("action", "call"),
    [
        (Click(x=1, y=2), "mouse_click(1, 2, button='left')"),
        (Click(x=1, y=2, button="wheel"), "mouse_click(1, 2, button='middle')"),
        (DoubleClick(x=1, y=2), "mouse_dblclick(1, 2)"),
        (Move(x=1, y=2), "mouse_move(1, 2)"),
        (Swipe(x=1, y=2, to_x=3, to_y=4), "mouse_drag_and_drop(1, 2, 3, 4)"),
        (Drag(path=((1, 2), (3, 4))), "mouse_drag_and_drop(1, 2, 3, 4)"),
        (Scroll(x=1, y=2, scroll_y=-100), "scroll(0, -100)"),
        (KeyPress(keys=("ctrl", "a")), "keyboard_press('Control+a')"),
        (Type(text="it's"), 'keyboard_type("it\'s")'),
        (Answer(text="42"), "send_msg_to_user('42')"),
        (Wait(duration_s=0.5), "noop(500)"),
        (Screenshot(), "noop(0)"),
    ],
    ids=lambda one: one if isinstance(one, str) else one.type,
)
def test_a_browser_gets_its_own_calls(action: Action, call: str) -> None:
    assert MAPPINGS["browsergym"].encode(action) == {"action_str": call}


def test_actions_are_sent_as_the_mapping_says() -> None:
    click, typed = Click(x=1, y=2), Type(text="hi")
    assert MAPPINGS["computer"].encode(click) == {
        "type": "click",
        "x": 1,
        "y": 2,
        "button": "left",
    }
    assert MAPPINGS["text"].encode(typed) == {"message": "hi"}
    assert MAPPINGS["action_str"].encode(typed) == {"action_str": "hi"}
    assert MAPPINGS["answer"].encode(typed) == {"answer": "hi"}
    assert MAPPINGS["code"].encode(Answer(text="1 + 1")) == {"code": "1 + 1"}
    assert set(MAPPINGS) == {*get_args(ActionsName)}


@pytest.mark.parametrize(
    ("name", "action"),
    [
        ("text", Click(x=1, y=2)),
        ("browsergym", LongPress(x=1, y=2)),
        ("browsergym", SystemButton(button="home")),
        ("browsergym", Click(x=1, y=2, button="back")),
        ("browsergym", Drag(path=((1, 2), (3, 4), (5, 6)))),
        ("browsergym", ExecuteSql(sql="SELECT 1")),
    ],
)
def test_what_a_server_has_no_word_for_is_refused(name: ActionsName, action: Action) -> None:
    with pytest.raises(ActionRefusedError, match=action.type):
        MAPPINGS[name].encode(action)


def test_a_completion_is_sent_as_it_is_written() -> None:
    codec = TextCodec()
    (call,) = codec.parse(" click('13')\n", 0, 0)
    assert call.action == Type(text="click('13')")
    assert codec.encode(Type(text="hi"), 0, 0) == codec.encode(Answer(text="hi"), 0, 0) == "hi"
    (nothing,) = codec.parse(" \n", 0, 0)
    assert nothing.error_type == "parse"
    with pytest.raises(CannotEncodeError):
        codec.encode(Terminate(), 0, 0)


@pytest.mark.parametrize("action", [ExecuteSql(sql='SELECT "ä"'), Click(x=1, y=2), Terminate()])
def test_an_action_as_json_is_read_as_it_was_written(action: Action) -> None:
    codec = JsonActionCodec()
    (call,) = codec.parse(f"I think: {codec.encode(action, 0, 0)} then", 0, 0)
    assert (call.action, call.tool_name) == (action, action.type)


@pytest.mark.parametrize(
    ("text", "error_type"),
    [
        ("no action", "parse"),
        ('{"type": "click"', "parse"),
        ('{"type": "clack"}', "tool_name"),
        ('{"type": "click", "x": -1, "y": 0}', "tool_arg"),
    ],
)
def test_json_that_is_no_action_says_why(text: str, error_type: str) -> None:
    (call,) = JsonActionCodec().parse(text, 0, 0)
    assert (call.action, call.error_type) == (None, error_type)


def test_words_are_shown_once_in_their_order_and_others_as_json() -> None:
    shown = {"text": "Error: no such table", "goal": "Count.", "error": "no such table", "url": "u"}
    assert words_of(shown) == "Count.\n\nError: no such table"
    assert words_of(shown, is_first=False) == "Error: no such table"
    game = {"prompt": "Guess.", "messages": [{"content": "Low."}, {"content": "High."}, {}, 1]}
    assert words_of(game) == "Guess.\n\nLow.\nHigh."
    assert words_of(game, is_first=False) == "Low.\nHigh."
    assert words_of({"goal": "Count."}, is_first=False) is None
    assert words_of({"board": [1, 2], "metadata": {"a": 1}, "hint": None}) == '{"board": [1, 2]}'
    assert words_of({"screenshot": "x", "width": 1, "metadata": {}}) is None


def test_a_picture_that_is_none_fails_the_attempt() -> None:
    assert picture_of({"screenshot": None}) is None
    for broken in ("not base64!", "YWJj", [[1, 2]], [[[1, 2, 300]]], 7):
        with pytest.raises(EnvironmentFailedError, match="screenshot cannot be read"):
            picture_of({"screenshot": broken})


def test_a_picture_may_be_a_data_url_in_any_format() -> None:
    import base64
    import io

    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGBA", (3, 2), (1, 2, 3, 255)).save(buffer, "PNG")
    url = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
    picture = picture_of({"image": url})
    assert picture is not None
    png, width_px, height_px = picture
    with Image.open(io.BytesIO(png)) as image:
        assert (image.format, image.mode, image.size) == ("PNG", "RGB", (3, 2))
    assert (width_px, height_px) == (3, 2)


def test_urls_have_one_form_and_hold_no_secret() -> None:
    assert check_server_urls("http://h:1/, wss://h/space/ws") == "ws://h:1,wss://h/space"
    for url in ("h:1", "ftp://h", "ws://", "ws://h:0", "ws://h:1,", "ws://a b"):
        with pytest.raises(ValueError, match="no URL of an environment server"):
            check_server_urls(url)
    for url in ("ws://u:secret@h:1", "ws://h:1?token=secret", "ws://h:1#secret"):
        with pytest.raises(ValueError, match="CUA_OPENENV_TOKEN") as raised:
            check_server_urls(url)
        assert "secret" not in str(raised.value)


def test_a_size_is_two_numbers() -> None:
    assert size_px(check_size("1280x720")) == (1280, 720)
    assert size_px(None) is None
    for size in ("1280", "0x1", "1x-1", "ax b", "1x2x3"):
        with pytest.raises(ValueError, match="WIDTHxHEIGHT"):
            check_size(size)
