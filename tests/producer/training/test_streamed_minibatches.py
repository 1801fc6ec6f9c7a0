"""Gradients begin while rollouts still run: the same step, in less time, with the same bits."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest

from producer.config import read_config
from producer.errors import StopRequestedError, UsageError
from producer.policy.learner import Trajectory, UpdateResult
from producer.policy.policy import SampledTokens
from producer.rollouts.plan import GroupOutcome, GroupPlan, RolloutResult, StatedTask
from producer.training.redo import redo
from producer.training.run import run
from producer.training.updates import StreamedStep, minibatches_of
from schemas.installation import Installation
from tests.support.invariants import violations
from tests.support.reading import ReadLog, installation_at, of_type
from tests.support.same_run import bits_of, differences
from tests.support.scripted import plan
from tests.support.slow_run import Slow
from tests.support.small_run import TINY, small
from tests.support.turns import trained_turn

torch = pytest.importorskip("torch")

SETTINGS: dict[str, Any] = {
    **TINY,
    "group_size": 3,
    "groups_per_batch": 4,
    # One group after the other.
    "max_concurrent_rollouts": 3,
}


@pytest.mark.parametrize(
    ("groups", "substeps", "minibatches", "expected"),
    [
        (4, 1, None, [[0], [1], [2], [3]]),
        (4, 1, 2, [[0, 1], [2, 3]]),
        (5, 2, 2, [[0], [1], [2], [3, 4]]),
        (7, 1, 3, [[0, 1], [2, 3], [4, 5, 6]]),
        (3, 2, None, [[], [0], [1], [2]]),
    ],
)
def test_minibatches_are_the_plans_groups_in_order(
    groups: int, substeps: int, minibatches: int | None, expected: list[list[int]]
) -> None:
    config = small(
        groups_per_batch=groups,
        num_substeps=substeps,
        stream_minibatch=True,
        num_minibatches=minibatches,
    )
    assert [list(places) for places in minibatches_of(config)] == expected


def test_a_step_is_that_of_the_whole_batch_up_to_rounding(
    installation: Installation, read_log: ReadLog, policy: str
) -> None:
    for name, settings in (("whole", {}), ("streamed", {"stream_minibatch": True})):
        config = small(
            **{**SETTINGS, **settings}, model_name=policy, num_steps=1, training_name=name
        )
        run(config, installation=installation)
    events = read_log()
    whole, streamed = of_type(events, "step.finished")
    assert whole["policy_gradient_norm"] > 0
    for name in ("loss", "policy_gradient_norm", "kl_divergence", "reward_mean"):
        assert streamed[name] == pytest.approx(whole[name], rel=1e-5, abs=1e-6), name
    chosen = [event["samples"] for event in of_type(events, "step.samples_chosen")]
    half = len(chosen) // 2
    kept = ("advantage", "reward", "used", "drop_reason", "num_tokens")
    assert [[sample[key] for key in kept] for part in chosen[:half] for sample in part] == [
        [sample[key] for key in kept] for part in chosen[half:] for sample in part
    ]
    assert violations(events, num_steps=1, groups=4, group_size=3) == []


def test_whatever_the_latencies_the_bits_are_the_same_and_so_they_are_from_the_log(
    installation: Installation, policy: str, tmp_path: Path
) -> None:
    config = small(
        **SETTINGS, model_name=policy, num_steps=2, stream_minibatch=True, num_substeps=2
    )
    slow = installation_at(tmp_path / "slow")
    run(config, installation=installation)
    with Slow(opening_s=0.05, acting_s=0.02, update_s=0.3, seed=3):
        run(config, installation=slow)
    assert not differences(bits_of(installation.home, "small"), bits_of(slow.home, "small"))
    for step in (1, 2):
        result = redo(installation, "small", step, None, threading.Event())
        assert result.is_equal, result.as_json()["differences"]


def test_a_step_that_was_cut_off_goes_on_with_the_same_bits(
    installation: Installation, read_log: ReadLog, policy: str, tmp_path: Path
) -> None:
    config = small(**SETTINGS, model_name=policy, num_steps=2, stream_minibatch=True)
    undisturbed = installation_at(tmp_path / "undisturbed")
    run(config, installation=undisturbed)
    stop = threading.Event()

    def watch() -> None:
        # Two of the four groups have ended, and their gradients are under way.
        while not stop.is_set():
            if len(of_type(read_log(), "group.finished")) >= 2:
                stop.set()
            time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    with Slow(opening_s=0.2, update_s=0.4), pytest.raises(StopRequestedError):
        run(config, installation=installation, stop=stop)
    watcher.join(10)
    assert not of_type(read_log(), "step.finished")
    run(config, installation=installation)
    assert not differences(bits_of(undisturbed.home, "small"), bits_of(installation.home, "small"))


def outcome(num: int, rewards: Sequence[float]) -> GroupOutcome:
    one = plan(0)
    turn = trained_turn(None, SampledTokens(None, (1,), 0, (2,), (-1.0,), "stop"))
    results = [
        RolloutResult(one, "completed", False, reward, 1, 1, 0, (turn,), 0, 1.0)
        for reward in rewards
    ]
    group = GroupPlan(num, UUID(int=num), StatedTask(one.task, UUID(int=9), None), (0, 0))
    return GroupOutcome(group, tuple(results), is_failed=False)


class NotedUpdate:
    """Notes the advantages of each minibatch."""

    def __init__(self) -> None:
        self.minibatches: list[list[float]] = []

    def add(self, trajectories: Sequence[Trajectory]) -> None:
        self.minibatches.append([cast("float", item.advantage) for item in trajectories])

    def work(self) -> bool:
        return False

    def finish(self) -> UpdateResult:
        raise NotImplementedError


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 0, 3, 2), (2, 3, 0, 1)])
def test_minibatches_come_in_the_plans_order_whoever_ends_first(order: tuple[int, ...]) -> None:
    config = small(groups_per_batch=4, stream_minibatch=True, num_minibatches=2)
    outcomes = [outcome(num, rewards=[num, 2.0 * num + 1]) for num in range(4)]
    update = NotedUpdate()
    step = StreamedStep(config, update, [item.plan for item in outcomes], version=0)
    for num in order:
        step.group_ended(outcomes[num])
    # Half the distance of the group's two rewards below and above their mean.
    assert update.minibatches == [[-0.5, 0.5, -1.0, 1.0], [-1.5, 1.5, -2.0, 2.0]]


def opened_in_updates(
    installation: Installation, policy: str, name: str, **settings: object
) -> int:
    """Devices that begin to open while gradients are computed, in three steps on slow devices."""
    config = small(**SETTINGS, **settings, model_name=policy, num_steps=3, training_name=name)
    with Slow(opening_s=0.4, acting_s=0.1, update_s=1.2) as slow:
        run(config, installation=installation)
    return slow.opened_in_updates


def test_devices_are_opened_while_gradients_are_computed(
    installation: Installation, policy: str
) -> None:
    assert opened_in_updates(installation, policy, "whole") == 0
    assert opened_in_updates(installation, policy, "streamed", stream_minibatch=True) >= 3


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"advantage": "gae"}, "advantage gae compares over the whole step"),
        ({"advantage": "gpg"}, "advantage gpg compares over the whole step"),
        ({"advantage": "reinforce_plus_plus"}, "reinforce_plus_plus compares over the whole"),
        ({"advantage": "reinforce_plus_plus_baseline"}, "baseline compares over the whole step"),
        ({"advantage": "reinforce", "baseline": "moving"}, "moving is of whole steps"),
        ({"kl_penalty_coef": 0.1}, "relative to the mean of the whole step"),
        ({"max_steps_off_policy": 1}, "overlaps rollouts and updates already"),
        ({"num_minibatches": 5}, "num_substeps is more than the 4 groups"),
        ({"num_minibatches": 2, "num_substeps": 3}, "num_substeps is more than the 4 groups"),
        ({"stream_minibatch": False, "num_minibatches": 2}, "no effect without stream_minibatch"),
    ],
)
def test_what_needs_the_whole_step_is_refused_by_name(
    changes: dict[str, Any], sentence: str
) -> None:
    given = {
        "model_name": "some/policy",
        "tasks": {"source_type": "demo_training"},
        "groups_per_batch": 4,
        "stream_minibatch": True,
        **changes,
    }
    with pytest.raises(UsageError, match=sentence):
        read_config(given)
