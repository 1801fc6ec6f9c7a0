"""The demonstration's pipeline on a network too small to learn: its stages and their end."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

from producer.commands.sql_demo import accuracies
from producer.errors import StopRequestedError, UsageError
from producer.fine_tuning.sql_demo import SqlDemo, SqlDemoRecipe
from producer.fine_tuning.stages import STAGES
from schemas.installation import Installation

RECIPE = SqlDemoRecipe(
    templates=("count",),
    train_databases=3,
    dev_databases=2,
    dim=32,
    sft_epochs=40,
    sft_learning_rate=1e-2,
    labelled_questions=4,
    completions=2,
    step_completions=2,
    prm_epochs=1,
    rl_steps=1,
    groups_per_batch=2,
    group_size=2,
    lora_rank=4,
    max_tokens=8,
    n=2,
    limit=4,
)


def test_every_stage_is_a_training_of_the_log_and_done_stages_are_not_done_again(
    installation: Installation, read_log: Callable[[], list[dict[str, Any]]]
) -> None:
    torch.set_num_threads(1)
    demo = SqlDemo(0, installation, RECIPE, threading.Event())
    found = demo.run()
    assert [*found] == [
        *("data", "sft", "step labels", "reward model"),
        *("grpo outcome", "grpo process", "best of n, sft", "best of n, process"),
    ]
    assert found["best of n, sft"]["questions"] == found["grpo outcome"]["questions"] == 4
    events = read_log()
    created = [event["data"] for event in events if event["type"] == "cua.training.created"]
    assert [item["run_name"] for item in created] == [
        f"sql-demo-0-{stage}" for stage in ("sft", "labels", "prm", "grpo-outcome", "grpo-process")
    ]
    figures = accuracies(found, "last")
    assert figures["sft"][0] == found["grpo outcome"]["before"]
    assert demo.run() == found
    assert len(read_log()) == len(events)
    other = SqlDemo(0, installation, SqlDemoRecipe(), threading.Event())
    with pytest.raises(UsageError, match="was made by another version"):
        other.run()


def test_what_is_shown_is_the_choice_among_all_completions_by_the_strategy_of_the_recipe() -> None:
    sizes = [
        {"n": 1, "last": 0.5, "min": 0.5, "pass_at_n": 0.5},
        {"n": 8, "last": 0.8, "min": 0.1, "pass_at_n": 0.9},
    ]
    best = {"questions": 100, "sizes": sizes}
    trained = {"before": 0.4, "before_standard_error": 0.05, "accuracy": 0.6, "standard_error": 0.1}
    stages: dict[str, dict[str, Any]] = {
        "grpo outcome": trained,
        "grpo process": {**trained, "accuracy": 0.7},
        "best of n, sft": best,
        "best of n, process": best,
    }
    figures = accuracies(stages, "last")
    assert figures["sft"] == (0.4, 0.05)
    assert figures["sft + grpo (outcome)"] == (0.6, 0.1)
    assert figures["sft + grpo (process)"] == (0.7, 0.1)
    for policy in ("sft", "process"):
        assert figures[f"  {policy}, one sample"] == (0.5, None)
        chosen, error = figures[f"  {policy}, best of 8"]
        assert chosen == 0.8
        assert error == pytest.approx(0.04)  # sqrt(0.8 x 0.2 / 100)
        assert figures[f"  {policy}, pass@8"] == (0.9, None)


def test_a_demonstration_that_is_stopped_keeps_the_stages_that_ended(
    installation: Installation,
) -> None:
    stop = threading.Event()
    stop.set()
    demo = SqlDemo(0, installation, RECIPE, stop)
    with pytest.raises(StopRequestedError):
        demo.run()
    assert '"data"' in (demo.folder / STAGES).read_text()
