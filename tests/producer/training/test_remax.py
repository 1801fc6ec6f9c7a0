"""remax: a greedy rollout beside each group's others, whose reward is their baseline."""

import threading
from pathlib import Path
from typing import Any, cast

import pytest

from producer.config import read_config
from producer.errors import StopRequestedError
from producer.rewards import Outcome
from producer.rollouts.plan import GroupOutcome, RolloutResult
from producer.training.redo import redo
from producer.training.rescore import Scorer, rescore
from producer.training.run import run, utc_now
from producer.training.samples import select_samples
from schemas.installation import Installation
from tests.producer.training.conftest import Trained
from tests.support.invariants import violations
from tests.support.reading import ReadLog, installation_at, of_type
from tests.support.results import finished
from tests.support.same_run import bits_of, differences
from tests.support.slow_run import Slow
from tests.support.small_run import TINY, small, watching

torch = pytest.importorskip("torch")

SETTINGS: dict[str, Any] = {
    **TINY,
    "advantage": "remax",
    "group_size": 3,
    "groups_per_batch": 2,
    "num_steps": 2,
}


def check(events: list[dict[str, Any]], *, num_groups: int, group_size: int) -> None:
    """Every group has one greedy rollout, a sample that is not used; the others less its reward."""
    rollouts = {
        event["subject"].partition("/")[2]: event["data"]
        for event in events
        if event["type"] == "cua.rollout.created"
    }
    by_group: dict[str, list[dict[str, Any]]] = {}
    for chosen in of_type(events, "step.samples_chosen"):
        for sample in chosen["samples"]:
            by_group.setdefault(sample["group_id"], []).append(sample)
    assert len(by_group) == num_groups
    for samples in by_group.values():
        (greedy,) = [sample for sample in samples if sample["drop_reason"] == "baseline"]
        others = [sample for sample in samples if sample is not greedy]
        assert (greedy["used"], greedy["advantage"]) == (False, None)
        assert rollouts[greedy["rollout_id"]]["temperature"] == 0
        assert rollouts[greedy["rollout_id"]]["env_index"] == group_size
        assert len({rollouts[sample["rollout_id"]]["seed"] for sample in samples}) == 1
        assert len(others) == group_size
        for other in others:
            assert rollouts[other["rollout_id"]]["temperature"] == 1
            assert other["used"]
            assert other["advantage"] == pytest.approx(other["reward"] - greedy["reward"])


def test_each_group_is_compared_with_its_greedy_rollout_which_counts_in_nothing_else(
    trained: Trained, read_log: ReadLog, policy: str
) -> None:
    trained(**SETTINGS, model_name=policy)
    events = read_log()
    assert violations(events, num_steps=2, groups=2, group_size=4) == []
    check(events, num_groups=4, group_size=3)
    rewards: dict[str, list[float]] = {}
    greedy = set()
    for chosen in of_type(events, "step.samples_chosen"):
        for item in chosen["samples"]:
            if item["drop_reason"] == "baseline":
                greedy.add(item["rollout_id"])
            else:
                rewards.setdefault(chosen["step_id"], []).append(item["reward"])
    for step in of_type(events, "step.finished"):
        own = rewards[step["step_id"]]
        assert step["num_trajectories"] == 6
        assert step["reward_mean"] == pytest.approx(sum(own) / 6)
        assert step["metrics"]["env/all/reward/total"] == pytest.approx(sum(own) / 6)
        assert step["metrics"]["env/all/total_episodes"] == 6
        assert step["progress"]["percent"] == 100
    groups = [event for event in of_type(events, "group.created") if event["source_type"] == "step"]
    assert {group["num_rollouts"] for group in groups} == {3}
    own_groups = {group["group_id"] for group in groups}
    finished = [
        event for event in of_type(events, "group.finished") if event["group_id"] in own_groups
    ]
    assert len(finished) == 4
    for group in finished:
        assert group["completed_rollouts"] == 3
        assert greedy.isdisjoint(group["rollout_ids"])
    progress = [event["progress"]["percent"] for event in of_type(events, "training.progressed")]
    assert progress == sorted(progress)
    assert progress[-1] <= 100


