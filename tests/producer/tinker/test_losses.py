"""The loss of an update at Tinker is computed from log-probs, whatever metrics the service sends.

That whole updates have the losses of this process: test_same_as_in_process.py, whose stand-in sends
no metrics.
"""

import math
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from tinker import TensorData

from producer.algorithms.losses import LOSSES
from producer.algorithms.names import LossName
from producer.algorithms.ratio_bounds import clip_of
from producer.errors import CuaTrainError
from producer.policy.sequences import trajectory_parts
from producer.policy.tinker_policy import update
from producer.policy.tinker_policy.losses import policy_loss
from producer.policy.tinker_policy.update import logprobs_N
from tests.producer.policy.conftest import SETTINGS, make_request, make_screen, trajectory
from tests.producer.tinker.opened import through_sdk
from tests.support.turns import past_turn
from tests.support.update_settings import changed

OLD = np.log([0.2, 0.5, 0.8, 0.2])
NEW = np.log([0.4, 0.5, 0.4, 0.4])
ADVANTAGES = np.array([1.0, -2.0, 3.0, -1.0])
COMPUTED: tuple[LossName, ...] = ("importance_sampling", "ppo", "cispo")


@pytest.mark.parametrize(
    ("loss_fn", "expected"),
    [
        # Ratios 2, 1, 0.5 and 2.
        ("importance_sampling", -(2 * 1 + 1 * -2 + 0.5 * 3 + 2 * -1)),
        # Clipped to 1.2, 1, 0.8 and 1.2; the smaller of the two products counts.
        ("ppo", -(1.2 * 1 + 1 * -2 + 0.5 * 3 + 2 * -1)),
        (
            "cispo",
            -(1.2 * math.log(0.4) + -2 * math.log(0.5) + 0.8 * math.log(0.4) * 3)
            + 1.2 * math.log(0.4),
        ),
    ],
)
def test_the_loss_is_the_sum_over_tokens_of_its_formula(loss_fn: LossName, expected: float) -> None:
    settings = changed(SETTINGS, loss_fn=loss_fn)
    assert policy_loss(settings, NEW, OLD, ADVANTAGES) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("loss_fn", COMPUTED)
@pytest.mark.parametrize("bounds", [{}, {"clip_ratio_low": 0.01, "clip_ratio_high": 3.0}])
def test_of_each_token_it_is_the_loss_of_this_process_at_any_ratio(
    loss_fn: LossName, bounds: dict[str, float]
) -> None:
    settings = changed(SETTINGS, loss_fn=loss_fn, **bounds)
    random = np.random.default_rng(0)
    logprobs_N, sampled_N = -random.exponential(4.0, (2, 500))
    logprobs_N[:2], sampled_N[:2] = (-30.0, -0.5), (-0.5, -30.0)  # beyond where ratios are cut
    advantages_N = random.normal(size=500)
    new_BT, old_BT, advantages_BT = (
        torch.from_numpy(one)[None] for one in (logprobs_N, sampled_N, advantages_N)
    )
    mask_BT = torch.ones(1, 500, dtype=torch.bool)
    expected_BT = LOSSES[loss_fn](new_BT, old_BT, advantages_BT, mask_BT, clip_of(settings))
    tokens = zip(logprobs_N, sampled_N, advantages_N, strict=True)
    losses = [policy_loss(settings, *(np.array([one]) for one in token)) for token in tokens]
    assert losses == pytest.approx(expected_BT[0].tolist())


def test_only_the_losses_that_tinker_computes_are_computed() -> None:
    for loss_fn in set(get_args(LossName)) - set(COMPUTED):
        with pytest.raises(KeyError):
            policy_loss(changed(SETTINGS, loss_fn=loss_fn), NEW, OLD, ADVANTAGES)


@pytest.mark.usefixtures("sdk_connections")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_a_loss_that_is_no_number_and_an_answer_without_log_probs_raise(
    small_policy: Path, stand_in: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = through_sdk(small_policy, stand_in)
    (completion,) = policy.sample([make_request(1, make_screen(1))])
    assert completion.tokens is not None, completion.failure
    one = trajectory([past_turn(make_screen(1), completion.text, completion.tokens)], 1.0)
    (part,) = trajectory_parts([one])
    elementwise = {"elementwise_loss": TensorData.from_numpy(np.zeros(3, np.float32))}
    with pytest.raises(CuaTrainError, match="has elementwise_loss but no logprobs; use"):
        logprobs_N(part, elementwise)
    monkeypatch.setattr(update, "policy_loss", lambda *_: math.inf)
    with pytest.raises(CuaTrainError, match=r"the update's loss is inf, which is not finite"):
        policy.update([one], SETTINGS)
    assert policy.version == 0
