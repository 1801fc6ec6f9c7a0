"""A wrong call is refused in a sentence, and leaves nothing in the log."""

import errno
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from producer import record
from producer.record.step import OWN_METRICS
from schemas.arrays import decode_float32
from schemas.group import GroupCreated
from schemas.rollout import RolloutFinished
from schemas.step import StepCreated, StepFinished
from schemas.task import TaskStated
from schemas.turn import TurnTaken
from tests.support.recorded import (
    folded,
    installation,
    of_type,
    one_rollout,
    one_step,
    problems,
    recorded,
    start_small,
    statuses,
)

WRONG_TURNS: dict[str, tuple[dict[str, Any], str]] = {
    "fewer log-probs than tokens": (
        {"prompt_tokens": [1], "completion_tokens": [2, 3], "completion_logprobs": [-1.0]},
        "completion_logprobs has 1 numbers for 2 completion tokens",
    ),
    "a log-prob that is NaN": (
        {"prompt_tokens": [1], "completion_tokens": [2], "completion_logprobs": [math.nan]},
        "must be a finite number, not nan",
    ),
    "a log-prob above 0": (
        {"prompt_tokens": [1], "completion_tokens": [2, 3], "completion_logprobs": [-1.0, 0.5]},
        r"completion_logprobs\[1\] must be the logarithm of a probability, at most 0, not 0\.5",
    ),
    "tokens without their prompt": ({"completion_tokens": [2]}, "prompt_tokens is missing"),
    "a prompt without a completion": ({"prompt_tokens": [2]}, "completion_tokens is missing"),
    "a token below zero": (
        {"prompt_tokens": [-1], "completion_tokens": [2]},
        r"prompt_tokens\[0\] must be from 0",
    ),
    "a token that is True": (
        {"prompt_tokens": [True], "completion_tokens": [2]},
        r"prompt_tokens\[0\] must be a whole number, not True",
    ),
    "a last turn by text": ({"done": "no"}, "done must be True or False, not 'no'"),
    "a screenshot that is no PNG": ({"screenshot": b"JFIF"}, "screenshot is no PNG"),
    "an unknown action": (
        {"actions": [{"type": "jump"}]},
        r"actions\[0\] is neither an action",
    ),
    "a reward that is NaN": ({"reward": math.nan}, "reward must be a finite number"),
    "an unknown stop reason": (
        {"stop_reason": "eos"},
        "stop_reason must be one of stop, length",
    ),
    "a completion that is no text": ({"completion": 3}, "completion must be text, not 3"),
}


@pytest.mark.parametrize("name", WRONG_TURNS)
def test_a_turn_with_wrong_values_is_refused_in_a_sentence_and_leaves_nothing(name: str) -> None:
    given, message = WRONG_TURNS[name]
    with one_rollout() as rollout:
        with pytest.raises((ValueError, TypeError), match=message):
            rollout.turn(**{"completion": "x", **given})
        rollout.turn(completion="right")
        rollout.finish(reward=0)

    assert [turn.model_response for turn in of_type(TurnTaken)] == ["right"]
    assert problems(folded()) == []


def test_every_call_out_of_order_is_refused_and_leaves_nothing() -> None:
    refused: list[str] = []

    def wrong(call: Callable[[], object]) -> None:
        training._recording.emitter.flush()
        before = len(recorded())
        with pytest.raises(record.OrderError) as raised:
            call()
        training._recording.emitter.flush()
        assert len(recorded()) == before
        refused.append(str(raised.value))

    with start_small(num_steps=2, max_turns=1) as training:
        with training.step() as step:
            wrong(training.step)
            wrong(lambda: training.evaluation(num_episodes=1))
            with step.group("a") as group:
                rollout = group.rollout()
                wrong(lambda: group.rollout(retry_of=rollout))
                wrong(lambda: group.rollout(policy_version=1))
                wrong(group.close)
                wrong(step.update)
                wrong(lambda: group.advantages([]))
                rollout.turn(completion="x")
                wrong(lambda: rollout.turn(completion="y"))
                rollout.finish(reward=1)
                wrong(lambda: rollout.turn(completion="y"))
                wrong(lambda: rollout.finish(reward=1))
                wrong(lambda: rollout.fail("late"))
                group.rollout().finish(reward=0)
                wrong(group.rollout)
            wrong(group.rollout)
            step.update()
            wrong(lambda: step.group("late"))
            wrong(lambda: group.advantages([0.0, 0.0]))
            wrong(group.drop)
            wrong(step.update)
            step.metrics(loss=0)
        wrong(lambda: step.group("after"))
        wrong(lambda: step.metrics(loss=1))
        wrong(step.close)
        wrong(lambda: training.step(1))
        wrong(lambda: training.step(3))
        with training.evaluation(num_episodes=1) as evaluation:
            wrong(lambda: evaluation.group("b"))
            wrong(lambda: training.step(2))
    with pytest.raises(record.OrderError, match="training 'mine' has ended already"):
        training.step(2)

    assert all(message[0].islower() and "  " not in message for message in refused)
    assert refused[0] == "a step inside step 1, which is open; close() it first"
    assert problems(folded()) == []


def test_a_block_that_leaves_a_rollout_open_is_told_so_and_everything_ends() -> None:
    with (
        pytest.raises(record.OrderError, match="call finish"),
        start_small() as training,
        training.step() as step,
        step.group("a") as group,
        group.rollout(),
    ):
        pass
    assert statuses() == {
        "training": ["failed"],
        "step": ["failed"],
        "group": ["failed"],
        "rollout": ["failed"],
    }


