"""Demonstrations of the pages that one click solves: their clicks, and the elements named."""

import io
from concurrent.futures import ThreadPoolExecutor
from random import Random

from PIL import Image

from producer.agents.android.policy.demonstrations import DemonstratedTurn, Demonstration
from producer.agents.android.sim.screens.widget import Element
from producer.agents.miniwob.environment import MiniWobEnvironment
from producer.agents.miniwob.oracle_policy import oracle_action
from producer.agents.miniwob.pages import web_pages
from producer.agents.miniwob.policy.demonstrations import demonstrate, shifted, visible_elements
from producer.agents.miniwob.policy.recipe import HELD_OUT_PAGES, TRAINED_PAGES
from producer.agents.miniwob.tasks import page_task
from producer.codecs.compact import CompactCodec
from producer.seeds import derived_seed
from producer.task import Task
from producer.validators.verdict import NO_EVIDENCE
from tests.support.chromium import needs_chromium
from tests.support.profiles import is_long

NUM_AT_ONCE = 4


def task(name: str) -> Task:
    return page_task(web_pages()[name])


def fault(name: str) -> str | None:
    """What is wrong with the third demonstration of a page, which was not loaded anew for it."""
    *_, shown = demonstrate(task(name), range(3))
    (turn,) = shown.turns
    environment = MiniWobEnvironment()
    try:
        first = environment.open(task(name), derived_seed("demonstration-page", name, 2))
        if Image.open(io.BytesIO(first.png)).convert("RGB") != shown.screens[0]:
            return "a page that is loaded anew looks different"
        if not shown.task.description.endswith(f"\n\n{first.text}"):
            return f"{first.text} is not in {shown.task.description}"
        (call,) = CompactCodec().parse(turn.text, 160, 210)
        if call.action is None or not environment.act(call.action).is_over:
            return f"{turn.text} does not end the episode"
        verdict = environment.judge(task(name), NO_EVIDENCE)
        return None if verdict.success else f"{turn.text} is wrong: {verdict.actual}"
    finally:
        environment.close()


@needs_chromium
def test_a_demonstration_is_the_click_that_solves_the_page_of_its_seed() -> None:
    names = [*TRAINED_PAGES, *HELD_OUT_PAGES][:: 1 if is_long() else 4]
    with ThreadPoolExecutor(NUM_AT_ONCE) as pool:
        faults = dict(zip(names, pool.map(fault, names), strict=True))
    assert {name: text for name, text in faults.items() if text} == {}


@needs_chromium
def test_an_element_has_the_words_that_it_shows_and_a_box_around_its_middle() -> None:
    environment = MiniWobEnvironment()
    try:
        environment.open(task("click-test-2"), 1)
        assert oracle_action(environment, "click-test-2", []) is not None
        found = {element.label: element.box for element in visible_elements(environment)}
        assert {*found} == {"ONE", "TWO"}
        for label, selector in (("ONE", "#subbtn"), ("TWO", "#subbtn2")):
            place = environment.evaluate(
                "name => { const box = document.querySelector(name).getBoundingClientRect();"
                " return [box.left, box.top, box.right, box.bottom]; }",
                selector,
            )
            assert isinstance(place, list)
            assert all(abs(a - b) <= 1 for a, b in zip(found[label], place, strict=True))
    finally:
        environment.close()


def test_a_moved_screen_moves_its_elements_and_drops_those_that_leave_it() -> None:
    screen = Image.new("RGB", (160, 210), "white")
    screen.putpixel((50, 60), (255, 0, 0))
    inside = Element("", "ok", (40, 50, 60, 70), None)
    at_the_edge = Element("", "x", (0, 0, 2, 2), None)
    turn = DemonstratedTurn((inside, at_the_edge), "click(ok 31,ok 28)", is_noise=False)
    seen = set()
    for seed in range(200):
        moved = shifted(Demonstration(task("click-button"), (screen,), (turn,)), Random(seed))
        (own,), (image,) = moved.turns, moved.screens
        left, top, right, bottom = own.elements[0].box
        dx, dy = left - 40, top - 50
        assert (right - left, bottom - top) == (20, 20)
        assert image.getpixel((50 + dx, 60 + dy)) == (255, 0, 0)
        # The middle of the second element is at (1, 1).
        assert (len(own.elements) == 2) == (dx >= -1 and dy >= -1)
        assert (own.text, own.is_noise) == ("", True)
        seen |= {dx, dy}
    assert seen == set(range(-8, 9))
