"""A device's calls have a time limit, a rubric has none of theirs."""

import math
from datetime import UTC, datetime
from queue import SimpleQueue
from time import monotonic

import pytest

from producer.emit import Emitter
from producer.environments.worker import JobDone
from producer.policy.policy import Completion
from producer.rollouts.episode import Episode
from producer.rollouts.requests import Grade, Sampled, StepScores
from producer.rollouts.running import RunningEpisode
from schemas.actions import Terminate
from schemas.completion import StepScore
from schemas.turn import TakenAction
from tests.support.scripted import SETTINGS, Devices, ScriptedEnvironment, plan

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STOP = TakenAction(tool_name="terminate", tool_args={}, action=Terminate())
SCORES = StepScores("prm", (StepScore(index=0, text="a", first_token=0, last_token=1, score=0.5),))


def graded(*_asked: object) -> Grade:
    return Grade(scores=SCORES)


@pytest.mark.parametrize("has_rubric", [False, True])
def test_only_a_rubric_has_not_the_time_limit_of_a_device(
    emitter: Emitter, *, has_rubric: bool
) -> None:
    device = ScriptedEnvironment(Devices())
    episode = Episode(
        plan(0),
        device,
        policy_name="scripted",
        policy_version=3,
        settings=SETTINGS.model_copy(update={"rubric": graded if has_rubric else None}),
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
    assert running.deadline_s < math.inf  # judging
    running.on_job(done.get(timeout=10.0))
    if has_rubric:
        assert running.deadline_s == math.inf
        running.on_job(done.get(timeout=10.0))
    assert running.deadline_s < math.inf  # closing
    running.on_job(done.get(timeout=10.0))
    assert running.is_over
