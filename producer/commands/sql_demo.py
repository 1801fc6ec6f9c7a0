"""`cua-train sql demo`: the text-to-SQL pipeline on small policies."""

import json
import math
import os
from statistics import fmean, stdev
from typing import Any

import rich_click as click

from producer.commands.options import SEED, examples, option, with_json
from producer.commands.stopping import exit_when_stopped
from producer.console import print_table
from producer.errors import UsageError
from producer.process_rewards.best_of_n import Strategy
from schemas.installation import read_installation

Figures = dict[str, Any]


@click.command(
    "demo",
    epilog=examples(
        "$ cua-train sql demo                  # one seed", "$ cua-train sql demo --seeds 0,1,2"
    ),
)
@option("--seed", "Seed of data, weights and samples.", SEED, shown="0")
@option("--seeds", "Several seeds, one after another.", metavar="S[,S]")
@with_json
def demo(*, seed: int | None, seeds: str | None, as_json: bool) -> None:
    """Train small policies: imitation, a process reward model, GRPO by outcomes and by steps.

    Prints their executed accuracy on held-out databases, and that of the best of 8 samples. The
    same command continues after it was stopped.
    """
    from producer.fine_tuning.sql_demo import SqlDemo, SqlDemoRecipe
    from producer.training.open_policy import require_torch

    chosen = _seeds(seed, seeds)
    require_torch("of sql demo")
    installation, recipe = read_installation(os.environ), SqlDemoRecipe()
    with exit_when_stopped(lambda: "the same command continues it") as stop:
        found = {item: SqlDemo(item, installation, recipe, stop).run() for item in chosen}
    rows = {item: accuracies(stages, recipe.strategy) for item, stages in found.items()}
    if as_json:
        report = [
            {"seed": item, "accuracies": rows[item], "stages": found[item]} for item in chosen
        ]
        click.echo(json.dumps(report))
        return
    print_table(
        ["policy", *(f"seed {item}" for item in chosen), *(["mean"] if len(chosen) > 1 else [])],
        [
            [name, *(_text(rows[item][name]) for item in chosen), *_mean(rows, name)]
            for name in rows[chosen[0]]
        ],
    )
    for item, stages in found.items():
        seconds, cpu = (
            sum(stage[name] for stage in stages.values()) for name in ("seconds", "cpu_seconds")
        )
        click.echo(f"seed {item}: {seconds:.0f} s, {cpu:.0f} s of CPU time")


def _seeds(seed: int | None, seeds: str | None) -> list[int]:
    if seed is not None and seeds is not None:
        message = "give either --seed or --seeds"
        raise UsageError(message)
    if seeds is None:
        return [seed or 0]
    words = [word.strip() for word in seeds.split(",")]
    if not all(word.isdecimal() for word in words):
        message = f"--seeds: {seeds!r} is not a list of integers such as 0,1,2"
        raise UsageError(message)
    return [*dict.fromkeys(map(int, words))]


def accuracies(
    stages: dict[str, Figures], strategy: Strategy
) -> dict[str, tuple[float, float | None]]:
    """Policy -> its executed accuracy and standard error; pass@N has no error.

    Of greedy answers, then of the answer that `strategy` chooses among N samples.
    """
    outcome, process = stages["grpo outcome"], stages["grpo process"]
    return {
        "sft": (outcome["before"], outcome["before_standard_error"]),
        **_chosen("sft", stages["best of n, sft"], strategy),
        "sft + grpo (outcome)": (outcome["accuracy"], outcome["standard_error"]),
        "sft + grpo (process)": (process["accuracy"], process["standard_error"]),
        **_chosen("process", stages["best of n, process"], strategy),
    }


def _chosen(
    policy: str, stage: Figures, strategy: Strategy
) -> dict[str, tuple[float, float | None]]:
    largest = stage["sizes"][-1]
    n, share = largest["n"], largest[strategy]
    error = math.sqrt(share * (1 - share) / stage["questions"])
    return {
        f"  {policy}, one sample": (stage["sizes"][0][strategy], None),
        f"  {policy}, best of {n}": (share, error),
        f"  {policy}, pass@{n}": (largest["pass_at_n"], None),
    }


def _text(figure: tuple[float, float | None]) -> str:
    value, error = figure
    return f"{value:.3f}" if error is None else f"{value:.3f} ± {error:.3f}"


def _mean(rows: dict[int, dict[str, tuple[float, float | None]]], name: str) -> list[str]:
    """Mean over the seeds with its standard error."""
    values = [row[name][0] for row in rows.values()]
    if len(values) == 1:
        return []
    return [f"{fmean(values):.3f} ± {stdev(values) / len(values) ** 0.5:.3f}"]
