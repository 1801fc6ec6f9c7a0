"""Environments that show a screen with words, judge by themselves and end the episode."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from producer.emit import Emitter
from producer.environments.environment import Screenshot
from producer.environments.wrapper import BlankedEnvironment
from producer.policy.policy import Completion, SampleRequest, Turn
from producer.policy.prompts import chat_messages
from producer.resume.recorded_rollouts import recorded_turns
from producer.rollouts.engine import RolloutEngine
from producer.rollouts.plan import StatedTask
from producer.rollouts.requests import Act
from producer.task import Task
from producer.tasks.statements import task_facts
from producer.validators.verdict import Evidence, Verdict
from schemas.actions import Action, Click
from schemas.turn import TakenAction, TurnTaken
from schemas.validation import ValidationRecorded
from tests.producer.rollouts.conftest import ROLLOUT, payloads_of
from tests.support.scripted import SETTINGS, ScriptedPolicy, picture, plan

TASK = Task(
    "page", "A page", "Do as the page asks.", None, None, 5, None, None, judge="environment"
)


class Page:
    """Names a button in words and ends the episode with its third click."""

    env_type, box_type, is_simulated, ends_on_parse_error = "page", "linux", False, False
    provider_id = "page-1"

    def __init__(self) -> None:
        self.num_clicks = 0

    def open(self, task: Task, seed: int) -> Screenshot:
        assert task.judge == "environment"
        return self._shown(f"Click button {seed}.")

    def act(self, action: Action) -> Screenshot:
        assert isinstance(action, Click)
        self.num_clicks += 1
        return self._shown(f"Clicked {self.num_clicks} times.")

    def _shown(self, text: str) -> Screenshot:
        screen = picture(self.num_clicks)
        return Screenshot(screen.png, 32, 48, text=text, is_over=self.num_clicks == 3)

    def judge(self, task: Task, evidence: Evidence) -> Verdict:
        assert (task.task_id, evidence.num_turns) == ("page", 3)
        return Verdict(self.num_clicks == 3, "environment", None, str(self.num_clicks))

    def failure_facts(self, evidence: Evidence, reason: str) -> None:
        raise AssertionError((evidence, reason))

    def close(self) -> None:
        pass


def test_words_are_recorded_with_the_screen_and_the_environment_ends_and_judges_the_episode(
    emitter: Emitter,
) -> None:
    requests: list[SampleRequest] = []

    def decide(request: SampleRequest) -> Action:
        requests.append(request)
        return Click(x=1, y=1)

    row, validator = task_facts(TASK)
    assert validator is not None
    assert (row.validation_type, validator.validation_query) == ("environment", "environment")
    asked = replace(plan(0), stated=StatedTask(TASK, row.id, validator.id), seed=7)
    engine = RolloutEngine(
        policy=ScriptedPolicy(decide, has_tokens=True),
        make_environment=lambda _plan: Page(),
        settings=SETTINGS,
        max_concurrent=1,
        emitter=emitter,
        clock=lambda: datetime.now(UTC),
        on_begin=lambda _plan: None,
        check_stop=lambda: None,
    )
    engine.submit(asked)
    (result,) = engine.run()

    assert (result.success, result.num_turns) == (True, 3)
    payloads = payloads_of(emitter, ROLLOUT)
    turns = [payload for payload in payloads if isinstance(payload, TurnTaken)]
    first, second = "Do as the page asks.\n\nClick button 7.", "Clicked 1 times."
    assert [turn.text for turn in turns] == [first, second, "Clicked 2 times."]
    assert [turn.episode_done for turn in turns] == [False, False, True]
    (verdict,) = [payload for payload in payloads if isinstance(payload, ValidationRecorded)]
    assert (verdict.success, verdict.actual_result) == (True, "3")

    blobs = {turn.observation.ref: turn.observation.png for turn in result.turns}  # type: ignore[union-attr]
    again = recorded_turns(turns, TASK.description, blobs.__getitem__)
    assert again is not None
    assert [turn.observation.text for turn in again] == ["Click button 7.", second, turns[2].text]


def a_request(start_screen: str | None, *later: str | None) -> SampleRequest:
    texts = [start_screen, *later]
    screens = [Screenshot(picture(at).png, 32, 48, text=text) for at, text in enumerate(texts)]
    history = tuple(Turn(screen, Completion("ok", (), None)) for screen in screens[:-1])
    last = screens[-1]
    return SampleRequest(UUID(int=1), TASK, history, last, 0.0, 10, 1, text=last.text)


def test_a_prompt_that_begins_later_keeps_the_first_words_which_may_be_the_instruction() -> None:
    request = a_request("Click OK.", "Again.", None, "Now Cancel.")
    assert request.text_after_description(0) == "Click OK."
    assert request.text_after_description(1) == "Click OK.\n\nAgain."
    assert request.text_after_description(2) == "Click OK."
    assert a_request(None, None).text_after_description(1) is None


def test_a_chat_has_the_words_of_every_turn_that_it_shows() -> None:
    def texts(recent: int | None) -> list[str | None]:
        request = a_request("Click OK.", "Again.", None, "Now.")
        messages: list[Any] = chat_messages(request, None, recent)
        contents = [message["content"] for message in messages if message["role"] == "user"]
        return [
            next((part["text"] for part in content if part["type"] == "text"), None)
            for content in contents
        ]

    assert texts(None) == ["Do as the page asks.\n\nClick OK.", "Again.", None, "Now."]
    assert texts(2) == ["Do as the page asks.\n\nClick OK.\n\nAgain.", None, "Now."]
    assert texts(0) == ["Do as the page asks.\n\nClick OK.\n\nNow."]


def test_a_blanked_screen_keeps_its_words_and_the_episodes_end() -> None:
    blanked, page = BlankedEnvironment(Page()), Page()
    assert blanked.open(TASK, 3).text == page.open(TASK, 3).text
    shown = [blanked.act(Click(x=1, y=1)) for _ in range(3)]
    assert [screen.is_over for screen in shown] == [False, False, True]
    assert shown[2].text == "Clicked 3 times."
    assert shown[0].png == shown[2].png  # type: ignore[union-attr]


def test_no_action_follows_the_one_that_ended_the_episode() -> None:
    page = Page()
    click = TakenAction(tool_name="click", tool_args={}, action=Click(x=1, y=1))
    acted = Act((click,) * 5, page.open(TASK, 0)).perform(page)
    assert (len(acted.actions), page.num_clicks) == (3, 3)
    assert acted.observation.is_over
