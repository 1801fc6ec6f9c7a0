"""Groups of equal rewards are replaced by groups of other tasks, also by a process that goes on."""

import threading
from collections import Counter
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest

from producer.agents.android.policy.build import build_policy
from producer.config import RunConfig, read_config
from producer.errors import StopRequestedError, UsageError
from producer.rewards import Outcome
from producer.rollouts.plan import GroupOutcome, GroupPlan, RolloutResult, StatedTask
from producer.task import Task
from producer.training.batches import tasks_of_refill
from producer.training.groups import GroupRunner
from producer.training.run import run
from producer.training.step_plan import StepPlan, groups_of_refill
from schemas.installation import Installation
from tests.producer.policy.conftest import TEXTS
from tests.producer.training.test_samples import outcome
from tests.support.invariants import violations
from tests.support.reading import ReadLog, installation_at
from tests.support.same_run import bits_of, differences
from tests.support.small_run import TINY, small
from tests.support.small_size import SIZE

TASKS = [Task(f"t{n}", f"t{n}", "do it", "easy", "app", 5, "current_app", "x") for n in range(6)]
SOURCE = cast("Any", type("Source", (), {"generation": 0}))


def odd_tokens(outcome: Outcome) -> float:
    """Of two rollouts' rewards about half are equal, whatever the policy."""
    return float(outcome.num_tokens % 2)


def equal(_outcome: Outcome) -> float:
    """The same for every rollout."""
    return 1.0


def refilled(
    config: RunConfig, outcomes: list[GroupOutcome], num_tasks: int = 6
) -> list[GroupPlan]:
    """The groups that replace some of a step's, which had the first tasks."""
    stated = [StatedTask(task, UUID(int=0), None, None) for task in TASKS[:num_tasks]]
    groups = tuple(
        GroupPlan(num, UUID(int=num), one, (1,))
        for num, one in zip(range(len(outcomes)), stated, strict=False)
    )
    plan = StepPlan(1, UUID(int=1), SOURCE, groups)
    return groups_of_refill(config, plan, stated, outcomes)


def test_a_group_of_equal_rewards_is_replaced_and_one_that_failed_is_not() -> None:
    config = read_config({"groups_per_batch": 3, "refill_rounds": 2})
    outcomes = [outcome(1.0, 0.0), outcome(1.0, 1.0), outcome(1.0, is_failed=True)]
    (added,) = refilled(config, outcomes)
    assert added.num == 3
    assert added.stated.task in TASKS[3:]
    # The substitute has no signal either, and a third one takes its place.
    (third,) = refilled(config, [*outcomes, outcome(0.0, 0.0)])
    assert third.num == 4
    assert refilled(config, [*outcomes, outcome(0.0, 1.0)]) == []


def test_a_step_has_no_task_twice_and_takes_fewer_where_none_is_left() -> None:
    config = read_config({"groups_per_batch": 4, "refill_rounds": 1})
    outcomes = [outcome(0.0, 0.0)] * 4
    tasks = [group.stated.task.task_id for group in refilled(config, outcomes)]
    assert sorted(tasks) == ["t4", "t5"]
    assert refilled(config, outcomes, num_tasks=4) == []


def test_other_tasks_follow_from_the_seed_and_the_step() -> None:
    config = read_config({"refill_rounds": 1, "seed": 3})
    orders = [
        tuple(task.task_id for task in tasks_of_refill(config, TASKS, step, {"t0"}, 5))
        for step in range(1, 20)
    ]
    assert len(set(orders)) > 10
    assert {task for order in orders for task in order} == {"t1", "t2", "t3", "t4", "t5"}
    again = tasks_of_refill(config, TASKS, 1, {"t0"}, 5)
    assert tuple(task.task_id for task in again) == orders[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"remove_constant_reward_groups": False},
            "refill_rounds: replaces the groups that",
        ),
        ({"advantage": "reinforce"}, "refill_rounds: replaces the groups that"),
        ({"control": "shuffled_rewards"}, "refill_rounds: selects groups by their true rewards"),
    ],
)
def test_where_nothing_is_dropped_nothing_is_replaced(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_config({"refill_rounds": 1, **given})


def test_rounds_end_when_every_group_has_a_signal_or_no_task_is_left(
    installation: Installation, read_log: ReadLog
) -> None:
    """All rewards are equal: five tasks, two groups a step, so 2 + 2 + 1 groups."""
    ids = [f"train_{name}" for name in ("01_open_settings", "02_enable_wifi", "07_go_home")]
    ids += ["train_03_max_brightness", "train_05_airplane_mode"]
    config = small(
        tasks={"source_type": "ids", "task_ids": ids},
        reward="tests.producer.training.test_refill:equal",
        num_steps=2,
        refill_rounds=5,
        group_size=2,
    )
    run(config, installation=installation)
    events = read_log()
    assert violations(events, num_steps=2, groups=5, group_size=2) == []
    created = [event["data"] for event in events if event["type"] == "cua.group.created"]
    steps = [data["group_num"] for data in created if data["source_type"] == "step"]
    assert steps == [0, 1, 2, 3, 4] * 2
    dropped = [event for event in events if event["type"] == "cua.group.dropped"]
    assert len(dropped) == 10
    finished = [event["data"] for event in events if event["type"] == "cua.step.finished"]
    assert [data["num_trajectories"] for data in finished] == [10, 10]
    progressed = [event["data"] for event in events if event["type"] == "cua.step.progressed"]
    assert all(0 <= data["progress"]["percent"] <= 100 for data in progressed)


def test_a_step_that_goes_on_replaces_the_same_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    build_policy(tmp_path / "policy", TEXTS, seed=0, size=SIZE)
    config = small(
        **{name: value for name, value in TINY.items() if name != "reward"},
        model_name=str(tmp_path / "policy"),
        tasks={"source_type": "demo_training"},
        reward="tests.producer.training.test_refill:odd_tokens",
        group_size=2,
        groups_per_batch=3,
        num_steps=2,
        save_every=0,
        refill_rounds=4,
    )
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    run(config, installation=installation_at(whole))
    undisturbed = bits_of(whole, "small")
    samples = [place for place in undisturbed if place[0] == "sample" and place[2] == "step-1"]
    assert len(samples) > 6, "no group of the first step was replaced"

    stop = threading.Event()
    taken: Counter[str] = Counter()
    take = GroupRunner._take

    def stopping(self: GroupRunner, result: RolloutResult) -> None:
        taken[result.plan.source.label] += 1
        if taken["step-1"] == 7:
            stop.set()  # one rollout of the second round has ended
        take(self, result)

    monkeypatch.setattr(GroupRunner, "_take", stopping)
    with pytest.raises(StopRequestedError):
        run(config, installation=installation_at(stopped), stop=stop)
    run(config, installation=installation_at(stopped))
    assert differences(undisturbed, bits_of(stopped, "small")) == []
