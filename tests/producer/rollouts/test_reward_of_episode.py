"""An episode's reward by a function of the user's, and the turn that first solved the task."""

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from queue import SimpleQueue
from time import monotonic
from typing import cast
from uuid import UUID

import pytest

from producer.agents.text_to_sql.environment import completion_facts
from producer.emit import Emitter
from producer.environments.worker import JobDone
from producer.policy.policy import Completion, SampleRequest
from producer.process_rewards.row_sets import Comparison
from producer.rewards import Outcome
from producer.rollouts.episode import Episode, EpisodeSettings
from producer.rollouts.events import end_facts
from producer.rollouts.plan import RolloutResult
from producer.rollouts.requests import (
    NO_GRADE,
    CompletionReward,
    EpisodeAnswer,
    Grade,
    Judged,
    Sample,
    Sampled,
    StepScores,
)
from producer.rollouts.running import RunningEpisode
from producer.validators.verdict import Verdict
from schemas.actions import Action, Click, Terminate
from schemas.completion import CompletionExecuted, CompletionStepsScored, StepScore
from schemas.environment import EnvironmentTerminated
from schemas.rollout import RolloutFailed, RolloutFinished
from tests.producer.rollouts.conftest import DEVICE, ROLLOUT, payloads_of
from tests.support.scripted import SETTINGS, Devices, ScriptedEnvironment, ScriptedPolicy, plan

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def run_episode(
    emitter: Emitter, settings: EpisodeSettings, decide: Callable[[SampleRequest], Action]
) -> RolloutResult:
    environment, policy = ScriptedEnvironment(Devices()), ScriptedPolicy(decide)
    steps = Episode(
        plan(0),
        environment,
        policy_name="scripted",
        policy_version=0,
        settings=settings,
        emitter=emitter,
        clock=lambda: NOW,
    ).run()
    request = next(steps)
    while True:
        if isinstance(request, Sample):
            (completion,) = policy.sample([request.request])
            answer: EpisodeAnswer = Sampled(completion, NOW, monotonic(), 0.25)
        else:
            answer = cast("EpisodeAnswer", request.perform(environment))
        try:
            request = steps.send(answer)
        except StopIteration as end:
            return cast("RolloutResult", end.value)


def click_three_times(request: SampleRequest) -> Action:
    """Clicks, the first of which solves the task, then says so on the fourth turn."""
    turn = len(request.history) + 1
    return Terminate() if turn == 4 else Click(x=1, y=1)


def finished(emitter: Emitter) -> RolloutFinished:
    last = payloads_of(emitter, ROLLOUT)[-1]
    assert isinstance(last, RolloutFinished)
    return last


@pytest.mark.parametrize(("is_asked", "expected"), [(True, 1), (False, None)])
def test_the_first_turn_after_which_the_task_was_solved_is_known_if_the_validator_is_asked(
    emitter: Emitter, is_asked: bool, expected: int | None
) -> None:
    settings = SETTINGS.model_copy(update={"validate_every_turn": is_asked})
    run_episode(emitter, settings, click_three_times)
    assert finished(emitter).num_turns == 4
    assert finished(emitter).turn_first_success == expected


def test_an_episode_that_never_solves_its_task_has_no_first_success(emitter: Emitter) -> None:
    settings = SETTINGS.model_copy(update={"validate_every_turn": True})
    run_episode(emitter, settings, lambda _: Terminate())
    assert finished(emitter).turn_first_success is None


def test_a_reward_is_given_the_whole_outcome_and_the_costs_come_off(emitter: Emitter) -> None:
    outcomes: list[Outcome] = []

    def reward(outcome: Outcome) -> float:
        outcomes.append(outcome)
        return 5.0

    settings = SETTINGS.model_copy(update={"reward": reward, "validate_every_turn": True})
    result = run_episode(emitter, settings, click_three_times)
    assert result.reward == pytest.approx(5.0 - 4 * 0.02)
    assert outcomes == [
        Outcome(
            success=True,
            num_turns=4,
            max_turns=4,
            attempted_completion=True,
            reported_success=True,
            ran_out_of_turns=False,
            ran_out_of_time=False,
            parse_errors=0,
            tool_name_errors=0,
            tool_arg_errors=0,
            runtime_errors=0,
            num_actions=4,
            repeated_actions=2,
            num_tokens=0,
            turn_first_success=1,
            task_id="wifi",
        )
    ]


def test_a_user_s_reward_is_not_cut_off_by_the_time_limit_of_the_device(emitter: Emitter) -> None:
    """It has one of its own, and may wait for those of other rollouts."""
    while_rewarding: list[float] = []

    def rubric(
        _environment: object, _task: object, completion: Completion, _verdict: object
    ) -> Grade:
        while_rewarding.append(running.deadline_s)
        return Grade(reward=CompletionReward(len(completion.text) + 0.5))

    environment, policy = ScriptedEnvironment(Devices()), ScriptedPolicy(lambda _: Terminate())
    episode = Episode(
        plan(0),
        environment,
        policy_name="scripted",
        policy_version=0,
        settings=SETTINGS.model_copy(update={"rubric": rubric, "turn_cost": 0.0}),
        emitter=emitter,
        clock=lambda: NOW,
    )
    done: SimpleQueue[JobDone[RunningEpisode]] = SimpleQueue()
    running = RunningEpisode(episode, environment, done, max_answer_s=1000.0)
    running.begin()
    while not running.is_over:
        if running.sample is not None:
            (completion,) = policy.sample([running.sample.request])
            running.answer(Sampled(completion, NOW, monotonic(), 0.25))
        else:
            running.on_job(done.get(timeout=100))
    assert while_rewarding == [math.inf]
    assert running.result is not None
    assert running.result.reward == len("terminate") + 0.5


def test_a_reward_that_raises_fails_the_attempt_and_blames_no_device(emitter: Emitter) -> None:
    def broken(_outcome: Outcome) -> float:
        message = "no such key"
        raise KeyError(message)

    result = run_episode(emitter, SETTINGS.model_copy(update={"reward": broken}), click_three_times)
    assert (result.is_scored, result.num_turns) == (False, 4)
    assert result.failure is not None
    assert result.failure.error_type == "reward"
    assert payloads_of(emitter, ROLLOUT)[-1] == RolloutFailed(
        error_type="reward",
        error_message="the reward raised KeyError: 'no such key'",
        num_turns=4,
        ended_at=NOW,
    )
    assert payloads_of(emitter, DEVICE)[-1] == EnvironmentTerminated(terminated_at=NOW)


def test_a_scored_completion_is_recorded_with_the_mean_of_its_steps_scores() -> None:
    facts = completion_facts("SELECT 1", Comparison("incorrect"))
    verdict = Verdict(False, "", None, None, facts=facts)
    stated = replace(plan(0).stated, entry_row_id=UUID(int=1))
    of_an_entry = replace(plan(0), stated=stated)
    steps = tuple(
        StepScore(index=index, text="", first_token=index, last_token=index + 1, score=score)
        for index, score in enumerate((0.25, 1.0, 0.5, 0.25))
    )
    judged, grade = Judged(verdict, 0.0), Grade(scores=StepScores("prm", steps))
    executed, scored = end_facts(of_an_entry, judged, grade, NOW)
    assert isinstance(executed, CompletionExecuted)
    assert isinstance(scored, CompletionStepsScored)
    assert (executed.outcome_reward, executed.process_reward, scored.average) == (0.0, 0.5, 0.5)
    (unscored,) = end_facts(of_an_entry, judged, NO_GRADE, NOW)
    assert unscored == executed.model_copy(update={"process_reward": None})
