"""What a step trains on: advantages by name, groups kept or dropped, learning rates."""

from typing import Any, cast

import pytest

from producer.algorithms.ratio_bounds import clip_of
from producer.config import read_config, read_continued
from producer.errors import UsageError
from producer.rollouts.plan import GroupOutcome, RolloutResult
from producer.training.metrics import environment_metrics, error_metrics
from producer.training.samples import select_samples
from producer.training.updates import learning_rate_of, update_settings
from tests.support.results import finished


def result(
    reward: float, num_tokens: int = 10, num_turns: int = 2, num_prompt_tokens: int = 100
) -> RolloutResult:
    counts = {"num_prompt_tokens": num_prompt_tokens}
    end = finished(reward, num_turns=num_turns, num_tokens=num_tokens, summary=counts)
    return RolloutResult(cast("Any", None), end, policy_version=0, turn_seconds=1.0)


def outcome(*rewards: float, is_failed: bool = False, errors: tuple[str, ...] = ()) -> GroupOutcome:
    return GroupOutcome(
        cast("Any", None), tuple(result(reward) for reward in rewards), is_failed, errors
    )


OUTCOMES = [outcome(1.0, 0.0), outcome(1.0, 1.0), outcome(1.0, is_failed=True)]


def advantages(**given: object) -> list[list[tuple[float | None, str | None]]]:
    return [
        [(item.advantage, item.drop_reason) for item in group]
        for group in select_samples(read_config(given), OUTCOMES)
    ]


def test_a_group_of_one_reward_and_a_failed_one_are_dropped_with_their_reasons() -> None:
    assert advantages() == [
        [(0.5, None), (-0.5, None)],
        [(0.0, "zero_variance"), (0.0, "zero_variance")],
        [(0.0, "group_failed")],
    ]


def test_a_group_of_one_reward_is_kept_on_request() -> None:
    mixed, constant, failed = advantages(remove_constant_reward_groups=False)
    assert mixed == [(0.5, None), (-0.5, None)]
    assert constant == [(0.0, None), (0.0, None)]
    assert failed == [(0.0, "group_failed")]


def test_an_advantage_over_the_batch_sees_the_groups_that_are_trained_on() -> None:
    # 1, 0, 1, 1 with 10 tokens each: mean 0.75, squares 10 * (3 * 0.0625 + 0.5625) = 7.5 over 39
    scale = (7.5 / 39 + 1e-8) ** 0.5
    kept = advantages(advantage="reinforce_plus_plus", remove_constant_reward_groups=False)
    assert [one for group in kept for one, _ in group][:4] == pytest.approx(
        [0.25 / scale, -0.75 / scale, 0.25 / scale, 0.25 / scale]
    )
    mixed, constant, failed = advantages(advantage="reinforce_plus_plus")
    # 1, 0: mean 0.5, squares 20 * 0.25 = 5 over 19
    assert mixed[0][0] == pytest.approx(0.5 / (5 / 19 + 1e-8) ** 0.5)
    # Nothing defines an advantage of what is not in the batch.
    assert [one for one, _ in constant + failed] == [None, None, None]


def test_every_advantage_that_a_run_accepts_gives_one_number_per_sample() -> None:
    for name in ("grpo", "dr_grpo", "rloo", "opo", "gpg", "grpo_passk", "grpo_passk_no_std"):
        first = advantages(advantage=name)[0]
        assert first[0][0] is not None
        assert first[1][0] is not None
        assert first[0][0] > first[1][0], name


def test_division_by_the_standard_deviation_is_a_setting() -> None:
    assert advantages(advantage_by_std=True)[0] == [(0.5 / 0.55, None), (-0.5 / 0.55, None)]


def test_the_learning_rate_rises_over_its_warm_up_and_is_a_function_of_the_step() -> None:
    config = read_config({"learning_rate": 0.3, "learning_rate_warmup_steps": 3})
    assert [learning_rate_of(config, step) for step in (1, 2, 3, 4)] == pytest.approx(
        [0.1, 0.2, 0.3, 0.3]
    )
    assert learning_rate_of(read_config({"learning_rate": 0.3}), 1) == 0.3
    assert update_settings(config, generation=0, step=1).learning_rate == pytest.approx(0.1)


