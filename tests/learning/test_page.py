"""The page of `make learning`, from made-up figures."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tests.learning.page import write_page
from tests.learning.results import SeedResult, load_results, missing_seeds, save_result

FACTS = {
    "imitation_steps": "200",
    "alignment_steps": "250",
    "grounding_steps": "140",
    "rl_steps": "20",
    "tuning_seed": "7",
    "commits": "abc",
    "pretrained": "Not measured.",
}


def rows(before: float, after: float) -> list[dict[str, Any]]:
    """As `cua-train compare NAME --json`, at both temperatures."""
    return [
        {
            "temperature": temperature,
            "success": success,
            "standard_error": 0.02,
            "difference": difference,
        }
        for temperature in (0.0, 1.0)
        for success, difference in (
            (before, None),
            (after, {"gain": after - before, "standard_error": 0.05, "interval": [0.1, 0.3]}),
        )
    ]


def test_each_seed_has_a_row_and_gains_have_a_mean_with_their_error(tmp_path: Path) -> None:
    results = [
        SeedResult(
            seed=0,
            commit="abc",
            before_after={"rl": rows(0.2, 0.4), "rejection": rows(0.2, 0.3)},
            control_minus_rl={"rejection": rows(0.4, 0.3)},
            pass_at_8=0.5,
            curves={"rl": [0.1, 0.3], "rejection": [0.1, 0.1]},
        ),
        SeedResult(1, "abc", {"rl": rows(0.3, 0.4)}, {}, 0.75, {"rl": [0.2, 0.5]}),
    ]
    page, picture = tmp_path / "learning.md", tmp_path / "learning.svg"
    write_page(page, picture, results, [2], FACTS)
    lines = page.read_text().splitlines()
    (verdict,) = [line for line in lines if line.startswith("In 1 of 2 seeds")]
    assert verdict == (
        "In 1 of 2 seeds (not in seed 1) RL raises greedy success on held-out pairs of goals by"
        " more than 3 paired standard errors. The mean gain over 2 seeds is +0.150 ± 0.050; its"
        " 95 % interval by Student's t is -0.485 to +0.785. Rejection sampling minus RL, greedy,"
        " where both were run: -0.100 ± 0.050. Seeds not measured yet: 2."
    )
    assert (
        "| 0 | 0.200 ± 0.020 | 0.400 ± 0.020 | +0.200 ± 0.050 | +0.100 to +0.300 | 4.0 |" in lines
    )
    assert "| mean | 0.250 | 0.400 | +0.150 ± 0.050 over seeds |  |  |" in lines
    assert (
        "| 0 | rejection sampling | 0.400 ± 0.020 | 0.300 ± 0.020 | -0.100 ± 0.050 | +0.100 to"
        " +0.300 | -2.0 |"
    ) in lines
    assert any(line.startswith("| 1 | 0.300 ± 0.020") and "| 0.750 |" in line for line in lines)
    drawing = ElementTree.fromstring(picture.read_text())  # our own
    assert len([part for part in drawing if part.tag.endswith("polyline")]) == 3


def test_a_page_without_controls_says_so(tmp_path: Path) -> None:
    results = [
        SeedResult(seed, "abc", {"rl": rows(0.2, after)}, {}, 0.5, {"rl": [0.1]})
        for seed, after in ((0, 0.4), (1, 0.5))
    ]
    page = tmp_path / "learning.md"
    write_page(page, tmp_path / "learning.svg", results, [], FACTS)
    assert "Not measured in these runs;" in page.read_text()
    assert "Rejection sampling minus RL" not in page.read_text()


def test_results_are_kept_by_seed_and_those_of_another_recipe_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    first, second, again = (
        SeedResult(seed, "abc", {"rl": rows(0.2, after)}, {}, 0.5, {"rl": [0.1]})
        for seed, after in ((3, 0.4), (1, 0.4), (3, 0.6))
    )
    for result in (first, second, again):
        save_result(path, "a recipe", result)
    assert load_results(path, "a recipe") == [second, again]
    assert missing_seeds([1, 2, 3], load_results(path, "a recipe")) == [2]
    save_result(path, "another", first)
    assert load_results(path, "another") == [first]
    assert load_results(path, "a recipe") == []
