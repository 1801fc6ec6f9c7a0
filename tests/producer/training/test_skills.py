"""Skills in turn: whose tasks a step trains on, and success by skill."""

from dataclasses import replace
from uuid import uuid4

import pytest

from producer.config import RunConfig, read_config
from producer.errors import UsageError
from producer.rollouts.plan import GroupOutcome, GroupPlan, RolloutResult, StatedTask
from producer.task import Task
from producer.training.batches import (
    check_skills,
    evaluates_after,
    skills_of,
    success_by_skill,
    tasks_of_step,
)
from schemas.entry import EntryContent
from tests.support.results import finished
from tests.support.scripted import WIFI, plan


def task(name: str, *skills: str) -> Task:
    entry = EntryContent(kind="dbbench", entry_id=name, instruction=name, skills=tuple(skills))
    return replace(WIFI, task_id=name, description=f"Do {name}.", entry=entry)


TASKS = [
    *(task(f"s{index}", "select") for index in range(5)),
    *(task(f"i{index}", "insert") for index in range(4)),
    *(task(f"d{index}", "delete") for index in range(3)),
    task("both", "select", "delete"),
]


def config(**given: object) -> RunConfig:
    return read_config(
        {
            "model_name": "oracle",
            "environment": "dbbench",
            "tasks": {"source_type": "demo_all"},
            "groups_per_batch": 2,
            "skill_sequence": "select,insert,delete",
            "steps_per_skill": 3,
            **given,
        }
    )


def test_each_stage_trains_on_the_tasks_that_need_its_skill() -> None:
    for step in range(1, 10):
        skill = ("select", "insert", "delete")[(step - 1) // 3]
        chosen = tasks_of_step(config(), TASKS, step)
        assert len(chosen) == 2
        assert all(skill in skills_of(item) for item in chosen)


def test_a_stage_goes_through_its_tasks_before_it_repeats_one() -> None:
    seen = [item.task_id for step in (1, 2, 3) for item in tasks_of_step(config(), TASKS, step)]
    assert sorted(seen) == ["both", *(f"s{index}" for index in range(5))]


def test_the_steps_follow_from_the_sequence_and_more_of_them_are_refused() -> None:
    assert config().num_steps == 9
    assert config(num_steps=4).num_steps == 4
    with pytest.raises(UsageError, match="num_steps: 10 is more than steps_per_skill x"):
        config(num_steps=10)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"skill_sequence": "select,,insert"}, "names no skill"),
        ({"skill_sequence": "a,b,a"}, "a given twice"),
        ({"skill_sequence": '["a",'}, "not a JSON list"),
        ({"skill_sequence": None}, "steps_per_skill: only with a skill_sequence"),
        ({"environment": "android"}, "skill_sequence: only with environment dbbench"),
    ],
)
def test_what_the_fields_cannot_mean_is_refused_by_name(
    given: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        config(**given)


def test_a_skill_that_no_task_needs_is_refused_with_the_nearest() -> None:
    check_skills(config(), TASKS)
    with pytest.raises(UsageError, match=r"no training task needs 'selects'. Did you mean"):
        check_skills(config(skill_sequence="selects"), TASKS)


def test_replay_draws_its_share_from_earlier_skills_and_none_in_the_first_stage() -> None:
    many = config(steps_per_skill=200, replay_share=0.25)
    first = [item for step in range(1, 201) for item in tasks_of_step(many, TASKS, step)]
    assert all("select" in skills_of(item) for item in first)
    second = [item for step in range(201, 401) for item in tasks_of_step(many, TASKS, step)]
    replayed = [item for item in second if "insert" not in skills_of(item)]
    assert all("select" in skills_of(item) for item in replayed)
    # Binomial(400, 0.25): five standard deviations are 43.
    assert abs(len(replayed) - 100) < 44
    assert second == [item for step in range(201, 401) for item in tasks_of_step(many, TASKS, step)]


def test_success_is_measured_after_the_last_step_of_each_skill() -> None:
    assert [step for step in range(1, 10) if evaluates_after(config(), step)] == [3, 6, 9]
    assert not evaluates_after(config(skill_sequence=None, steps_per_skill=None), 20)


def outcome(of: Task, *successes: bool) -> GroupOutcome:
    group = GroupPlan(0, uuid4(), StatedTask(of, uuid4(), None), (1,))
    results = tuple(
        RolloutResult(
            plan=plan(index, task=of),
            end=finished(float(success)),
            policy_version=0,
            turn_seconds=0.1,
            responses=("Action: Operation", "Action: Answer"),
            words=("[(3,)]",),
        )
        for index, success in enumerate(successes)
    )
    return GroupOutcome(group, results, is_failed=False)


def test_a_session_counts_once_for_every_skill_that_its_entry_needs() -> None:
    outcomes = [
        outcome(task("a", "select"), True, False, True),
        outcome(task("b", "select", "insert"), False, True),
        outcome(task("c", "delete")),
        outcome(WIFI, True),
    ]
    assert success_by_skill(outcomes) == {"all": (5, 3), "insert": (2, 1), "select": (5, 3)}
    assert success_by_skill([outcome(WIFI, True)]) == {}