def test_scoring_again_leaves_the_greedy_rollouts_out(
    trained: Trained, read_log: ReadLog, policy: str
) -> None:
    installation = trained(**SETTINGS, model_name=policy)
    before = read_log()
    greedy = {
        item["rollout_id"]
        for chosen in of_type(before, "step.samples_chosen")
        for item in chosen["samples"]
        if item["drop_reason"] == "baseline"
    }
    ended = {
        event["subject"].partition("/")[2]: event["data"]["task_success"]
        for event in before
        if event["type"] == "cua.rollout.finished"
    }
    assert len(greedy) == 4
    assert len(ended) == 2 * 2 * 4 + 2

    def by_turns(outcome: Outcome) -> float:
        return float(outcome.num_turns)

    summary = rescore(
        installation,
        "small",
        Scorer(reward_name="by_turns", reward=by_turns, config={}),
        clock=utc_now,
        stop=threading.Event(),
    )

    scored = {event["rollout_id"] for event in of_type(read_log(), "scoring.rollout_scored")}
    assert scored == ended.keys() - greedy
    assert (summary.rollouts, summary.failed) == (14, 0)
    own = [ended[item] for item in scored]
    assert summary.success_rate == pytest.approx(sum(own) / 14)


def test_a_greedy_rollout_is_the_same_in_every_group_of_its_task_and_seed(
    installation: Installation, read_log: ReadLog, policy: str
) -> None:
    """Its completions have no draw: another run's greedy rollout of the same screens is its own."""
    for seed_name in ("one", "other"):
        config = small(
            **{**SETTINGS, "group_size": 1, "num_steps": 1, "groups_per_batch": 1},
            model_name=policy,
            training_name=seed_name,
            temperature=1.0 if seed_name == "one" else 0.5,
        )
        run(config, installation=installation)
    events = read_log()
    created = {
        event["subject"]: event["data"]
        for event in events
        if event["type"] == "cua.rollout.created"
    }
    greedy: dict[str, list[str]] = {}
    for event in events:
        own = created.get(event["subject"], {})
        is_greedy = own.get("source_type") == "step" and own["temperature"] == 0
        if is_greedy and event["type"] == "cua.rollout.turn_taken":
            greedy.setdefault(event["subject"], []).append(event["data"]["model_response"])
    one, other = greedy.values()
    assert one == other


def test_cut_off_and_redone_it_has_the_same_bits(
    installation: Installation, read_log: ReadLog, policy: str, tmp_path: Path
) -> None:
    config = small(**SETTINGS, model_name=policy, max_concurrent_rollouts=2)
    undisturbed = installation_at(tmp_path / "undisturbed")
    run(config, installation=undisturbed)
    stop = threading.Event()

    def stop_in_the_second_step(line: str) -> None:
        if line.startswith("step 1/2"):
            threading.Timer(0.5, stop.set).start()

    with (
        Slow(opening_s=0.4),
        watching(stop_in_the_second_step),
        pytest.raises(StopRequestedError),
    ):
        run(config, installation=installation, stop=stop)
    assert len(of_type(read_log(), "step.finished")) == 1
    run(config, installation=installation)
    assert not differences(bits_of(undisturbed.home, "small"), bits_of(installation.home, "small"))
    check(read_log(), num_groups=4, group_size=3)
    for step in (1, 2):
        result = redo(installation, "small", step, None, threading.Event())
        assert result.is_equal, result.as_json()["differences"]


def test_it_works_with_rollouts_collected_ahead(
    installation: Installation, read_log: ReadLog, policy: str
) -> None:
    config = small(**SETTINGS, model_name=policy, max_steps_off_policy=1)
    with Slow(acting_s=0.01, update_s=0.2):
        run(config, installation=installation)
    check(read_log(), num_groups=4, group_size=3)


def rollout(reward: float) -> RolloutResult:
    return RolloutResult(cast("Any", None), finished(reward), policy_version=0, turn_seconds=1.0)


@pytest.mark.parametrize(
    ("rewards", "greedy", "removes_constant", "expected"),
    [
        ([1.0, 0.0], 1.0, False, [(0.0, None), (-1.0, None), (None, "baseline")]),
        # All are better than the greedy one: something is learnt.
        ([1.0, 1.0], 0.0, True, [(1.0, None), (1.0, None), (None, "baseline")]),
        (
            [1.0, 1.0],
            1.0,
            True,
            [(None, "zero_variance"), (None, "zero_variance"), (None, "baseline")],
        ),
        ([0.25], 0.5, False, [(-0.25, None), (None, "baseline")]),
    ],
)
def test_advantages_by_hand(
    rewards: list[float],
    greedy: float,
    removes_constant: bool,
    expected: list[tuple[float | None, str | None]],
) -> None:
    config = read_config({"advantage": "remax", "remove_constant_reward_groups": removes_constant})
    results = tuple(rollout(reward) for reward in rewards)
    outcome = GroupOutcome(cast("Any", None), results, is_failed=False, baseline=rollout(greedy))
    (samples,) = select_samples(config, [outcome])
    assert [(sample.advantage, sample.drop_reason) for sample in samples] == expected
