"""The scripted policy of the pages: its noise, what it gives up on, and a page that it solves."""

from collections.abc import Sequence
from uuid import UUID

import pytest

from producer.agents import AGENTS
from producer.agents.miniwob import oracle_policy
from producer.agents.miniwob.environment import MiniWobEnvironment
from producer.agents.miniwob.oracle_policy import PageOracle
from producer.agents.miniwob.pages import web_pages
from producer.agents.miniwob.tasks import page_task
from producer.config import RunConfig
from producer.environments.environment import Screenshot
from producer.policy.policy import Completion, SampleRequest, Turn
from producer.validators.verdict import NO_EVIDENCE
from schemas.actions import Action, Click, Terminate
from schemas.turn import TakenAction
from tests.support.chromium import needs_chromium
from tests.support.scripted import picture

EPISODE = UUID(int=1)
TASK = page_task(web_pages()["click-test"])
SCREEN = Screenshot(picture(0).png, 160, 210)


def action_of(oracle: PageOracle, seed: int, history: Sequence[Action] = ()) -> Action | None:
    turns = [
        Turn(
            SCREEN, Completion("", (TakenAction(tool_name="", tool_args={}, action=action),), None)
        )
        for action in history
    ]
    oracle.attach(EPISODE, MiniWobEnvironment())
    request = SampleRequest(EPISODE, TASK, tuple(turns), SCREEN, 0.0, 10, seed)
    (completion,) = oracle.sample([request])
    (call,) = completion.actions
    return call.action


def test_noise_is_a_click_on_the_screen_that_follows_from_the_seed() -> None:
    clicks = [action_of(PageOracle(noise=1, seed=3), seed) for seed in range(20)]
    assert all(isinstance(one, Click) and one.x < 160 and one.y < 210 for one in clicks)
    assert len({str(one) for one in clicks}) > 10
    assert clicks == [action_of(PageOracle(noise=1, seed=3), seed) for seed in range(20)]


def test_it_is_told_the_actions_taken_and_gives_up_where_it_knows_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def knows_nothing(_page: MiniWobEnvironment, name: str, taken: Sequence[Action]) -> None:
        asked.append((name, [*taken]))

    monkeypatch.setattr(oracle_policy, "oracle_action", knows_nothing)
    first = Click(x=1, y=2)
    assert action_of(PageOracle(noise=0, seed=0), 0, [first]) == Terminate(status="failure")
    assert asked == [("click-test", [first])]


@needs_chromium
def test_a_page_without_an_oracle_has_no_next_action() -> None:
    page = MiniWobEnvironment()
    page.open(page_task(web_pages()["tic-tac-toe"]), 0)
    assert oracle_policy.oracle_action(page, "tic-tac-toe", []) is None
    page.close()


@needs_chromium
def test_it_solves_the_page_that_it_is_attached_to() -> None:
    settings = RunConfig(environment="miniwob", oracle_noise=0)
    oracle, make_environment = AGENTS["miniwob"].open_oracle(settings)
    page = make_environment(EPISODE)
    try:
        shown = page.open(TASK, 0)
        assert isinstance(shown, Screenshot)
        (completion,) = oracle.sample([SampleRequest(EPISODE, TASK, (), shown, 0.0, 10, 0)])
        (call,) = completion.actions
        assert call.action is not None
        assert page.act(call.action).is_over
        assert page.judge(TASK, NO_EVIDENCE).success
    finally:
        page.close()
