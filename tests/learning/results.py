"""What `make learning` measured of each seed, load_results in a file between its runs."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class SeedResult:
    """One seed."""

    seed: int
    commit: str
    """Of the code that measured it."""
    before_after: dict[str, list[dict[str, Any]]]
    """Training -> rows of `cua-train compare NAME --json`: before and after, greedy and sampled."""
    control_minus_rl: dict[str, list[dict[str, Any]]]
    """Control -> rows of `cua-train compare RL CONTROL --json`."""
    pass_at_8: float
    curves: dict[str, list[float]]
    """Training -> sampled success of each step's rollouts."""


def save_result(path: Path, recipe: str, result: SeedResult) -> None:
    """Put the result into the file, in place of the seed's former one.

    `recipe`: equal for equal settings of all trainings; results of another one are dropped.
    """
    results = [one for one in load_results(path, recipe) if one.seed != result.seed]
    results = sorted([*results, result], key=lambda one: one.seed)
    value = {"recipe": recipe, "results": [asdict(one) for one in results]}
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def load_results(path: Path, recipe: str) -> list[SeedResult]:
    """The results of this recipe, by seed."""
    value = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return [SeedResult(**one) for one in value["results"]] if value.get("recipe") == recipe else []


def missing_seeds(seeds: Sequence[int], results: Sequence[SeedResult]) -> list[int]:
    """Seeds without a result."""
    return [seed for seed in seeds if seed not in {one.seed for one in results}]
