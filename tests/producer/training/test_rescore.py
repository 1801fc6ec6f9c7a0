"""A training's rollouts are scored again as new facts beside the old ones."""

import threading
from dataclasses import replace
from typing import Any

import pytest

from producer.errors import NotFoundError, StopRequestedError
from producer.rewards import REWARDS, Outcome
from producer.training.rescore import Rescored, Scorer, rescore
from producer.training.run import run, utc_now
from producer.validators.model_judge import ModelJudge
from schemas.ids import training_id
from schemas.installation import Installation
from tests.producer.training.conftest import Trained
from tests.support.chat_server import ChatServer
from tests.support.reading import ReadLog, of_type
from tests.support.small_run import small

BINARY = Scorer(reward_name="binary", reward=REWARDS["binary"], config={})


def score_again(installation: Installation, scorer: Scorer) -> Rescored:
    return rescore(installation, "small", scorer, clock=utc_now, stop=threading.Event())


def finished_by_rollout(events: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        event["subject"].partition("/")[2]: event["data"]
        for event in events
        if event["type"] == "cua.rollout.finished"
    }


def test_the_rewards_own_settings_give_the_recorded_rewards_again(
    installation: Installation, read_log: ReadLog
) -> None:
    config = small(num_steps=1, turn_cost=0.03, parse_error_cost=0.2, reward="efficiency")
    run(config, installation=installation)
    before = read_log()
    scorer = Scorer(
        reward_name="efficiency",
        reward=REWARDS["efficiency"],
        turn_cost=0.03,
        parse_error_cost=0.2,
        config={},
    )
    summary = score_again(installation, scorer)
    recorded = finished_by_rollout(before)
    assert len(recorded) == 2 * 3 + 2 * 4
    scored = of_type(read_log(), "scoring.rollout_scored")
    assert {item["rollout_id"]: item["reward"] for item in scored} == {
        rollout: finished["reward"] for rollout, finished in recorded.items()
    }
    assert summary.reward_mean == summary.reward_mean_before
    assert summary.success_rate == summary.success_rate_before


def test_new_scores_are_events_of_their_own_stream_and_change_no_other(
    trained: Trained, read_log: ReadLog
) -> None:
    installation = trained(num_steps=1)
    before = read_log()
    summaries = [score_again(installation, BINARY) for _ in range(2)]
    after = read_log()
    known = [event for event in after if not event["subject"].startswith("scoring/")]
    assert known == before
    streams = {event["subject"] for event in after} - {event["subject"] for event in before}
    assert streams == {f"scoring/{summary.scoring_id}" for summary in summaries}
    assert len(streams) == 2
    created = of_type(after, "scoring.created")
    assert {item["training_id"] for item in created} == {str(training_id("small"))}
    assert {item["total_rollouts"] for item in created} == {14}
    finished = of_type(after, "scoring.finished")
    assert [(item["scored_rollouts"], item["failed_rollouts"]) for item in finished] == [
        (14, 0)
    ] * 2


def test_turns_and_claims_reach_the_reward(trained: Trained, read_log: ReadLog) -> None:
    installation = trained(num_steps=1)
    seen: list[Outcome] = []

    def spy(outcome: Outcome) -> float:
        seen.append(outcome)
        return outcome.num_turns + 100.0 * outcome.attempted_completion

    score_again(installation, Scorer(reward_name="spy", reward=spy, config={}))
    recorded = finished_by_rollout(read_log())
    rewards = {
        event["rollout_id"]: event["reward"]
        for event in of_type(read_log(), "scoring.rollout_scored")
    }
    assert rewards == {
        rollout: finished["num_turns"] + 100.0 * finished["attempted_completion"]
        for rollout, finished in recorded.items()
    }
    assert {item.task_id for item in seen} <= {
        f"train_{name}"
        for name in ("01_open_settings", "02_enable_wifi", "03_max_brightness", "04_open_chrome")
    }


