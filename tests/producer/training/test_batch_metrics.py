"""What a step records of its completions, groups, advantages and ratios; cut completions."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import pytest

from producer.config import read_config
from producer.environments.environment import Observation
from producer.policy.learner import SamplerGap, UpdateResult
from producer.policy.policy import Completion, SampledTokens, Turn
from producer.rollouts.plan import GroupOutcome, RolloutResult
from producer.training.batch_metrics import (
    completion_metrics,
    num_retokenised,
    quantile,
    ratio_metrics,
    signal_metrics,
)
from producer.training.run import run
from producer.training.samples import select_samples
from schemas.installation import Installation
from tests.producer.training.test_samples import outcome, result
from tests.support.small_run import one_step

ReadLog = Callable[[], list[dict[str, Any]]]


def turn(num_tokens: int, stop_reason: Literal["stop", "length"] = "stop") -> Turn:
    tokens = SampledTokens(None, (1,), 0, (2,) * num_tokens, (-0.5,) * num_tokens, stop_reason)
    return Turn(cast("Observation", None), Completion("", (), tokens))


def with_turns(reward: float, *turns: Turn) -> RolloutResult:
    return replace(result(reward), turns=turns)


def group(*results: RolloutResult) -> GroupOutcome:
    return replace(outcome(), results=results)


def test_lengths_of_completions_are_nearest_rank_quantiles_over_turns() -> None:
    # 1 to 9 and 20: of ten, the 1st, the 5th and the 9th.
    own = [turn(length) for length in (9, 1, 2, 3, 4)]
    others = [turn(length) for length in (5, 6, 7, 8)]
    found = completion_metrics(
        [group(with_turns(1.0, *own), with_turns(0.0, *others, turn(20, "length")))]
    )
    assert found == {
        "env/all/ac_tokens/p10": 1,
        "env/all/ac_tokens/p50": 5,
        "env/all/ac_tokens/p90": 9,
        "env/all/ac_tokens/max": 20,
        "env/all/ac_truncated": 0.1,
    }
    assert [quantile([7], percent) for percent in (10, 50, 90)] == [7, 7, 7]
    assert [quantile([3, 4], percent) for percent in (10, 50, 90)] == [3, 3, 4]
    assert completion_metrics([outcome(1.0, 0.0)]) == {}, "a scripted policy has no tokens"


def test_groups_of_one_reward_are_counted_and_advantages_have_a_spread() -> None:
    config = read_config({})
    outcomes = [outcome(1.0, 0.0), outcome(1.0, 1.0), outcome(0.0, 0.0, is_failed=True)]
    samples = [item for own in select_samples(config, outcomes) for item in own]
    # Only the first group is trained on, with 0.5 and -0.5.
    assert signal_metrics(config, outcomes, samples) == {
        "env/all/by_group/frac_without_signal": 1 / 3,
        "optim/advantage/std": 0.5,
        "optim/advantage/min": -0.5,
        "optim/advantage/max": 0.5,
    }
    assert signal_metrics(config, outcomes[1:], samples[2:]) == {
        "env/all/by_group/frac_without_signal": 1 / 2
    }


def test_ratios_that_were_not_measured_are_left_out() -> None:
    update = UpdateResult(
        loss=0.0,
        kl_sample_train_v1=0.0,
        kl_sample_train_v2=0.0,
        entropy=0.0,
        gradient_norm=3.0,
        num_tokens=4,
        seconds=1.0,
    )
    assert ratio_metrics(update) == {}
    measured = replace(
        update,
        sampler_gap=SamplerGap(0.1, 0.2, 0.75),
        clip_fraction=0.25,
        capped_share=0.125,
        largest_ratio=1.5,
        clipped_gradient_norm=1.0,
    )
    assert ratio_metrics(measured) == {
        "optim/clip_fraction": 0.25,
        "optim/importance_capped_share": 0.125,
        "optim/ratio_max": 1.5,
        "optim/effective_sample_share": 0.75,
        "optim/gradient_norm_clipped": 1.0,
    }


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ([(None, 1), (1, 2), (2, 3)], 0),
        ([(None, 1), (None, 2), (None, 3)], 2),
        # The oldest turn is no longer shown.
        ([(None, 1), (1, 2), (None, 2), (3, 3), (None, 2)], 0),
        ([(None, 1), (1, 2), (None, 2), (None, 3)], 1),
        # Without screens nothing is left out.
        ([(None, 0), (1, 0), (None, 0)], 1),
        ([], 0),
    ],
)
def test_prompts_that_a_server_tokenised_otherwise_are_counted(
    turns: list[tuple[int | None, int]], expected: int
) -> None:
    made = []
    for extends, num_images in turns:
        whole = turn(1)
        tokens = replace(whole.tokens, prompt_extends=extends, num_prompt_images=num_images)
        made.append(replace(whole, completion=replace(whole.completion, tokens=tokens)))
    alone = with_turns(1.0, made[0]) if made else with_turns(1.0)
    assert num_retokenised([group(with_turns(1.0, *made)), group(alone)]) == expected


def test_rollouts_with_a_cut_completion_are_left_out_and_still_compared() -> None:
    cut, whole = with_turns(1.0, turn(3), turn(4, "length")), with_turns(0.0, turn(3))
    found = [
        [(item.advantage, item.drop_reason) for item in own]
        for config in ({"mask_truncated": True}, {})
        for own in select_samples(read_config(config), [group(cut, whole)])
    ]
    assert found == [[(0.5, "truncated"), (-0.5, None)], [(0.5, None), (-0.5, None)]]


def test_a_step_of_a_network_records_them(
    installation: Installation, read_log: ReadLog, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    from producer.agents.android.policy.build import build_policy
    from tests.producer.policy.conftest import TEXTS
    from tests.support.small_size import SIZE

    build_policy(tmp_path / "policy", TEXTS, seed=0, size=SIZE)
    config = one_step(
        tmp_path / "policy",
        renderer_name="compact",
        loss_fn="ppo",
        advantage="reinforce",
        parse_error_cost=1.0,
        max_gradient_norm=1e-3,
    )
    run(config, installation=installation)
    (step,) = [item["data"] for item in read_log() if item["type"] == "cua.step.finished"]
    metrics = step["metrics"]
    # One substep by the weights that sampled: every ratio is 1, up to the rounding of a forward.
    assert metrics["optim/clip_fraction"] == 0.0
    assert metrics["optim/ratio_max"] == pytest.approx(1.0, abs=1e-4)
    assert metrics["optim/effective_sample_share"] == pytest.approx(1.0, abs=1e-4)
    assert metrics["optim/gradient_norm_clipped"] == 1e-3 < step["policy_gradient_norm"]
    assert 1 <= metrics["env/all/ac_tokens/p10"] <= metrics["env/all/ac_tokens/max"] <= 4
    assert 0.0 <= metrics["env/all/ac_truncated"] <= 1.0
    assert math.isfinite(metrics["optim/advantage/std"])
