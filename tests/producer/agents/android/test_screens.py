"""Screens are valid images: the same for the same history, different for different states."""

import hashlib
import io
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from producer.agents.android.sim.device.sim import AndroidSim
from producer.agents.android.sim.oracle.navigator import HOME, RECENTS, SWIPES
from producer.environments.environment import ActionRefusedError
from producer.task import Task
from schemas import actions
from schemas.actions import Action, Click, OpenApp, Type

NO_TASK = Task("none", "none", "Look around.", None, None, 10, None, None)
POINTS = {"x": st.integers(0, 420), "y": st.integers(0, 700)}
ANY_ACTION: st.SearchStrategy[Action] = st.one_of(
    st.builds(Click, **POINTS, button=st.sampled_from(["left", "right"])),
    st.builds(actions.DoubleClick, **POINTS),
    st.builds(actions.LongPress, **POINTS),
    st.builds(actions.Swipe, **POINTS, to_x=st.integers(0, 420), to_y=st.integers(0, 700)),
    st.builds(
        actions.Drag,
        path=st.lists(
            st.tuples(st.integers(0, 359), st.integers(0, 639)), min_size=2, max_size=4
        ).map(tuple),
    ),
    st.builds(
        actions.Scroll, **POINTS, scroll_x=st.integers(-900, 900), scroll_y=st.integers(-900, 900)
    ),
    st.builds(actions.Move, **POINTS),
    st.builds(
        actions.KeyPress,
        keys=st.sampled_from(
            [("enter",), ("a",), ("backspace",), ("ctrl", "c"), ("power", "volume_down")]
        ),
    ),
    st.builds(Type, text=st.text(max_size=12)),
    st.builds(
        actions.SystemButton,
        button=st.sampled_from(["home", "back", "recents", "power", "volume_up", "volume_down"]),
    ),
    st.builds(
        OpenApp,
        package=st.sampled_from(
            ["com.android.settings", "com.android.chrome", "com.android.contacts", "no.such.app"]
        ),
    ),
    st.builds(actions.Wait),
    st.builds(actions.Screenshot),
    st.builds(actions.Answer, text=st.text(max_size=5)),
    st.builds(actions.Terminate),
)


def opened(seed: int) -> AndroidSim:
    sim = AndroidSim()
    sim.open(NO_TASK, seed)
    return sim


