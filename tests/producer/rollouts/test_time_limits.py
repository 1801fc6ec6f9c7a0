"""Whose time counts: a device's calls have a limit, networks that judge steps have none."""

import math
from dataclasses import replace
from datetime import UTC, datetime
from queue import SimpleQueue
from time import monotonic

import pytest

from producer.emit import Emitter
from producer.environments.worker import JobDone
from producer.policy.policy import Completion
from producer.rollouts.episode import Episode
from producer.rollouts.requests import Sampled, StepScores
from producer.rollouts.running import RunningEpisode
from producer.task import Task
from schemas.actions import Terminate
from schemas.completion import StepScore
from schemas.turn import TakenAction
from tests.support.scripted import SETTINGS, Devices, ScriptedEnvironment, plan

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STOP = TakenAction(tool_name="terminate", tool_args={}, action=Terminate())
SCORES = StepScores("prm", (StepScore(index=0, text="a", first_token=0, last_token=1, score=0.5),))


class LabellingEnvironment(ScriptedEnvironment):
    labels_steps = True


def scored(_task: Task, _completion: Completion) -> StepScores:
    return SCORES


@pytest.mark.parametrize(
    ("environment", "scores_steps", "is_limited"),
    [
        (ScriptedEnvironment, False, True),
        (ScriptedEnvironment, True, False),
        (LabellingEnvironment, False, False),
    ],
)
def test_only_a_judge_that_waits_for_no_network_has_the_time_limit_of_a_device(
    emitter: Emitter,
    environment: type[ScriptedEnvironment],
    *,
    scores_steps: bool,
    is_limited: bool,
) -> None:
    device = environment(Devices())
    episode = Episode(
        plan(0),
        device,
        policy_name="scripted",
        policy_version=3,
        settings=replace(SETTINGS, score_steps=scored if scores_steps else None),
        emitter=emitter,
        clock=lambda: NOW,
    )
    done: SimpleQueue[JobDone[RunningEpisode]] = SimpleQueue()
    running = RunningEpisode(episode, device, done, max_answer_s=30.0)
    running.begin()
    assert running.deadline_s < math.inf  # opening
    running.on_job(done.get(timeout=10.0))
    running.answer(Sampled(Completion("stop", (STOP,), None), NOW, monotonic(), 0.25))
    assert running.deadline_s < math.inf  # acting
    running.on_job(done.get(timeout=10.0))
    assert (running.deadline_s < math.inf) is is_limited  # judging
    running.on_job(done.get(timeout=10.0))
    assert running.deadline_s < math.inf  # closing
    running.on_job(done.get(timeout=10.0))
    assert running.is_over
