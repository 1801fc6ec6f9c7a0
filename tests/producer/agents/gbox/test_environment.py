"""Boxes of GBox, driven by its own SDK."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from producer.agents.gbox.environment import GboxEnvironment
from producer.agents.gbox.service import BoxType, GboxFailedError
from producer.environments.environment import ActionRefusedError, EnvironmentFailedError
from producer.task import Task
from producer.validators.verdict import NO_EVIDENCE
from schemas.actions import (
    Action,
    Click,
    DoubleClick,
    Drag,
    ExecuteSql,
    KeyPress,
    LongPress,
    Move,
    OpenApp,
    Scroll,
    Swipe,
    SystemButton,
    Type,
    Wait,
)
from tests.support.gbox_server import KEY, FakeGbox, gbox_server, service_of

BLUETOOTH = Task(
    "bluetooth",
    "Bluetooth",
    "Turn Bluetooth off.",
    None,
    None,
    5,
    "bluetooth_enabled",
    "False",
    setup=("settings put global bluetooth_on 1",),
)
BoxOf = Callable[..., GboxEnvironment]
NOTHING = Task("nothing", "Nothing", "Look.", None, None, 5, None, None)


@pytest.fixture
def server() -> Iterator[FakeGbox]:
    with gbox_server() as running:
        yield running


@pytest.fixture
def box_of(server: FakeGbox) -> Iterator[BoxOf]:
    """Makes environments of a type of box, a key and a limit."""
    with ExitStack() as services:

        def make(
            box_type: BoxType = "android", *, key: str = KEY, limit_s: float = 5.0
        ) -> GboxEnvironment:
            service = services.enter_context(service_of(server, key=key, limit_s=limit_s))
            return GboxEnvironment(service, box_type, training="mine", lifetime_s=5400.0)

        yield make


def test_a_box_is_named_limited_judged_and_closed(server: FakeGbox, box_of: BoxOf) -> None:
    device = box_of()
    device.open(BLUETOOTH, seed=0)
    (box,) = server.alive
    assert box.config == {
        "labels": {"created-by": "cua-train", "training": "mine"},
        "expiresIn": "5400s",
        "deviceType": "virtual",
    }
    assert device.provider_id == box.box_id
    assert not device.judge(BLUETOOTH, NO_EVIDENCE).success
    device.shell("settings put global bluetooth_on 0")
    assert device.judge(BLUETOOTH, NO_EVIDENCE).success
    device.close()
    assert server.alive == []


DONE: list[tuple[Action, str, dict[str, object]]] = [
    (Click(x=5, y=7), "tap", {"x": 5, "y": 7}),
    (DoubleClick(x=5, y=7), "click", {"x": 5, "y": 7, "double": True}),
    (LongPress(x=5, y=7, duration_s=1.5), "long-press", {"x": 5, "y": 7, "duration": "1500ms"}),
    (
        Swipe(x=5, y=7, to_x=8, to_y=9),
        "swipe",
        {"start": {"x": 5, "y": 7}, "end": {"x": 8, "y": 9}, "duration": "200ms"},
    ),
    (
        Drag(path=((1, 2), (3, 4))),
        "drag",
        {"path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}], "duration": "50ms"},
    ),
    (Scroll(x=5, y=7, scroll_y=40), "scroll", {"x": 5, "y": 7, "scrollX": 0, "scrollY": 40}),
    (SystemButton(button="recents"), "press-button", {"buttons": ["appSwitch"]}),
    (KeyPress(keys=("home",)), "press-button", {"buttons": ["home"]}),
    (KeyPress(keys=("Return",)), "press-key", {"keys": ["enter"], "combination": False}),
]


@pytest.mark.parametrize(("action", "name", "expected"), DONE, ids=lambda value: str(value)[:30])
def test_an_action_is_this_call(
    server: FakeGbox, box_of: BoxOf, action: Action, name: str, expected: dict[str, object]
) -> None:
    device = box_of()
    device.open(NOTHING, seed=0)
    device.act(action)
    (box,) = server.alive
    calls = [(asked, given) for asked, given in box.asked if asked != "screenshot"]
    assert calls == [(name, {**expected, "options": {"screenshot": False}})]
    device.close()


def test_text_is_typed_and_a_line_break_submits(server: FakeGbox, box_of: BoxOf) -> None:
    device = box_of()
    device.open(NOTHING, seed=0)
    (box,) = server.alive
    box.sim.phone.focus = "url"
    device.act(Type(text="naïve"))
    assert box.sim.phone.fields["url"] == "naïve"
    device.act(Type(text=" no\nand on"))
    assert box.asked[-3][1]["text"] == " no"
    assert box.asked[-3][1]["pressEnter"] is True
    device.close()


def test_an_app_is_started_and_one_that_is_not_there_is_refused(box_of: BoxOf) -> None:
    device = box_of()
    device.open(NOTHING, seed=0)
    device.act(OpenApp(package="com.android.settings"))
    with pytest.raises(ActionRefusedError, match=r"HTTP 404: com\.example\.none is not installed"):
        device.act(OpenApp(package="com.example.none"))
    assert "com.android.settings" in device.shell("dumpsys window")
    device.close()


REFUSED: list[tuple[BoxType, Action, str]] = [
    ("android", Click(x=360, y=1), r"\(360, 1\) is outside the screen of 360 x 640 px"),
    ("android", Click(x=1, y=1, button="right"), "no right button"),
    ("android", Move(x=1, y=1), "a box of type android has no move"),
    ("android", ExecuteSql(sql="x"), "has no execute_sql"),
    ("android", KeyPress(keys=("hyper",)), "no key hyper; use"),
    ("linux", SystemButton(button="home"), "a box of type linux has no system_button"),
    ("linux", Click(x=1, y=1, button="back"), "no back button; use left, right, wheel"),
]


@pytest.mark.parametrize(("box_type", "action", "message"), REFUSED)
def test_what_a_box_cannot_do_is_refused(
    box_of: BoxOf, box_type: BoxType, action: Action, message: str
) -> None:
    device = box_of(box_type)
    device.open(NOTHING, seed=0)
    with pytest.raises(ActionRefusedError, match=message):
        device.act(action)
    device.close()


def test_a_linux_box_has_a_mouse_and_keys_together(server: FakeGbox, box_of: BoxOf) -> None:
    device = box_of("linux")
    shown = device.open(NOTHING, seed=0)
    assert (device.box_type, shown.width_px, shown.height_px) == ("linux", 640, 480)
    (box,) = server.alive
    for action in (
        Click(x=1, y=2, button="wheel"),
        Move(x=3, y=4),
        KeyPress(keys=("ctrl", "c")),
    ):
        device.act(action)
    options = {"options": {"screenshot": False}}
    assert [given for asked, given in box.asked if asked != "screenshot"] == [
        {"x": 1, "y": 2, "button": "middle", **options},
        {"x": 3, "y": 4, **options},
        {"keys": ["control", "c"], "combination": True, **options},
    ]
    device.close()


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_box_that_fails_has_failed_at_once_and_nothing_is_done_twice(
    server: FakeGbox, box_of: BoxOf, status: int
) -> None:
    device = box_of()
    device.open(NOTHING, seed=0)
    server.failing, server.failing_status = 1.0, status
    before = len(server.requests)
    with pytest.raises(
        GboxFailedError, match=f"GBox could not do click on box box-1: HTTP {status}"
    ):
        device.act(Click(x=1, y=1))
    assert server.requests[before:] == ["POST /boxes/box-1/actions/tap"]
    server.failing = 0.0
    with pytest.raises(EnvironmentFailedError, match=f"HTTP {status}"):
        device.act(Click(x=1, y=1))
    device.close()
    assert server.alive == []


def test_a_screenshot_that_failed_is_asked_for_again(server: FakeGbox, box_of: BoxOf) -> None:
    device = box_of()
    device.open(NOTHING, seed=0)
    server.failing_next = 1
    before = len(server.requests)
    device.act(Wait(duration_s=0))
    assert server.requests[before:] == ["POST /boxes/box-1/actions/screenshot"] * 3
    device.close()


def test_a_box_that_is_gone_has_failed_and_is_closed(server: FakeGbox, box_of: BoxOf) -> None:
    device = box_of()
    device.open(NOTHING, seed=0)
    server.boxes["box-1"].status = "terminated"
    with pytest.raises(GboxFailedError, match="HTTP 404: there is no such box"):
        device.act(Click(x=1, y=1))
    device.close()


def test_a_box_that_hangs_has_failed_at_the_limit(server: FakeGbox, box_of: BoxOf) -> None:
    device = box_of(limit_s=1.5)
    device.open(NOTHING, seed=0)
    server.hang_s = 20.0
    began_s = time.monotonic()
    with pytest.raises(GboxFailedError, match="timed out"):
        device.act(Click(x=1, y=1))
    assert 1.5 <= time.monotonic() - began_s < 15.0
    server.hang_s = 0.0
    device.close()
    assert server.alive == []


def test_a_refused_key_is_in_no_message(box_of: BoxOf) -> None:
    with pytest.raises(GboxFailedError, match="HTTP 401: no such key: Bearer …") as failed:
        box_of(key="a-wrong-key").open(NOTHING, seed=0)
    assert failed.value.status == 401
    assert "a-wrong-key" not in str(failed.value)


def test_the_boxes_of_ours_are_found_on_every_page_and_others_are_left_out(
    server: FakeGbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("producer.agents.gbox.service.PAGE", 2)
    mine = {"created-by": "cua-train", "training": "mine"}
    for labels in (mine, {}, {"created-by": "somebody"}, mine, mine):
        server.create("android", {"labels": labels})
    server.boxes["box-4"].status = "terminated"
    with service_of(server) as service:
        found = service.boxes()
    assert [(box.device_id, box.training, box.status) for box in found] == [
        ("box-1", "mine", "running"),
        ("box-5", "mine", "running"),
    ]
