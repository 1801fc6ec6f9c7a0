"""Measures a pretrained model on text-to-SQL: `cua-train sql demo` of each seed, and its section.

Results are kept in pretrained.json beside this file, those of the present recipe only.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

MIN_STANDARD_ERRORS = 3
"""Of the paired gain, above which a seed counts as raised."""
COLUMNS = (
    *("seed", "questions", "databases", "SFT", "then rejection sampling", "gain", "gain / error"),
    *("control's gain", "CPU-seconds"),
)

Result = dict[str, Any]
"""An object of `cua-train sql demo --json`, with the commit that measured it."""


def save_pretrained(path: Path, recipe: str, result: Result) -> None:
    """Put the result into the file, in place of the seed's former one.

    `recipe`: equal for equal settings; results of another one are dropped.
    """
    others = [one for one in load_pretrained(path, recipe) if one["seed"] != result["seed"]]
    results = sorted([*others, result], key=lambda one: int(one["seed"]))
    value = {"recipe": recipe, "results": results}
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def load_pretrained(path: Path, recipe: str) -> list[Result]:
    """The results of this recipe, by seed."""
    value = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    results: list[Result] = value["results"] if value.get("recipe") == recipe else []
    return results


def pretrained_table(results: Sequence[Result]) -> str:
    """What was measured, and a verdict above it; says so where nothing was."""
    if not results:
        return (
            "Not measured by `make learning` yet; one seed is in"
            " [measurements](measurements/text_to_sql.md#the-pretrained-policy)."
        )
    lines = [COLUMNS, ["---"] * len(COLUMNS), *map(_row, results)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{_verdict(results)}\n\n{table}"


def _verdict(results: Sequence[Result]) -> str:
    raised = [one for one in results if _errors(one) > MIN_STANDARD_ERRORS]
    gains = [one["gain"] for one in results]
    spread = "" if len(gains) == 1 else f" ± {stdev(gains) / len(gains) ** 0.5:.3f} over seeds"
    controls = [one["control_gain"] for one in results]
    return (
        f"In {len(raised)} of {len(results)} seeds rejection sampling raises greedy accuracy by"
        f" more than {MIN_STANDARD_ERRORS} paired standard errors. The mean gain is"
        f" {mean(gains):+.3f}{spread}, the control's {mean(controls):+.3f}."
    )


def _errors(result: Result) -> float:
    return float(result["gain"] / result["gain_standard_error"])


def _row(result: Result) -> list[str]:
    stages = {stage["name"]: stage for stage in result["stages"]}
    cpu_seconds = sum(stage["cpu_seconds"] for stage in stages.values())
    return [
        str(result["seed"]),
        str(result["eval_tasks"]),
        str(stages[result["method"]]["databases"]),
        f"{result['success_before']:.3f} ± {result['standard_error_before']:.3f}",
        f"{result['success_after']:.3f} ± {result['standard_error_after']:.3f}",
        f"{result['gain']:+.3f} ± {result['gain_standard_error']:.3f}",
        f"{_errors(result):.1f}",
        f"{result['control_gain']:+.3f} ± {result['control_gain_standard_error']:.3f}",
        f"{cpu_seconds:.0f}",
    ]
