"""Tasks of one or two goals: their splits share no pair, and an oracle solves each of them."""

from dataclasses import replace
from itertools import combinations

import pytest

from producer.agents.android.goals import GOAL_SPLITS, every_goal_task, goal_tasks
from producer.agents.android.shell_judge import judge
from producer.agents.android.sim.device.sim import AndroidSim
from producer.agents.android.sim.oracle.oracles import oracle_action
from producer.task import Task

EVERY = every_goal_task()


def goals(task: Task) -> frozenset[str]:
    return frozenset(task.task_id.split("+"))


def test_a_task_is_its_goals_in_words_and_in_queries() -> None:
    (task,) = (task for task in EVERY if task.task_id == "wifi-off+chrome")
    assert task.description == "Turn Wi-Fi off, then open Chrome."
    assert task.validation_query == "wifi_enabled & current_app"
    assert task.expected_result == "False & com.android.chrome"
    assert task.setup == ("settings put global wifi_on 1",)


def test_there_are_enough_held_out_pairs_for_an_evaluation_of_distinct_tasks() -> None:
    assert [len(goal_tasks(split)) for split in GOAL_SPLITS] == [30, 80, 264]


def test_no_pair_is_in_two_splits_in_either_order() -> None:
    pairs = [{goals(task) for task in goal_tasks(split)} for split in GOAL_SPLITS]
    for first, second in combinations(pairs, 2):
        assert not first & second


@pytest.mark.parametrize("split", ["train", "held_out"])
def test_every_goal_is_part_of_pairs_of_each_split(split: str) -> None:
    single = {task.task_id for task in goal_tasks("single")}
    assert frozenset[str]().union(*map(goals, goal_tasks(split))) == single


@pytest.mark.parametrize("task", EVERY, ids=lambda task: task.task_id)
def test_the_oracle_solves_what_is_unsolved_at_first(task: Task) -> None:
    phone = AndroidSim()
    phone.start(task, seed=5)
    assert not judge(task, phone.shell).success
    for _ in range(task.max_steps):
        action = oracle_action(task, phone)[1]
        if action.type == "terminate":
            break
        phone.perform(action)
    assert judge(task, phone.shell).success
    phone.close()


@pytest.mark.parametrize(
    "names", [("current_app", "wifi_enabled"), ("wifi_enabled", "current_app")]
)
def test_the_oracle_reaches_joined_goals_in_any_order(names: tuple[str, str]) -> None:
    answers = {"current_app": "com.android.chrome", "wifi_enabled": "False"}
    task = replace(
        EVERY[0],
        validation_query=" & ".join(names),
        expected_result=" & ".join(answers[name] for name in names),
        setup=("settings put global wifi_on 1",),
    )
    phone = AndroidSim()
    phone.start(task, seed=5)
    for _ in range(10):
        phone.perform(oracle_action(task, phone)[1])
        if judge(task, phone.shell).success:
            break
    assert judge(task, phone.shell).success
    phone.close()
