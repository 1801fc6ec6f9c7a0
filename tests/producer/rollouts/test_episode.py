"""An episode driven by hand, without threads: what it asks for, and how it ends."""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic
from typing import cast

import pytest

from producer.emit import Emitter
from producer.policy.policy import Completion, SampleRequest
from producer.rollouts.episode import Episode, EpisodeSettings
from producer.rollouts.plan import RolloutResult
from producer.rollouts.requests import (
    Act,
    Acted,
    Close,
    EpisodeAnswer,
    EpisodeFailedError,
    Judge,
    Open,
    Opened,
    Request,
    Sample,
    Sampled,
)
from schemas.actions import Action, Click
from schemas.environment import EnvironmentFailed, EnvironmentTerminated
from schemas.rollout import RolloutAgentInitialized, RolloutCancelled, RolloutFailed, RolloutStarted
from schemas.turn import TakenAction, TurnTaken
from tests.producer.rollouts.conftest import DEVICE, ROLLOUT, payloads_of, types_of
from tests.support.scripted import (
    SETTINGS,
    Devices,
    ScriptedEnvironment,
    ScriptedPolicy,
    click_then_stop,
    picture,
    plan,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Drive:
    """Performs requests on the spot, up to one at which the test steps in."""

    def __init__(
        self,
        emitter: Emitter,
        decide: Callable[[SampleRequest], Action] = click_then_stop,
        settings: EpisodeSettings = SETTINGS,
        action_s: float | None = None,
    ) -> None:
        """`action_s`: what each turn's actions are stated to take; None: what they do."""
        self.action_s = action_s
        self.environment = ScriptedEnvironment(Devices())
        self.policy = ScriptedPolicy(decide)
        self.episode = Episode(
            plan(0),
            self.environment,
            policy_name="scripted",
            policy_version=3,
            settings=settings,
            emitter=emitter,
            clock=lambda: NOW,
        )
        self.steps = self.episode.run()
        self.asked: list[type[Request]] = []
        self.result: RolloutResult | None = None

    def until(self, number: int = 1000) -> Request | None:
        """Answer so many requests; the one after them, None at the end."""
        request = next(self.steps)
        try:
            for _ in range(number):
                self.asked.append(type(request))
                request = self.steps.send(self._answer(request))
        except StopIteration as end:
            self.result = end.value
            return None
        return request

    def _answer(self, request: Request) -> EpisodeAnswer:
        if isinstance(request, Sample):
            (completion,) = self.policy.sample([request.request])
            return Sampled(completion, NOW, monotonic(), 0.25)
        answer = cast("EpisodeAnswer", request.perform(self.environment))
        if isinstance(answer, Acted) and self.action_s is not None:
            return replace(answer, seconds=self.action_s)
        return answer


def test_an_episode_opens_takes_turns_is_judged_and_closes(emitter: Emitter) -> None:
    drive = Drive(emitter)
    assert drive.until() is None
    assert drive.asked == [Open, Sample, Act, Sample, Act, Judge, Close]
    assert drive.result is not None
    assert (drive.result.success, drive.result.num_turns) == (True, 2)
    assert drive.environment.num_closes == 1


def test_time_that_the_policy_takes_never_ends_an_episode(emitter: Emitter) -> None:
    # Every turn takes longer than the limit, and no action takes any time.
    limited = SETTINGS.model_copy(update={"max_task_time_seconds": 1e-12})
    drive = Drive(emitter, settings=limited, action_s=0.0)
    drive.until()
    assert drive.result is not None
    assert (drive.result.success, drive.result.num_turns) == (True, 2)


@pytest.mark.parametrize(("limit_s", "num_turns"), [(7.0, 2), (8.0, 3), (12.0, 4)])
def test_an_episode_ends_with_the_turn_in_which_its_actions_have_taken_too_long(
    emitter: Emitter, limit_s: float, num_turns: int
) -> None:
    # 4 s a turn, and at most four turns: 4, 8, 12 and 16 s.
    limited = SETTINGS.model_copy(update={"max_task_time_seconds": limit_s})
    drive = Drive(emitter, lambda _request: Click(x=3, y=4), limited, action_s=4.0)
    drive.until()
    assert drive.result is not None
    assert drive.result.num_turns == num_turns


@pytest.mark.parametrize("number", range(7))
def test_closing_the_generator_cancels_at_any_request_and_leaves_the_device_to_the_caller(
    emitter: Emitter, number: int
) -> None:
    drive = Drive(emitter)
    assert drive.until(number) is not None
    drive.steps.close()
    drive.steps.close()
    cancelled = payloads_of(emitter, ROLLOUT)[-1]
    assert cancelled == RolloutCancelled(reason="the run was stopped", ended_at=NOW)
    assert drive.environment.num_closes == 0
    # It has not ended yet, so nothing says that it has.
    assert "environment.terminated" not in types_of(emitter, DEVICE)
    drive.episode.device.released()
    assert payloads_of(emitter, DEVICE)[-1] == EnvironmentTerminated(
        terminated_at=NOW, status_message="the run was stopped"
    )


@pytest.mark.parametrize("number", [0, 2, 5])
def test_a_failure_is_recorded_before_the_device_is_given_back_and_its_end_after(
    emitter: Emitter, number: int
) -> None:
    drive = Drive(emitter)
    drive.until(number)
    request = drive.steps.throw(EpisodeFailedError("environment", "the device died"))
    assert isinstance(request, Close)
    num_turns = {0: 0, 2: 0, 5: 2}[number]
    assert payloads_of(emitter, ROLLOUT)[-1] == RolloutFailed(
        error_type="environment",
        error_message="the device died",
        num_turns=num_turns,
        ended_at=NOW,
    )
    assert "environment.failed" not in types_of(emitter, DEVICE)
    with pytest.raises(StopIteration) as end:
        drive.steps.send(None)
    assert payloads_of(emitter, DEVICE)[-1] == EnvironmentFailed(
        error_message="the device died", terminated_at=NOW
    )
    result = end.value.value
    assert isinstance(result, RolloutResult)
    assert result.failure == RolloutFailed(
        error_type="environment",
        error_message="the device died",
        num_turns=num_turns,
        ended_at=NOW,
    )
    assert (result.is_scored, result.num_turns, result.turns) == (False, num_turns, ())
    with pytest.raises(ValueError, match="broke off and has no reward"):
        assert result.reward


def test_a_failure_of_20_mib_does_not_end_the_run_and_says_that_it_was_cut(
    emitter: Emitter,
) -> None:
    drive = Drive(emitter)
    drive.until(2)
    drive.steps.throw(EpisodeFailedError("environment", "x" * (20 << 20)))
    failed = payloads_of(emitter, ROLLOUT)[-1]
    assert isinstance(failed, RolloutFailed)
    assert failed.error_message.startswith("xxx")
    assert failed.error_message.endswith("more characters]")


def test_a_turn_of_any_size_becomes_an_event(emitter: Emitter) -> None:
    huge = TakenAction(
        tool_name="n" * (20 << 20),
        tool_args={"a": ["x" * (20 << 20)], "b" * (20 << 20): 1},
        action=None,
        error_type="parse",
        error_message="e" * (20 << 20),
    )
    drive = Drive(emitter)
    drive.until(1)
    drive.steps.send(
        Sampled(Completion("t" * (20 << 20), (huge,) * 1000, None), NOW, monotonic(), 0.25)
    )
    request = drive.steps.send(Acted(picture(1), (huge,) * 1000, 0.1))
    assert isinstance(request, Sample)
    (turn,) = [
        payload for payload in payloads_of(emitter, ROLLOUT) if isinstance(payload, TurnTaken)
    ]
    assert len(turn.actions) == 100
    assert turn.model_response.endswith("more characters]")


def test_nothing_more_is_asked_of_a_hung_device(emitter: Emitter) -> None:
    drive = Drive(emitter)
    drive.until(2)
    with pytest.raises(StopIteration) as end:
        drive.steps.throw(EpisodeFailedError("environment_timeout", "no answer", is_hung=True))
    assert end.value.value.failure.error_type == "environment_timeout"
    assert types_of(emitter, ROLLOUT)[-1] == "rollout.failed"


def test_a_device_that_hangs_while_it_is_given_back_keeps_the_failure_that_came_first(
    emitter: Emitter,
) -> None:
    drive = Drive(emitter)
    drive.until(2)
    drive.steps.throw(EpisodeFailedError("environment", "the device died"))
    with pytest.raises(StopIteration) as end:
        drive.steps.throw(EpisodeFailedError("environment_timeout", "no answer", is_hung=True))
    assert end.value.value.failure.error_message == "the device died"
    assert types_of(emitter, ROLLOUT).count("rollout.failed") == 1


def test_the_times_to_a_running_agent_are_measured_from_when_the_device_was_up(
    emitter: Emitter,
) -> None:
    drive = Drive(emitter)
    before_s = monotonic()
    next(drive.steps)
    up_s = monotonic()
    threading.Event().wait(0.02)  # the engine is busy with others
    drive.steps.send(Opened(picture(1), "scripted-1", up_s))
    payloads = payloads_of(emitter, ROLLOUT)
    initialized = next(
        payload for payload in payloads if isinstance(payload, RolloutAgentInitialized)
    )
    started = next(payload for payload in payloads if isinstance(payload, RolloutStarted))
    assert 0 <= initialized.env_creation_time_s <= up_s - before_s
    assert 0.02 <= started.agent_init_time_s <= monotonic() - up_s
    drive.steps.close()


def test_the_time_of_a_turn_is_from_its_batch_to_the_end_of_its_actions(emitter: Emitter) -> None:
    drive = Drive(emitter)
    drive.until(1)
    drive.steps.send(Sampled(Completion("wait", (), None), NOW, monotonic() - 5.0, 4.0))
    drive.steps.send(Acted(picture(2), (), 0.5))
    drive.steps.throw(EpisodeFailedError("environment", "died"))
    with pytest.raises(StopIteration) as end:
        drive.steps.send(None)
    assert 5.0 <= end.value.value.turn_seconds < 60.0
    turn = next(
        payload for payload in payloads_of(emitter, ROLLOUT) if isinstance(payload, TurnTaken)
    )
    assert turn.metrics == {"sample_s": 4.0, "environment_s": 0.5}