def test_a_cosine_falls_from_its_warm_up_to_the_lowest_rate_as_verls() -> None:
    """Of 6 steps 2 warm up; then 0.2 + 0.4 (1 + cos x) for x = 0, pi/4, pi/2 and 3 pi/4."""
    config = read_config(
        {
            "learning_rate": 1.0,
            "learning_rate_warmup_steps": 2,
            "learning_rate_schedule": "cosine",
            "min_learning_rate_ratio": 0.2,
            "num_steps": 6,
        }
    )
    assert [learning_rate_of(config, step) for step in range(1, 7)] == pytest.approx(
        [0.5, 1.0, 1.0, 0.8828427, 0.6, 0.3171573]
    )


def test_a_cosine_ends_at_the_last_step_so_that_no_other_may_be_asked_for_later() -> None:
    recorded = read_config({"learning_rate_schedule": "cosine", "num_steps": 6}).recorded()
    with pytest.raises(UsageError, match="num_steps: 6 -> 8"):
        read_continued({"num_steps": 8}, recorded, overwrite=False)
    constant = {**recorded, "learning_rate_schedule": "constant"}
    assert read_continued({"num_steps": 8}, constant, overwrite=False).num_steps == 8


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"min_learning_rate_ratio": 0.1}, "min_learning_rate_ratio: has no effect with a const"),
        ({"top_p": 0}, "top_p: 0 is out of range"),
        ({"ppo_epochs": 0}, "ppo_epochs: 0 is out of range"),
        ({"entropy_coef": -1}, "entropy_coef: -1 is out of range"),
    ],
)
def test_settings_of_verls_trainer_that_cannot_be_are_refused(
    given: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        read_config(given)


def test_settings_of_verls_trainer_reach_the_update() -> None:
    given = {"ppo_epochs": 3, "weight_decay": 0.2, "entropy_coef": 0.4}
    settings = update_settings(read_config(given), generation=0, step=1)
    assert {name: getattr(settings, name) for name in given} == given


def test_a_loss_s_own_clipping_bounds_apply_unless_others_are_given() -> None:
    def bounds(**given: object) -> tuple[float, float, float | None]:
        settings = update_settings(read_config(given), generation=0, step=1)
        clip = clip_of(settings)
        return clip.low, clip.high, clip.dual

    assert bounds(loss_fn="ppo") == (0.2, 0.2, None)
    assert bounds(loss_fn="gspo") == (3e-4, 4e-4, None)
    assert bounds(loss_fn="cispo", clip_ratio_high=0.28) == (0.2, 0.28, None)
    assert bounds(loss_fn="ppo", clip_ratio_low=0.1, dual_clip=3) == (0.1, 0.2, 3.0)


def test_every_setting_of_the_update_reaches_it() -> None:
    given = {
        "loss_fn": "ppo",
        "loss_aggregation": "token_mean",
        "kl_penalty_coef": 0.1,
        "kl_estimator": "k3",
        "kl_in": "loss",
        "max_gradient_norm": 0.5,
        "compute_post_kl": True,
        "num_substeps": 3,
    }
    settings = update_settings(read_config(given), generation=0, step=1)
    assert {name: getattr(settings, name) for name in given} == given


def test_metrics_of_episodes_have_tinker_cookbook_s_names() -> None:
    metrics = environment_metrics(
        [
            outcome(1.0, 0.0),
            outcome(1.0, 1.0),
            GroupOutcome(
                cast("Any", None),
                (result(0.0, 40, num_turns=4, num_prompt_tokens=600),),
                is_failed=False,
            ),
        ]
    )
    assert metrics == {
        "env/all/reward/total": 0.6,
        "env/all/success": 0.6,
        "env/all/ac_tokens_per_turn": 80 / 12,
        "env/all/ob_tokens_per_turn": 1000 / 12,
        "env/all/turns_per_episode": 12 / 5,
        "env/all/total_episodes": 5,
        "env/all/total_turns": 12,
        "env/all/total_ac_tokens": 80,
        "env/all/total_ob_tokens": 1000,
        "env/all/by_group/frac_mixed": 1 / 3,
        "env/all/by_group/frac_all_good": 1 / 3,
        "env/all/by_group/frac_all_bad": 1 / 3,
    }


def test_failed_attempts_are_counted_by_the_boundary_that_they_crossed() -> None:
    outcomes = [
        outcome(1.0, errors=("environment", "environment")),
        outcome(is_failed=True, errors=("reward",)),
    ]
    assert error_metrics(outcomes) == {
        "rollout_errors/total": 3,
        "rollout_errors/environment": 2,
        "rollout_errors/reward": 1,
        "rollout_errors/groups_skipped": 1,
    }
    assert error_metrics([outcome(1.0)]) == {
        "rollout_errors/total": 0,
        "rollout_errors/groups_skipped": 0,
    }
