"""The section of `make learning` on a pretrained model, from made-up figures."""

from pathlib import Path
from typing import Any

from tests.learning.pretrained import load_pretrained, pretrained_table, save_pretrained


def result(seed: int, gain: float) -> dict[str, Any]:
    """As `cua-train sql demo --seed SEED --json`."""
    return {
        "seed": seed,
        "method": "rejection sampling",
        "eval_tasks": 532,
        "success_before": 0.5,
        "standard_error_before": 0.02,
        "success_after": 0.5 + gain,
        "standard_error_after": 0.02,
        "gain": gain,
        "gain_standard_error": 0.02,
        "control_gain": -0.1,
        "control_gain_standard_error": 0.01,
        "stages": [
            {"name": "sft", "cpu_seconds": 100.0},
            {"name": "rejection sampling", "cpu_seconds": 250.4, "databases": 53},
        ],
    }


def test_a_seed_is_raised_by_more_than_three_errors() -> None:
    shown = pretrained_table([result(0, 0.1), result(1, 0.06)])
    assert shown.startswith(
        "In 1 of 2 seeds rejection sampling raises greedy accuracy by more than 3 paired standard"
        " errors. The mean gain is +0.080 ± 0.020 over seeds, the control's -0.100."
    )
    assert (
        "| 0 | 532 | 53 | 0.500 ± 0.020 | 0.600 ± 0.020 | +0.100 ± 0.020 | 5.0 | -0.100 ± 0.010 |"
        " 350 |"
    ) in shown.splitlines()


def test_without_results_the_section_says_so() -> None:
    assert pretrained_table([]).startswith("Not measured by `make learning` yet")


def test_results_are_kept_by_seed_and_those_of_another_recipe_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "pretrained.json"
    for one in (result(3, 0.1), result(1, 0.1), result(3, 0.2)):
        save_pretrained(path, "a recipe", one)
    assert load_pretrained(path, "a recipe") == [result(1, 0.1), result(3, 0.2)]
    save_pretrained(path, "another", result(0, 0.1))
    assert load_pretrained(path, "another") == [result(0, 0.1)]
    assert load_pretrained(path, "a recipe") == []
