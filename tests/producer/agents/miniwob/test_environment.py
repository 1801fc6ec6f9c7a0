"""Pages of MiniWoB++ in a real Chromium."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from time import sleep

import psutil
import pytest

from producer.agents.miniwob.browsers import ANSWER_LIMIT_S, WINDOW_LIMIT_S, Browsers
from producer.agents.miniwob.chromium import Chromium
from producer.agents.miniwob.environment import MiniWobEnvironment
from producer.agents.miniwob.pages import web_pages
from producer.agents.miniwob.tasks import page_task
from producer.environments.environment import EnvironmentFailedError, Screenshot
from producer.task import Task
from producer.validators.verdict import NO_EVIDENCE
from schemas.actions import Action, Click, KeyPress, Move, Scroll, Type, Wait
from tests.support.chromium import needs_chromium
from tests.support.eventually import eventually

pytestmark = needs_chromium
BOX = """() => {
  const box = document.querySelector(%r).getBoundingClientRect();
  return [box.x, box.y];
}"""


@pytest.fixture(scope="module")
def browsers() -> Iterator[Browsers]:
    made = Browsers()
    yield made
    made.stop()


@pytest.fixture
def page(browsers: Browsers) -> Iterator[MiniWobEnvironment]:
    made = MiniWobEnvironment(browsers)
    yield made
    made.close()


def task(name: str) -> Task:
    return page_task(web_pages()[name])


def click(page: MiniWobEnvironment, selector: str) -> Screenshot:
    box = page.evaluate(BOX % selector)
    assert isinstance(box, list)
    return page.act(Click(x=int(box[0]) + 3, y=int(box[1]) + 3))


def test_the_same_page_and_seed_show_the_same_bytes_and_another_seed_others(
    page: MiniWobEnvironment,
) -> None:
    first = page.open(task("click-test-2"), 3).png
    assert page.open(task("click-test-2"), 3).png == first
    assert page.open(task("click-test-2"), 4).png != first


def test_what_moves_by_itself_moves_with_the_actions_and_not_with_the_clock(
    page: MiniWobEnvironment,
) -> None:
    actions: list[Action] = [Wait(duration_s=0.3), Move(x=50, y=90), Wait(duration_s=2.0)]

    def screens(pause_s: float) -> list[bytes]:
        shown = [page.open(task("chase-circle"), 1).png]
        for action in actions:
            sleep(pause_s)
            shown.append(page.act(action).png)
        return shown

    quick = screens(0)
    assert len(set(quick)) == 4
    assert screens(0.2) == quick


def test_the_page_says_what_it_wants_ends_the_episode_and_judges_it(
    page: MiniWobEnvironment,
) -> None:
    asked = task("click-test-2")
    shown = page.open(asked, 1)
    assert (shown.text, shown.is_over) == ("Click button ONE.", False)
    undecided = page.judge(asked, NO_EVIDENCE)
    assert (undecided.success, undecided.actual) == (False, None)
    assert click(page, "#subbtn").is_over
    right = page.judge(asked, NO_EVIDENCE)
    assert (right.success, right.actual) == (True, "1")

    page.open(asked, 1)
    assert click(page, "#subbtn2").is_over
    wrong = page.judge(asked, NO_EVIDENCE)
    assert (wrong.success, wrong.actual) == (False, "-1")


def test_an_instruction_with_fields_is_shown_as_its_sentence(page: MiniWobEnvironment) -> None:
    text = page.open(task("email-inbox-forward-nl"), 1).text
    assert text
    assert not text.startswith("{")
    assert "NAME" not in text


def test_time_ends_no_episode_and_takes_nothing_from_the_reward(page: MiniWobEnvironment) -> None:
    asked = task("click-test")
    page.open(asked, 1)
    assert not page.act(Wait(duration_s=60)).is_over
    assert click(page, "#subbtn").is_over
    assert page.judge(asked, NO_EVIDENCE).actual == "1"


def test_keys_and_the_wheel_reach_the_page(page: MiniWobEnvironment) -> None:
    page.open(task("enter-text"), 1)
    click(page, "#tt")
    page.act(Type(text="Wrong"))
    page.act(KeyPress(keys=("ctrl", "a")))
    page.act(Type(text="Ann"))
    assert page.evaluate("() => document.querySelector('#tt').value") == "Ann"

    page.open(task("scroll-text"), 1)
    before = page.evaluate("() => document.querySelector('#text-area').scrollTop")
    page.act(Scroll(x=60, y=100, scroll_y=30))
    assert (before, page.evaluate("() => document.querySelector('#text-area').scrollTop")) == (
        0,
        30,
    )


def test_a_page_reaches_no_network(page: MiniWobEnvironment) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.5)
        page.open(task("click-test"), 1)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        failed = page.evaluate("url => fetch(url).then(() => 'reached', () => 'failed')", url)
        assert failed == "failed"
        with pytest.raises(TimeoutError):
            server.accept()


def test_a_browser_that_ends_fails_its_pages_and_the_next_attempt_gets_another(
    browsers: Browsers, page: MiniWobEnvironment
) -> None:
    page.open(task("click-test"), 1)
    (pid,) = browsers.pids
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(EnvironmentFailedError):
        page.act(Click(x=1, y=1))
    page.open(task("click-test"), 1)
    assert browsers.pids != [pid]
    assert len(browsers.pids) == 1


def test_a_browser_that_ended_unnoticed_is_replaced(
    browsers: Browsers, page: MiniWobEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection learns of the end a moment after the process is gone."""
    page.open(task("click-test"), 1)
    (pid,) = browsers.pids
    monkeypatch.setattr(Chromium, "is_running", True)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not psutil.pid_exists(pid))
    assert page.open(task("click-test"), 1).text


