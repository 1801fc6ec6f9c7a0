"""Executed accuracy by difficulty, and the choice among N completions by the scores of steps."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from producer.agents.text_to_sql.data.generate import SyntheticSize, write_synthetic
from producer.errors import CuaTrainError
from producer.fine_tuning.executed_accuracy import accuracy_of, chosen_of, executed_accuracy
from producer.fine_tuning.named_policy import held_out_split, questions_of
from producer.rollouts.plan import GroupOutcome, GroupPlan, RolloutResult, StatedTask
from schemas.completion import StepScore
from schemas.installation import Installation
from tests.support.results import finished
from tests.support.scripted import WIFI, plan


def result(index: int, *, is_right: bool, scores: tuple[float, ...]) -> RolloutResult:
    steps = tuple(
        StepScore(index=at, text="s", first_token=at, last_token=at + 1, score=score)
        for at, score in enumerate(scores)
    )
    return RolloutResult(
        plan=plan(index),
        end=finished(float(is_right), num_turns=1, num_tokens=len(scores)),
        policy_version=0,
        turn_seconds=0.1,
        scored_steps=steps,
    )


def group(num: int, *results: RolloutResult) -> GroupOutcome:
    own = GroupPlan(num, uuid4(), StatedTask(WIFI, uuid4(), None), (1,) * len(results))
    return GroupOutcome(own, results, is_failed=False)


def test_the_choice_follows_the_scores_of_steps_by_hand() -> None:
    """Question 1: product and last choose the right one, min the wrong one; 2: none is right."""
    first = group(
        0,
        result(0, is_right=False, scores=(0.6, 0.6)),
        result(1, is_right=True, scores=(0.5, 0.9)),
    )
    second = group(
        1, result(0, is_right=False, scores=(0.1,)), result(1, is_right=False, scores=())
    )
    found = chosen_of([first, second], 2)
    assert (found.questions, found.completions) == (2, 2)
    one, two = found.sizes
    assert (one.num_candidates, one.pass_at_n) == (1, 0.25)
    assert set(one.by_strategy.values()) == {0.25}
    assert two.pass_at_n == 0.5
    assert two.by_strategy == {"product": 0.5, "min": 0.0, "last": 0.5, "average": 0.5}


def test_a_question_whose_completions_failed_is_left_out() -> None:
    whole = group(0, *(result(at, is_right=True, scores=(0.5,)) for at in range(2)))
    part = group(1, result(0, is_right=False, scores=(0.5,)))
    assert chosen_of([whole, part], 2).questions == 1
    with pytest.raises(CuaTrainError, match="no question has 2 completions"):
        chosen_of([part], 2)


def test_a_question_without_a_judged_answer_is_counted_in_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = accuracy_of([group(0, result(0, is_right=True, scores=())), group(1)])
    assert (found.overall.accuracy, found.overall.questions) == (1.0, 1)
    assert caplog.messages == ["1 questions are left out: their answers could not be judged"]


def test_the_oracle_is_right_on_every_question_and_the_evaluation_is_in_the_log(
    installation: Installation, read_log: Callable[[], list[dict[str, Any]]], tmp_path: Path
) -> None:
    write_synthetic(tmp_path / "data", 0, SyntheticSize(1, 1, 1, ("count", "having", "most")))
    records = json.loads((tmp_path / "data/dev.json").read_text())
    assert held_out_split(tmp_path / "data") == "dev"
    found = executed_accuracy(
        {"model_name": "oracle", "oracle_noise": 0.0},
        questions_of(tmp_path / "data", "dev"),
        installation=installation,
    )
    assert (found.overall.accuracy, found.overall.standard_error) == (1.0, 0.0)
    levels = [record["difficulty"] for record in records]
    counted = {"easy": levels.count("simple"), "hard": levels.count("challenging")}
    expected = {name: count for name, count in counted.items() if count}
    assert {name: one.questions for name, one in found.by_difficulty.items()} == expected
    ended = [event for event in read_log() if event["type"] == "cua.evaluation.finished"]
    assert [item["data"]["successful_tasks"] for item in ended] == [len(records)]
