"""Each oracle solves its page, by mouse and keys."""

from concurrent.futures import ThreadPoolExecutor

from producer.agents.miniwob.browsers import Browsers
from producer.agents.miniwob.environment import MiniWobEnvironment
from producer.agents.miniwob.oracle_policy import oracle_action
from producer.agents.miniwob.pages import WebPage, web_pages
from producer.agents.miniwob.tasks import page_task
from producer.validators.verdict import NO_EVIDENCE
from schemas.actions import Action
from tests.support.chromium import needs_chromium
from tests.support.profiles import is_long

pytestmark = needs_chromium
NUM_AT_ONCE = 4
SCRIPTED = [page for page in web_pages().values() if page.split]
PAGES = SCRIPTED if is_long() else SCRIPTED[::8]
SEEDS = (0, 1) if is_long() else (0,)


def fault(browsers: Browsers, page: WebPage, seed: int) -> str | None:
    """Why the oracle does not solve the page; None: it does."""
    environment, task = MiniWobEnvironment(browsers), page_task(page)
    try:
        shown = environment.open(task, seed)
        text, taken = shown.text, list[Action]()
        while not shown.is_over and len(taken) < page.max_steps:
            action = oracle_action(environment, page.name, taken)
            if action is None:
                return f"seed {seed}, {text}: no action after {taken}"
            taken.append(action)
            shown = environment.act(action)
        verdict = environment.judge(task, NO_EVIDENCE)
        return None if verdict.success else f"seed {seed}, {text}: {verdict.actual} after {taken}"
    finally:
        environment.close()


def test_oracles_solve_their_pages() -> None:
    """One test, so that one browser runs them all; an eighth of the pages, or all of them."""
    browsers = Browsers()
    try:
        with ThreadPoolExecutor(NUM_AT_ONCE) as pool:
            found = {
                page.name: [pool.submit(fault, browsers, page, seed) for seed in SEEDS]
                for page in PAGES
            }
        faults = {
            name: [text for each in runs if (text := each.result())] for name, runs in found.items()
        }
    finally:
        browsers.stop()
    assert {name: texts for name, texts in faults.items() if texts} == {}
