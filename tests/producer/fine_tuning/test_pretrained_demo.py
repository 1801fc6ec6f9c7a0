"""The demonstration on a pretrained policy: its stages, its split and its errors.

A random policy of the same architecture stands in the pretrained one's folder: what is learned is
measured in docs/measurements, not here.
"""

import threading
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
import torch

from producer.commands.sql_demo import pretrained_accuracies, report
from producer.fine_tuning.greedy_gain import by_database
from producer.fine_tuning.pretrained_demo import (
    PretrainedDemo,
    PretrainedDemoRecipe,
    some_questions,
)
from producer.fine_tuning.questions import AnsweredQuestion
from producer.pretrained.known import KNOWN, SOURCE, source_text
from schemas.clustered_errors import TaskCount
from schemas.installation import Installation
from tests.support.checkpoints import write_checkpoint

RECIPE = PretrainedDemoRecipe(
    train_databases=2,
    dev_databases=6,
    imitated_databases=1,
    imitated_of_each=3,
    lora_rank=2,
    sft_epochs=1,
    group_size=2,
    max_tokens=4,
    zero_shot_questions=2,
    limit=6,
)


def test_every_stage_is_a_training_of_the_log_and_done_stages_are_not_done_again(
    installation: Installation, read_log: Callable[[], list[dict[str, Any]]]
) -> None:
    torch.set_num_threads(1)
    model = KNOWN[RECIPE.model]
    folder = model.folder(installation.policies_dir)
    write_checkpoint(folder, "llama", tied=True)
    (folder / SOURCE).write_text(source_text(model, "0" * 64))
    demo = PretrainedDemo(0, installation, RECIPE, threading.Event())
    found = demo.run()
    assert [*found] == [
        *("policy", "data", "zero-shot", "sft", "rejection sampling"),
        *("control update", "control"),
    ]
    assert found["data"]["imitated"] == 3
    measured = found["rejection sampling"]
    assert measured["answers"] == 2 * found["data"]["train"]
    assert (measured["questions"], measured["before"], measured["gain"]) == (6, 0.0, 0.0)
    events = read_log()
    created = [event["data"] for event in events if event["type"] == "cua.training.created"]
    assert [item["run_name"] for item in created] == [
        f"sql-demo-smollm2-135m-{RECIPE.identity}-0-{stage}"
        for stage in ("zero-shot", "sft", "rejection", "control")
    ]
    rollouts = [event for event in events if event["type"] == "cua.rollout.started"]
    assert len(rollouts) == 2 + 6 + measured["answers"] + 6 + 6
    assert (demo.folder / "rejection" / "adapter_model.safetensors").is_file()
    assert demo.run() == found
    assert len(read_log()) == len(events)


def test_golds_are_drawn_from_each_of_the_first_databases() -> None:
    answered = [
        AnsweredQuestion((), f"{database}/{at}", f"{database} {at}")
        for database in ("a", "b", "c")
        for at in range(5)
    ]
    found = [item.group for item in some_questions(answered, 2, 3, Random(1))]
    assert [group[0] for group in found] == ["a", "a", "a", "b", "b", "b"]
    assert len({*found}) == 6
    assert len(some_questions(answered, 9, 9, Random(1))) == 15


def test_counts_of_a_databases_questions_are_added_up() -> None:
    counts = {
        "dev_pet_shop_dev_0_1": TaskCount(1, 1),
        "dev_pet_shop_dev_0_2": TaskCount(0, 1),
        "dev_pet_shop_dev_1_3": TaskCount(1, 2),
    }
    assert by_database(counts) == {
        "dev_pet_shop_dev_0": TaskCount(1, 2),
        "dev_pet_shop_dev_1": TaskCount(1, 2),
    }


def test_the_table_has_the_policy_before_and_after_each_stage_and_the_gain() -> None:
    stages: dict[str, dict[str, Any]] = {
        "data": {"imitated": 128},
        "zero-shot": {"accuracy": 0.0, "standard_error": 0.0, "questions": 64},
        "rejection sampling": {
            "before": 0.6,
            "before_standard_error": 0.02,
            "accuracy": 0.7,
            "standard_error": 0.01,
            "gain": 0.1,
            "gain_standard_error": 0.015,
        },
    }
    stages["control"] = {"gain": 0.01, "gain_standard_error": 0.014, "seconds": 2}
    assert pretrained_accuracies(stages) == {
        "as it comes (64 questions)": (0.0, 0.0),
        "sft on 128 golds": (0.6, 0.02),
        "sft + rejection sampling": (0.7, 0.01),
        "  gain": (0.1, 0.015),
        "  gain of the control": (0.01, 0.014),
    }
    stages["rejection sampling"] |= {"questions": 480, "eval_split": "held_out"}
    for stage in stages.values():
        stage["seconds"] = 2
    printed = report(stages)
    assert [stage["name"] for stage in printed.pop("stages")] == [*stages]
    assert printed == {
        "policy": "smollm2-135m",
        "method": "rejection sampling",
        "eval_tasks": 480,
        "eval_split": "held_out",
        "success_before": 0.6,
        "standard_error_before": 0.02,
        "success_after": 0.7,
        "standard_error_after": 0.01,
        "gain": 0.1,
        "gain_standard_error": 0.015,
        "control_gain": 0.01,
        "control_gain_standard_error": 0.014,
        "seconds": 8,
    }


@pytest.mark.parametrize("changed", [{"model": "other"}, {"temperature": 0.5}, {"limit": 7}])
def test_another_recipe_has_another_identity(changed: dict[str, Any]) -> None:
    assert replace(RECIPE, **changed).identity != RECIPE.identity
