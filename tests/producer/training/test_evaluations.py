"""Evaluations record what their figures are of; a greedy one may have a sampled one next to it."""

import json
from typing import Any

import pytest

from producer.resume import resume_state
from producer.training.manual_evaluation import evaluate
from producer.training.run import run
from producer.training.summary import comparison, last_evaluation, summary_lines
from schemas.installation import Installation
from tests.support.reading import ReadLog, of_type
from tests.support.small_run import small

TWO = {"source_type": "ids", "task_ids": ["train_02_enable_wifi", "train_04_open_chrome"]}


def created(read_log: ReadLog) -> list[tuple[Any, ...]]:
    names = ("kind", "step", "temperature", "total_tasks", "split", "num_tasks", "task_source")
    events = of_type(read_log(), "evaluation.created")
    return [tuple(data[name] for name in names) for data in events]


def test_each_point_has_a_greedy_and_a_sampled_evaluation_of_the_same_tasks(
    installation: Installation, read_log: ReadLog
) -> None:
    summary = run(
        small(num_steps=1, tasks=TWO, eval_episodes=4, eval_sampled_episodes=3),
        installation=installation,
    )
    split = "training_tasks_unseen_seeds"
    assert created(read_log) == [
        ("baseline", 0, 0.0, 4, split, 2, "2 task ids"),
        ("baseline", 0, 1.0, 3, split, 2, "2 task ids"),
        ("scheduled", 1, 0.0, 4, split, 2, "2 task ids"),
        ("scheduled", 1, 1.0, 3, split, 2, "2 task ids"),
    ]
    assert (summary.eval_tasks, summary.eval_split, summary.episodes) == (2, split, 4)
    assert None not in {summary.success_before, summary.success_after, summary.gain}
    assert None not in {summary.sampled_success_after, summary.sampled_gain_standard_error}
    temperatures = {
        (event["data"]["temperature"], event["data"]["is_eval"])
        for event in read_log()
        if event["type"] == "cua.rollout.created"
    }
    assert temperatures >= {(0.0, True), (1.0, True)}


def test_a_difference_is_judged_by_the_tasks_that_it_is_over(installation: Installation) -> None:
    tasks = {"source_type": "demo_training", "limit": 8}
    summary = run(
        small(num_steps=1, tasks=tasks, eval_episodes=8, eval_sampled_episodes=3),
        installation=installation,
    )
    assert (summary.gain_tasks, summary.sampled_gain_tasks) == (8, 3)
    greedy, sampled, _ = summary_lines(summary)
    assert ("two standard errors" in greedy, "too few tasks" in sampled) == (True, True)


def test_a_sampled_run_reports_no_greedy_success(installation: Installation) -> None:
    summary = run(
        small(num_steps=1, eval_temperature=1.0, eval_sampled_episodes=3), installation=installation
    )
    assert (summary.success_before, summary.success_after, summary.gain) == (None, None, None)
    assert summary.sampled_success_after is not None
    assert summary.eval_temperature == 1.0


def test_another_temperature_is_neither_greedy_nor_sampled_success(
    installation: Installation,
) -> None:
    summary = run(small(num_steps=1, eval_temperature=0.5), installation=installation)
    assert (summary.success_after, summary.sampled_success_after) == (None, None)
    assert summary.eval_temperature == 0.5


def test_a_second_evaluation_changes_nothing_of_the_training(
    installation: Installation, read_log: ReadLog
) -> None:
    def rewards(name: str) -> list[Any]:
        start = len(read_log())
        run(
            small(training_name=name, eval_sampled_episodes=2 * (name == "two")),
            installation=installation,
        )
        return [
            (event["data"]["reward_mean"], event["data"]["loss"])
            for event in read_log()[start:]
            if event["type"] == "cua.step.finished"
        ]

    assert rewards("one") == rewards("two")


def test_a_training_begun_without_temperatures_goes_on_and_repeats_no_baseline(
    installation: Installation, read_log: ReadLog
) -> None:
    run(small(baseline_only=True), installation=installation)
    folder = installation.runs_dir / "small"
    ((manifest, _), *_) = resume_state.find_states(folder)
    older = [
        {
            "label": evaluation.label,
            "step": evaluation.step,
            "success": evaluation.success,
            "standard_error": evaluation.standard_error,
            "episodes": evaluation.episodes,
            "by_task": evaluation.by_task,
        }
        for evaluation in manifest.evaluations
    ]
    (path,) = folder.rglob("manifest.json")
    text = json.loads(path.read_text())
    path.write_text(json.dumps({**text, "evaluations": older}))
    summary = run(small(num_steps=1), installation=installation)
    assert [item[0] for item in created(read_log)] == ["baseline", "scheduled"]
    assert summary.success_before is None, "its temperature was not recorded"
    assert summary.success_after is not None


def test_an_evaluation_by_hand_of_other_tasks_names_them_and_is_no_point_of_the_curve(
    installation: Installation, read_log: ReadLog
) -> None:
    run(small(num_steps=1, tasks=TWO), installation=installation)
    ((manifest, _), *_) = resume_state.find_states(installation.runs_dir / "small")
    others = {"source_type": "ids", "task_ids": ["train_05_airplane_mode"]}
    by_hand = evaluate(
        {"eval_tasks": others, "eval_episodes": 2, "eval_temperature": 0.0},
        training_name="small",
        installation=installation,
    )
    assert created(read_log)[-1] == ("manual", 1, 0.0, 2, "held_out", 1, "1 task id")
    assert by_hand.evaluation_id is not None
    assert (by_hand.split, by_hand.num_tasks, by_hand.temperature) == ("held_out", 1, 0.0)
    ((after, _), *_) = resume_state.find_states(installation.runs_dir / "small")
    assert after.evaluations == manifest.evaluations


def test_a_policy_of_no_training_has_no_split(
    installation: Installation, read_log: ReadLog
) -> None:
    evaluate(
        {"model_name": "oracle", "eval_episodes": 2}, training_name=None, installation=installation
    )
    assert created(read_log) == [("manual", None, 0.0, 2, None, 2, "phone_goals, held_out")]


def test_tasks_that_no_seed_changes_are_asked_once_when_greedy(
    installation: Installation, read_log: ReadLog
) -> None:
    source = {"source_type": "dbbench_generated", "num_samples": 11, "seed": 1, "split": "train"}
    evaluate(
        {
            "model_name": "oracle",
            "environment": "dbbench",
            "tasks": source,
            "eval_tasks": source,
            "eval_episodes": 60,
        },
        training_name=None,
        installation=installation,
    )
    ((_, _, temperature, episodes, _, num_tasks, source_name),) = created(read_log)
    assert (temperature, episodes, num_tasks) == (0.0, num_tasks, episodes)
    assert episodes <= 11
    assert source_name == "dbbench_generated, train"


@pytest.mark.parametrize(("temperature", "step"), [(0.0, 2), (1.0, 3)])
def test_a_comparison_is_of_one_temperature(temperature: float, step: int) -> None:
    def at(step: int, temperature: float | None) -> resume_state.EvaluationSummary:
        return resume_state.EvaluationSummary(
            "x", step, 0.5, 0.1, 4, temperature=temperature, counts={}
        )

    known = (at(0, 0.0), at(0, 1.0), at(2, 0.0), at(3, 1.0), at(3, None))
    found = comparison(known, temperature)
    assert found.before == at(0, temperature)
    assert found.after == at(step, temperature)
    assert found.difference is None, "no task was recorded"
    assert last_evaluation(known) == at(2, 0.0)