@settings(max_examples=60)
@given(
    seed=st.integers(0, 1000),
    history=st.lists(ANY_ACTION, max_size=12),
    taps=st.lists(st.integers(0, 50), max_size=12),
)
def test_any_history_leaves_a_valid_screen_and_the_same_history_the_same_bytes(
    seed: int, history: list[Action], taps: list[int]
) -> None:
    shots: list[bytes] = []
    for _ in range(2):
        sim = opened(seed)
        for action in history:
            before = sim.screenshot().png
            try:
                sim.act(action)
            except ActionRefusedError:
                assert sim.screenshot().png == before, "refused: the screen is unchanged"
        for tap in taps:
            elements = sim.visible_elements()
            if elements:
                x0, y0, x1, y1 = elements[tap % len(elements)].box
                sim.act(Click(x=(x0 + x1) // 2, y=(y0 + y1) // 2))
        shots.append(sim.screenshot().png)
    assert shots[0] == shots[1]
    picture = Image.open(io.BytesIO(shots[0]))
    picture.load()
    assert (picture.size, picture.mode, picture.format) == ((360, 640), "RGB", "PNG")
    assert picture.tobytes() == sim.picture().tobytes(), "the PNG is the picture, pixel for pixel"


@settings(max_examples=40)
@given(seed=st.integers(0, 1000), taps=st.lists(st.integers(0, 50), max_size=8))
def test_every_element_lies_on_the_screen_and_a_tap_in_its_middle_reaches_it(
    seed: int, taps: list[int]
) -> None:
    sim = opened(seed)
    for tap in taps:
        elements = sim.visible_elements()
        x0, y0, x1, y1 = elements[tap % len(elements)].box
        sim.act(Click(x=(x0 + x1) // 2, y=(y0 + y1) // 2))
    elements = sim.visible_elements()
    assert all(
        0 <= e.box[0] < e.box[2] <= 360 and 0 <= e.box[1] < e.box[3] <= 640 for e in elements
    )
    assert len({element.name for element in elements}) == len(elements), "names tell elements apart"
    assert {"nav_back", "nav_home", "nav_recents"} <= {element.name for element in elements}


def test_seeds_differ_in_icon_places_list_order_and_state() -> None:
    phones = [opened(seed).phone for seed in range(12)]
    assert len({tuple(sorted(phone.home_cells[0].items())) for phone in phones}) == 12
    assert len({phone.appearance.root_order for phone in phones}) == 12
    assert len({phone.get("system", "screen_brightness") for phone in phones}) > 6
    assert {phone.get("global", "wifi_on") for phone in phones} == {"0", "1"}
    assert len({opened(seed).screenshot().png for seed in range(12)}) == 12


def test_every_page_of_settings_and_every_app_is_a_screen_of_its_own(phone: AndroidSim) -> None:
    from producer.agents.android.sim.state.settings_tree import PAGES

    shots = {}
    for name in PAGES:
        page = (
            f"app_info:{'com.android.chrome'}"
            if name == "app_info"
            else f"network:{phone.phone.appearance.networks[0]}"
            if name == "network"
            else name
        )
        phone.phone.launch("com.android.settings", page)
        shots[name] = phone.screenshot().png
    for package in sorted(phone.phone.installed - {"com.android.settings"}):
        phone.act(OpenApp(package=package))
        shots[package] = phone.screenshot().png
    assert len(set(shots.values())) == len(PAGES) + 15


def test_a_switch_changes_its_pixels_and_its_element_says_so(phone: AndroidSim) -> None:
    phone.shell("am start -n com.android.settings/.Settings$WifiSettingsActivity")
    phone.shell("settings put global wifi_on 0")
    off = phone.screenshot().png
    state = {element.name: element.state for element in phone.visible_elements()}
    assert state["wifi_switch"] == "off"
    phone.shell("settings put global wifi_on 1")
    assert phone.screenshot().png != off, "what a shell changes is seen"
    assert (
        next(element.state for element in phone.visible_elements() if element.name == "wifi_switch")
        == "on"
    )


def test_the_shade_opens_half_then_fully_and_back_closes_it(phone: AndroidSim) -> None:
    seen = []
    for action in (SWIPES["down"], SWIPES["down"], actions.SystemButton(button="back")):
        phone.act(action)
        seen.append(phone.phone.overlay)
    assert seen == ["notifications", "quick_settings", None]


def test_in_an_app_only_a_swipe_from_the_top_edge_opens_the_shade(phone: AndroidSim) -> None:
    phone.act(HOME)
    phone.act(OpenApp(package="com.android.settings"))
    phone.act(SWIPES["down"])
    assert phone.phone.overlay is None
    phone.act(actions.Swipe(x=180, y=5, to_x=180, to_y=300))
    assert phone.phone.overlay == "notifications"


def test_a_list_scrolls_by_what_the_finger_moved_and_stops_at_its_end(phone: AndroidSim) -> None:
    phone.act(OpenApp(package="com.android.settings"))
    phone.phone.scroll_px.clear()
    # 12 rows of 64 px in 516 px: 252 px to go.
    phone.act(actions.Scroll(x=180, y=300, scroll_y=100))
    assert phone.phone.scroll_px["com.android.settings/root"] == 100
    phone.act(SWIPES["up"])
    assert phone.phone.scroll_px["com.android.settings/root"] == 252
    phone.act(actions.Scroll(x=180, y=300, scroll_y=-1000))
    assert phone.phone.scroll_px["com.android.settings/root"] == 0


def test_recents_lead_back_to_an_app_as_it_was_left(
    phone: AndroidSim, tap: Callable[[str], None]
) -> None:
    phone.shell("am start -n com.android.settings/.Settings$DisplaySettingsActivity")
    left = phone.screenshot().png
    phone.act(OpenApp(package="com.android.chrome"))
    phone.act(RECENTS)
    tap("settings_card")
    assert phone.screenshot().png == left


def test_typed_text_and_tapped_keys_write_the_same(
    phone: AndroidSim, tap: Callable[[str], None]
) -> None:
    phone.act(OpenApp(package="com.android.chrome"))
    tap("url_bar")
    phone.act(Type(text="a.b"))
    typed = phone.screenshot().png
    for _ in range(3):
        tap("key_erase")
    for key in ("key_a", "key_dot", "key_b"):
        tap(key)
    assert phone.screenshot().png == typed
    tap("key_enter")
    assert phone.phone.page == "site:a.b"


def test_airplane_mode_takes_the_radios_along_and_gives_them_back(
    phone: AndroidSim, tap: Callable[[str], None]
) -> None:
    for command in ("airplane_mode_on 0", "wifi_on 1", "bluetooth_on 0"):
        phone.shell(f"settings put global {command}")
    phone.act(HOME)
    phone.act(SWIPES["down"])
    tap("airplane_tile")
    assert [
        phone.shell(f"settings get global {key}").strip()
        for key in ("airplane_mode_on", "wifi_on", "bluetooth_on")
    ] == ["1", "0", "0"]
    tap("airplane_tile")
    assert [
        phone.shell(f"settings get global {key}").strip()
        for key in ("airplane_mode_on", "wifi_on", "bluetooth_on")
    ] == ["0", "1", "0"]


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (Click(x=360, y=10), "360 x 640"),
        (Click(x=10, y=10, button="right"), "right button"),
        (actions.Move(x=1, y=1), "no pointer"),
        (Type(text="hello"), "no text field has the focus"),
        (OpenApp(package="no.such.app"), "no.such.app"),
        (actions.KeyPress(keys=("ctrl", "c")), "no key ctrl+c"),
    ],
)
def test_what_a_phone_cannot_do_is_refused_with_its_reason(
    phone: AndroidSim, action: Action, reason: str
) -> None:
    with pytest.raises(ActionRefusedError, match=reason.replace("+", r"\+")):
        phone.act(action)


def test_a_sleeping_phone_is_dark_and_only_a_button_wakes_it(phone: AndroidSim) -> None:
    shown = phone.screenshot().png
    phone.act(actions.SystemButton(button="power"))
    assert phone.picture().getextrema() == ((0, 0), (0, 0), (0, 0))
    phone.act(Click(x=100, y=100))
    assert phone.picture().getextrema() == ((0, 0), (0, 0), (0, 0))
    phone.act(actions.SystemButton(button="power"))
    assert phone.screenshot().png == shown


def test_a_screenshot_names_the_blob_of_its_png(phone: AndroidSim) -> None:
    screenshot = phone.screenshot()
    assert screenshot.ref == "blob:sha256:" + hashlib.sha256(screenshot.png).hexdigest()
    assert screenshot.ref is screenshot.ref, "hashed once"