def test_a_page_that_hangs_fails_alone_and_a_browser_that_hangs_is_replaced() -> None:
    browsers = Browsers()
    hanging, other = MiniWobEnvironment(browsers), MiniWobEnvironment(browsers)
    try:
        hanging.open(task("click-test"), 1)
        other.open(task("click-test"), 1)
        browsers.answer_limit_s = 1
        with pytest.raises(EnvironmentFailedError, match="did not answer within 1 s"):
            hanging.evaluate("() => { while (true) {} }")
        browsers.answer_limit_s = ANSWER_LIMIT_S
        hanging.close()
        assert not other.act(Click(x=1, y=60)).is_over
        (pid,) = browsers.pids
        os.kill(pid, signal.SIGSTOP)
        browsers.answer_limit_s, browsers.window_limit_s = 3, 1
        with pytest.raises(EnvironmentFailedError):
            other.act(Click(x=1, y=60))
        other.close()
        eventually(lambda: not psutil.pid_exists(pid))
        browsers.answer_limit_s, browsers.window_limit_s = ANSWER_LIMIT_S, WINDOW_LIMIT_S
        assert other.open(task("click-test"), 1).text
        assert browsers.pids != [pid]
    finally:
        browsers.stop()


def is_renderer(process: psutil.Process) -> bool:
    try:
        return "--type=renderer" in process.cmdline()
    except psutil.Error:  # it has ended
        return False


def test_nothing_is_left_of_an_episode(browsers: Browsers) -> None:
    page = MiniWobEnvironment(browsers)
    for seed in range(6):
        page.open(task("click-test"), seed)
    (pid,) = browsers.pids
    assert browsers.num_open == 1
    page.close()
    assert browsers.num_open == 0
    family = psutil.Process(pid)
    # Chromium keeps one renderer ready for the next page.
    eventually(lambda: sum(map(is_renderer, family.children(recursive=True))) <= 1)


HOLDS_A_PAGE = """
import sys, time
from producer.agents.miniwob.browsers import shared_browsers
from producer.agents.miniwob.environment import MiniWobEnvironment
from producer.agents.miniwob.pages import web_pages
from producer.agents.miniwob.tasks import page_task
page = MiniWobEnvironment()
page.open(page_task(web_pages()["click-test"]), 1)
print(*shared_browsers().pids, flush=True)
time.sleep(60 if sys.argv[1:] else 0)
"""


def test_a_killed_process_leaves_no_browser_behind() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS_A_PAGE, "wait"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        family = [psutil.Process(pid), *psutil.Process(process.pid).children(recursive=True)]
        process.kill()
    assert len(family) > 2
    eventually(lambda: not any(each.is_running() for each in family))


def test_a_process_that_ends_by_itself_ends_its_browser_and_says_nothing() -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", HOLDS_A_PAGE],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ended.stderr == ""
    eventually(lambda: not psutil.pid_exists(int(ended.stdout)))