def test_a_reward_that_fails_scores_the_others_and_says_why(
    trained: Trained, read_log: ReadLog
) -> None:
    installation = trained(num_steps=1)

    def fussy(outcome: Outcome) -> float:
        if outcome.success:
            raise ZeroDivisionError
        return 1.0

    summary = score_again(installation, Scorer(reward_name="fussy", reward=fussy, config={}))
    scored = of_type(read_log(), "scoring.rollout_scored")
    failed = [item for item in scored if item["reward"] is None]
    assert len(failed) == summary.failed == sum(item["success"] for item in scored)
    assert failed
    assert all("ZeroDivisionError" in item["error_message"] for item in failed)
    assert summary.reward_mean == (1.0 if len(failed) < len(scored) else None)


def test_another_judge_decides_from_what_is_recorded(
    installation: Installation, read_log: ReadLog, server: ChatServer
) -> None:
    run(small(num_steps=1, skip_baseline=True, eval_episodes=1), installation=installation)
    server.reply('{"success": true, "reason": "it looks right"}')
    judged = replace(BINARY, judge=server.url, ask_model=ModelJudge(None, 5.0))
    summary = score_again(installation, judged)
    assert (summary.rollouts, summary.failed, summary.success_rate) == (7, 0, 1.0)
    assert summary.success_rate_before == pytest.approx(
        sum(item["task_success"] for item in finished_by_rollout(read_log()).values()) / 7
    )
    assert len(server.requests) == 7
    asked = server.requests[0]["messages"][1]["content"]
    assert [part["type"] for part in asked] == ["text", *["image_url"] * (len(asked) - 1)]
    assert 1 <= len(asked) - 1 <= 3
    scored = of_type(read_log(), "scoring.rollout_scored")
    assert {item["details"]["reason"] for item in scored} == {"it looks right"}
    assert all(len(item["details"]["prompt_sha256"]) == 64 for item in scored)


def test_a_judge_without_a_verdict_leaves_rollouts_without_a_score(
    installation: Installation, read_log: ReadLog, server: ChatServer
) -> None:
    run(small(num_steps=0, skip_baseline=False, eval_episodes=2), installation=installation)
    server.reply_error(400, "no")
    judged = replace(BINARY, judge=server.url, ask_model=ModelJudge(None, 5.0))
    summary = score_again(installation, judged)
    assert (summary.failed, summary.reward_mean, summary.success_rate) == (2, None, None)
    scored = of_type(read_log(), "scoring.rollout_scored")
    assert {(item["reward"], item["success"]) for item in scored} == {(None, None)}
    assert all("HTTP 400" in item["error_message"] for item in scored)


def test_an_episode_that_nobody_judged_is_neither_solved_nor_failed(
    installation: Installation, read_log: ReadLog
) -> None:
    unjudged = {"source_type": "custom", "custom_tasks": ["Look around."], "judge": "none"}
    judged = {"source_type": "ids", "task_ids": ["train_01_open_settings"]}
    config = small(num_steps=1, eval_tasks=[judged, unjudged], eval_episodes=2, oracle_noise=0)
    run(config, installation=installation)
    recorded = score_again(installation, BINARY)
    assert (recorded.rollouts, recorded.failed) == (2 * 3 + 2 * 2, 2)
    assert (recorded.success_rate_before, recorded.success_rate) == (1.0, 1.0)
    scored = of_type(read_log(), "scoring.rollout_scored")
    reasons = {item["error_message"]: item["success"] for item in scored if item["reward"] is None}
    assert reasons == {"its task has no judge, so there is no verdict to score": None}


def test_a_training_that_the_log_does_not_have_leaves_nothing(installation: Installation) -> None:
    with pytest.raises(NotFoundError, match="small"):
        score_again(installation, BINARY)
    assert not installation.home.exists()


def test_a_stopped_scoring_keeps_what_it_has(installation: Installation, read_log: ReadLog) -> None:
    run(small(num_steps=0, eval_episodes=3), installation=installation)
    stop, outcomes = threading.Event(), list[Outcome]()

    def stop_at_the_second(outcome: Outcome) -> float:
        outcomes.append(outcome)
        if len(outcomes) == 2:
            stop.set()
        return 1.0

    with pytest.raises(StopRequestedError):
        rescore(installation, "small", replace(BINARY, reward=stop_at_the_second), stop=stop)
    assert len(of_type(read_log(), "scoring.rollout_scored")) == 2
    assert of_type(read_log(), "scoring.finished") == []
