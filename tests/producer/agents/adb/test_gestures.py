"""Actions as commands of a phone's shell."""

import pytest

from producer.agents.adb.gestures import commands
from producer.environments.environment import ActionRefusedError
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
    OpenApp,
    Screenshot,
    Scroll,
    Swipe,
    SystemButton,
    Terminate,
    Type,
    Wait,
)

COMMANDS: list[tuple[Action, list[str]]] = [
    (Click(x=5, y=7), ["input tap 5 7"]),
    (DoubleClick(x=5, y=7), ["input tap 5 7 & sleep 0.1; input tap 5 7; wait"]),
    (LongPress(x=5, y=7, duration_s=1.5), ["input swipe 5 7 5 7 1500"]),
    (Swipe(x=5, y=7, to_x=8, to_y=9), ["input swipe 5 7 8 9 200"]),
    (Drag(path=((1, 2), (3, 4))), ["input swipe 1 2 3 4 1000"]),
    (
        Drag(path=((1, 2), (3, 4), (5, 6))),
        [
            "input motionevent DOWN 1 2 && input motionevent MOVE 3 4 && input motionevent MOVE 5 6"
            " && input motionevent UP 5 6"
        ],
    ),
    (Scroll(x=50, y=90, scroll_y=40), ["input swipe 50 90 50 50 400"]),
    (Scroll(x=50, y=90, scroll_y=400), ["input swipe 50 90 50 0 400"]),
    (Scroll(x=50, y=90, scroll_x=-60), ["input swipe 50 90 99 90 400"]),
    (Scroll(x=50, y=0, scroll_y=9), []),
    (KeyPress(keys=("Enter",)), ["input keyevent 66"]),
    (KeyPress(keys=("volume_down", "power")), ["input keyevent 120"]),
    (KeyPress(keys=("A",)), ["input text A"]),
    (Type(text="it's a b"), ["input text 'it'\"'\"'s%sa%sb'"]),
    (Type(text="100%sure"), ["input text 100%", "input text sure"]),
    (Type(text="go\nand on"), ["input text go", "input keyevent 66"]),
    (Type(text=""), []),
    (SystemButton(button="recents"), ["input keyevent 187"]),
    (OpenApp(package="com.android.chrome"), ["am start com.android.chrome"]),
    (Wait(), []),
    (Screenshot(), []),
    (Answer(text="42"), []),
    (Terminate(), []),
]
REFUSED: list[tuple[Action, str]] = [
    (Click(x=100, y=7), r"\(100, 7\) is outside the screen of 100 x 200 px"),
    (Swipe(x=5, y=7, to_x=8, to_y=200), r"\(8, 200\) is outside"),
    (Drag(path=((1, 2), (300, 4))), r"\(300, 4\) is outside"),
    (Click(x=5, y=7, button="right"), "no right button; use the left one"),
    (Move(x=5, y=7), "no pointer; click instead"),
    (ExecuteSql(sql="SELECT 1"), "no SQL"),
    (Type(text="naïve"), "printable ASCII characters only, and 'ï' is none"),
    (Type(text="a\tb"), r"'\\t' is none"),
    (KeyPress(keys=("ctrl", "a")), r"no key ctrl\+a; use enter"),
    (OpenApp(package="x; reboot"), "'x; reboot' is no package name"),
]


@pytest.mark.parametrize(("action", "expected"), COMMANDS, ids=lambda value: str(value)[:40])
def test_an_action_is_these_commands(action: Action, expected: list[str]) -> None:
    assert list(commands(action, 100, 200)) == expected


@pytest.mark.parametrize(("action", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_a_phone_cannot_do_is_refused_with_what_to_do(action: Action, message: str) -> None:
    with pytest.raises(ActionRefusedError, match=message):
        commands(action, 100, 200)
