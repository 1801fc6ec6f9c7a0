"""The split of an evaluation: whether its tasks are the training's, by what is asked."""

from dataclasses import replace

import pytest

from producer.agents import AGENTS
from producer.agents.android.demo_tasks import demo_tasks
from producer.config.preset import held_out_source
from producer.tasks.overlap import overlaps, question_of, split_of
from producer.tasks.sources import source_name

TRAINED = [task for task in demo_tasks() if task.split == "train"]


def test_tasks_that_training_has_none_of_are_held_out() -> None:
    assert split_of(TRAINED[:3], TRAINED[3:6], seeds_matter=True) == "held_out"


@pytest.mark.parametrize(
    ("seeds_matter", "split"), [(True, "training_tasks_unseen_seeds"), (False, "training_tasks")]
)
def test_a_training_evaluated_on_its_own_tasks_is_called_that(
    seeds_matter: bool, split: str
) -> None:
    assert split_of(TRAINED, TRAINED[:5], seeds_matter=seeds_matter) == split


def test_some_of_the_trainings_tasks_are_mixed() -> None:
    assert split_of(TRAINED[:3], TRAINED[2:6], seeds_matter=True) == "mixed"


@pytest.mark.parametrize(
    ("environment", "source_type"),
    [("desktop", "desktop"), ("miniwob", "miniwob"), ("android", "phone_goals")],
)
def test_held_out_tasks_share_nothing_with_training_tasks_in_instruction_or_goal(
    environment: str, source_type: str
) -> None:
    """Also where the environment words its tasks, so that all have the same description."""
    source = AGENTS[environment].task_sources[source_type]
    trained, held_out = (
        source.model_validate({"source_type": source_type, "split": split}).load("tasks")
        for split in ("train", "held_out")
    )
    assert split_of(trained, held_out, seeds_matter=True) == "held_out"
    assert split_of(trained, trained[:2], seeds_matter=True) == "training_tasks_unseen_seeds"
    seen = {overlap.of: overlap.num_seen for overlap in overlaps(trained, held_out)}
    assert {seen.get(of, 0) for of in ("task", "instruction", "goal")} == {0}


def test_another_id_or_spelling_does_not_make_a_task_another_one() -> None:
    again = replace(TRAINED[0], task_id="mine", description=f" {TRAINED[0].description.upper()}  ")
    assert question_of(again) == question_of(TRAINED[0])
    assert split_of(TRAINED, [again], seeds_matter=False) == "training_tasks"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ({"source_type": "demo_eval"}, "demo_eval"),
        ({"source_type": "ids", "task_ids": ["a", "b"]}, "2 task ids"),
        ({"source_type": "custom", "custom_tasks": ["Open it"]}, "1 custom task"),
        ({"source_type": "file", "file_path": "/data/mine.jsonl"}, "mine.jsonl"),
        ({"source_type": "dbbench_generated", "split": "held_out"}, "dbbench_generated, held_out"),
        ([{"source_type": "demo_eval"}, {"source_type": "demo_all"}], "demo_eval + demo_all"),
        (None, "default tasks"),
    ],
)
def test_a_source_has_a_short_name(source: object, name: str) -> None:
    assert source_name(source) == name  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tasks", "held_out"),
    [
        ({"source_type": "demo_training", "limit": 8}, {"source_type": "demo_eval"}),
        (
            {"source_type": "dbbench_generated", "num_samples": 1100, "seed": 3, "split": "train"},
            {
                "source_type": "dbbench_generated",
                "num_samples": 264,
                "seed": 3,
                "split": "held_out",
            },
        ),
        (
            {"source_type": "dbbench", "path": "data", "split": "train"},
            {"source_type": "dbbench", "path": "data", "split": "held_out"},
        ),
        ({"source_type": "dbbench", "path": "data"}, None),
        ({"source_type": "ids", "task_ids": ["a"]}, None),
        ([{"source_type": "demo_training"}], None),
    ],
)
def test_a_source_with_a_held_out_split_is_evaluated_on_it(tasks: object, held_out: object) -> None:
    assert held_out_source(tasks) == held_out  # type: ignore[arg-type]
