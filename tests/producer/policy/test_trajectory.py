"""What a trajectory refuses, and the rewards of its tokens."""

from dataclasses import replace

import pytest

from producer.policy.learner import RolloutOutcome, Trajectory
from tests.support.turns import trained_turn

from .test_value_head import with_rewards


def test_numbers_that_do_not_fit_the_tokens_are_refused(batch: list[Trajectory]) -> None:
    one = batch[1]
    fitting = tuple((0.0,) * len(turn.tokens.completion_tokens) for turn in one.turns)
    with_rewards(one, fitting)
    for wrong in ((), (*fitting, ()), ((0.0,), *fitting[1:])):
        with pytest.raises(ValueError, match="token_rewards needs one number per completion token"):
            with_rewards(one, wrong)
        with pytest.raises(ValueError, match="advantage needs one number per completion token"):
            replace(one, advantage=wrong)


def test_without_rewards_of_tokens_the_last_token_has_the_reward(batch: list[Trajectory]) -> None:
    one = replace(batch[1], outcome=RolloutOutcome(0, 0.7, is_right=True))
    assert one.flat_rewards == [*[0.0] * (one.num_tokens - 1), 0.7]
    tokens = replace(one.turns[0].tokens, completion_tokens=())
    empty = trained_turn(one.turns[0].screenshot, tokens)
    assert replace(one, turns=(one.turns[0], empty)).flat_rewards[-1] == 0.7
    assert replace(one, turns=(empty,)).flat_rewards == []
    assert replace(one, turns=()).flat_rewards == []
