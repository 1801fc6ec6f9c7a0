"""Rewards and advantages of single tokens in a step: from scored steps to trajectories."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from producer.config import RunConfig, read_config
from producer.errors import UsageError
from producer.policy.policy import SampledTokens
from producer.policy.sequences import token_starts
from producer.rollouts.plan import GroupOutcome, GroupPlan, RolloutResult, StatedTask
from producer.training.samples import advantages_of_tokens, rewards_of_tokens, select_samples
from producer.training.updates import trajectory
from schemas.completion import StepScore
from tests.support.results import finished
from tests.support.scripted import WIFI, plan
from tests.support.turns import trained_turn

pytest.importorskip("torch")


def config(tmp_path: Path | None = None, **given: Any) -> RunConfig:
    return read_config(
        {
            "model_name": "oracle",
            "environment": "text_to_sql",
            "tasks": {"source_type": "demo_all"},
            "core_function": "compute_grpo_process_advantage_avg_unique",
            **({} if tmp_path is None else {"process_reward_model": tmp_path}),
            **given,
        }
    )


def result(index: int, num_tokens: int, reward: float, *scores: float) -> RolloutResult:
    """Steps of two tokens each, the last with the rest."""
    tokens = SampledTokens(None, (1,), 0, (5,) * num_tokens, (-0.1,) * num_tokens, "stop")
    ends = [*range(2, 2 * len(scores), 2), num_tokens]
    steps = tuple(
        StepScore(index=at, text=f"s{at}", first_token=2 * at, last_token=end, score=score)
        for at, (score, end) in enumerate(zip(scores, ends, strict=False))
    )
    return RolloutResult(
        plan=plan(index),
        end=finished(reward, num_turns=1, num_tokens=num_tokens),
        policy_version=0,
        turn_seconds=0.1,
        turns=(trained_turn(None, tokens),),
        scored_steps=steps,
    )


def test_a_token_has_its_steps_score_and_the_outcome_each_with_its_weight(tmp_path: Path) -> None:
    weights = config(tmp_path, rm_coef=0.5, verifier_coef=2.0)
    found = rewards_of_tokens(weights, result(0, 5, 1.0, 0.2, 0.6))
    assert found == pytest.approx([2.1, 2.1, 2.3, 2.3, 2.3])


def test_without_scores_the_outcome_is_on_the_last_token() -> None:
    assert rewards_of_tokens(config(), result(0, 3, 1.0)) == [0.0, 0.0, 1.0]


def test_the_process_advantage_of_a_group_by_hand(tmp_path: Path) -> None:
    """Scores: right 1.2 and 1.6 -> 1.4; wrong 0.4. Mean 0.9, sd (ddof 1) 0.7071, A = +-0.7071."""
    right, wrong = result(0, 4, 1.0, 0.2, 0.6), result(1, 3, 0.0, 0.4)
    ((first,), (second,)) = advantages_of_tokens(config(tmp_path), [right, wrong], [0, 0])
    a = 0.5 / (0.5 * 2**0.5 + 1e-6)
    assert first == pytest.approx([0.2 * a, 0.2 * a, 0.6 * a, 0.6 * a], abs=1e-6)
    assert second == pytest.approx([-0.6 * a] * 3, abs=1e-6)


def outcome(*results: RolloutResult, num: int = 0) -> GroupOutcome:
    group = GroupPlan(num, uuid4(), StatedTask(WIFI, uuid4(), None), (1,))
    return GroupOutcome(group, results, is_failed=False)


def test_a_step_trains_tokens_by_their_own_advantages_and_records_the_mean(tmp_path: Path) -> None:
    setting = config(tmp_path)
    right, wrong = result(0, 4, 1.0, 0.2, 0.6), result(1, 3, 0.0, 0.4)
    ((first, second),) = select_samples(setting, [outcome(right, wrong)])
    assert first.token_advantages is not None
    assert first.advantage == pytest.approx(sum(first.token_advantages[0]) / 4)
    assert second.advantage == pytest.approx(-0.6 * 0.5 / (0.5 * 2**0.5 + 1e-6), abs=1e-6)
    given = trajectory(
        setting,
        right,
        advantage=first.advantage,
        is_trained=True,
        token_advantages=first.token_advantages,
    )
    assert given.advantage == first.token_advantages


def test_a_group_of_one_outcome_is_told_apart_by_its_steps(tmp_path: Path) -> None:
    setting = config(tmp_path)
    same = outcome(result(0, 4, 1.0, 0.2), result(1, 4, 1.0, 0.9))
    ((first, second),) = select_samples(setting, [same])
    assert (first.drop_reason, second.drop_reason) == (None, None)
    equal = outcome(result(0, 4, 1.0, 0.5), result(1, 4, 1.0, 0.5))
    assert {select_sample.drop_reason for select_sample in select_samples(setting, [equal])[0]} == {
        "zero_variance"
    }
    unscored = outcome(result(0, 4, 1.0), result(1, 4, 1.0))
    assert {
        select_sample.drop_reason for select_sample in select_samples(setting, [unscored])[0]
    } == {"zero_variance"}


def test_gae_gets_the_rewards_of_steps(tmp_path: Path) -> None:
    setting = config(tmp_path, core_function=None, advantage="gae", model_name="a/policy")
    given = trajectory(setting, result(0, 3, 1.0, 0.25), advantage=None, is_trained=True)
    assert given.outcome.token_rewards == ((1.25, 1.25, 1.25),)


def test_a_function_of_the_users_file_comes_first_and_its_hash_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "algos.py"
    path.write_text(
        "def compute_weighted_grpo_advantage(token_level_rewards, eos_mask, index):\n"
        "    return 2 * eos_mask, eos_mask\n"
    )
    given: dict[str, Any] = {
        "core_function": "compute_weighted_grpo_advantage",
        "core_algos": str(path),
    }
    setting = config(**given)
    assert advantages_of_tokens(setting, [result(0, 2, 1.0)], [0]) == [((2.0, 2.0),)]
    assert setting.core_algos_sha256 is not None
    path.write_text(path.read_text().replace("2 *", "3 *"))
    with pytest.raises(UsageError, match=r"core_algos_sha256: .*algos.py has changed"):
        config(**given, core_algos_sha256=setting.core_algos_sha256)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"environment": "dbbench"}, "core_function: only with environment text_to_sql"),
        ({"core_function": None, "verifier_coef": 2.0}, "verifier_coef: only with a core_function"),
        ({"core_function": None, "core_algos": "x.py"}, "core_algos: only with a core_function"),
        ({"rm_coef": 0.5}, "rm_coef: only with a process_reward_model"),
        ({"process_reward_model": "/nowhere"}, "there is no folder /nowhere"),
        ({"advantage": "rloo"}, "advantage: rloo has no effect beside a core_function"),
        ({"core_algos": "/nowhere.py"}, "there is no file '/nowhere.py'"),
    ],
)
def test_settings_without_effect_or_sense_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        config(**given)


def test_tokens_begin_where_their_characters_do() -> None:
    words = {1: "SELECT", 2: " 1", 3: "\ufffd", 4: ""}

    def decode(tokens: Sequence[int]) -> str:
        return "".join(words[token] for token in tokens).replace("\ufffd\ufffd", "é")

    assert token_starts((1, 2, 4), decode) == [0, 6, 8]
    assert token_starts((1, 3, 3, 2), decode) == [0, 6, 7, 7]


def test_a_result_of_another_length_is_named(tmp_path: Path) -> None:
    path = tmp_path / "algos.py"
    path.write_text(
        "def own(token_level_rewards, eos_mask, index):\n    return eos_mask[:, :1], eos_mask\n"
    )
    setting = config(core_function="own", core_algos=str(path))
    with pytest.raises(UsageError, match=r"core_function: own: .*finite advantages of shape"):
        advantages_of_tokens(setting, [replace(result(0, 2, 1.0))], [0])