@pytest.mark.parametrize("success", ["no", 0, 5])
def test_success_that_is_no_truth_value_is_refused_and_the_rollout_goes_on(success: Any) -> None:
    with one_rollout() as rollout:
        rollout.turn(completion="x")
        with pytest.raises(TypeError, match=f"success must be True or False, not {success!r}"):
            rollout.finish(reward=0, success=success)
        rollout.finish(reward=0, success=False)

    assert [one.task_success for one in of_type(RolloutFinished)] == [False]


def test_a_task_with_a_nul_and_an_unknown_split_are_refused_in_a_sentence() -> None:
    with start_small() as training:
        with pytest.raises(ValueError, match=r"^split must be one of held_out, .*, not 'dev'$"):
            training.evaluation(num_episodes=1, split="dev")
        with training.step() as step:
            with pytest.raises(ValueError, match=r"^the task contains a NUL character; remove it$"):
                step.group("a\0b")
            step.metrics(loss=0)

    assert of_type(GroupCreated) == []
    assert problems(folded()) == []


def test_a_negative_learning_rate_of_a_step_is_refused() -> None:
    with start_small(num_steps=1) as training:
        with pytest.raises(ValueError, match=r"^learning_rate must be at least 0, not -0\.5$"):
            training.step(learning_rate=-0.5)
        with training.step(learning_rate=0) as step:
            step.metrics(loss=0)

    assert [one.learning_rate for one in of_type(StepCreated)] == [0]


def test_a_log_prob_above_0_by_rounding_is_recorded() -> None:
    rounded = 2.0**-14  # 6e-5
    with one_rollout() as rollout:
        for values in ([rounded, -0.5], [rounded, None]):
            rollout.turn(
                completion="x",
                prompt_tokens=[1],
                completion_tokens=[2, 3],
                completion_logprobs=values,
            )
        rollout.finish(reward=0)

    for turn in of_type(TurnTaken):
        assert turn.tokens is not None
        assert decode_float32(turn.tokens.completion_logprobs)[0] == rounded


def test_an_instruction_may_have_other_control_characters_which_its_title_leaves_out() -> None:
    with one_rollout("Open\x1b it\nnow\x07 \ud800") as rollout:
        rollout.finish(reward=0)
    (stated,) = of_type(TaskStated)
    assert (stated.name, stated.description) == ("Open it now ?", "Open\x1b it\nnow\x07 ?")


@pytest.mark.parametrize("value", ["0.5", [0.5], None, True, {"a": 1.0}, object()])
def test_a_metric_that_is_no_number_is_refused_by_its_name(value: Any) -> None:
    with one_step() as step:
        with pytest.raises(TypeError, match="metric 'actor/x' must be a number, not"):
            step.metrics({"a": 1.0, "actor/x": value}, loss=3)
        with pytest.raises(ValueError, match="metric 'actor/x' is too large for a float"):
            step.metrics({"actor/x": 10**400})

    (finished,) = of_type(StepFinished)
    assert finished.loss == 0, "nothing of a refused call is recorded"
    assert {"a", "actor/x"}.isdisjoint(finished.metrics)


def test_a_metric_that_the_recorder_sets_is_refused_by_its_name() -> None:
    with one_step() as step:
        with step.group("x", num_rollouts=1) as group, group.rollout() as rollout:
            rollout.turn(completion="x")
            for name in ("task_id", "num_prompt_tokens"):
                with pytest.raises(ValueError, match=f"metric '{name}' is recorded automatically"):
                    rollout.finish(reward=0, metrics={name: 7})
            rollout.finish(reward=0, metrics={"minutes": 7})
        step.metrics({"progress/x": 1.5, "big": 2**70, "whole": 2**40, "odd": math.inf})
        for name in OWN_METRICS:
            with pytest.raises(ValueError, match=f"metric '{name}' is recorded automatically"):
                step.metrics({name: 7})

    (ended,) = of_type(RolloutFinished)
    assert {*ended.summary} == {"task_id", "num_prompt_tokens", "minutes"}
    (finished,) = of_type(StepFinished)
    given = {"progress/x": 1.5, "big": 2.0**70, "whole": 2**40, "odd": None}
    assert finished.metrics.keys() == given.keys() | OWN_METRICS
    assert given.items() <= finished.metrics.items()
    assert finished.metrics["progress/batch"] == 0


def test_an_attempt_can_only_replace_a_rollout() -> None:
    with (
        start_small() as training,
        training.step() as step,
        step.group("x", num_rollouts=1) as group,
    ):
        with pytest.raises(TypeError, match="retry_of must be a rollout, not 'first'"):
            group.rollout(retry_of="first")
        with group.rollout() as rollout:
            rollout.turn(completion="x")
            rollout.finish(reward=0)


def test_a_full_disk_is_named_before_anything_is_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    with (
        pytest.raises(
            record.CuaTrainError, match=r"the lock .* cannot be written: No space left on device"
        ),
        start_small(),
    ):
        pass


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num_steps": 0}, "num_steps must be from 1"),
        ({"learning_rate": math.nan}, "learning_rate must be a finite number"),
        ({"learning_rate": -1e-5}, "learning_rate must be at least 0, not -1e-05"),
        ({"temperature": -1}, "temperature must be at least 0"),
        ({"name": "a/b"}, "contains '/'"),
        ({"group_size": 1.5}, "group_size must be a whole number"),
        ({"num_steps": True}, "num_steps must be a whole number, not True"),
        ({"config": [1]}, "config must be a mapping of names to values, not a list"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_made(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=message), start_small(**given):
        pass
    assert not installation().home.exists()
