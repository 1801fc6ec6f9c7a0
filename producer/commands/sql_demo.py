"""`cua-train sql demo`: the whole pipeline of text-to-SQL on small policies."""

import json
import logging
import math
import os
from statistics import fmean, stdev
from typing import Any

import rich_click as click

from producer.commands.options import examples, with_json
from producer.commands.stopping import stop_on_signals
from producer.console import print_table
from producer.errors import StopRequestedError, UsageError
from producer.process_rewards.best_of_n import Strategy
from schemas.installation import read_installation

logger = logging.getLogger(__name__)

Figures = dict[str, Any]


@click.command(
    "demo",
    epilog=examples(
        "$ cua-train sql demo                  # one seed", "$ cua-train sql demo --seeds 0,1,2"
    ),
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="INTEGER",
    help="Of data, weights and samples. [default: 0]",
)
@click.option("--seeds", metavar="S[,S]", help="Several, one after the other.")
@with_json
def demo(*, seed: int | None, seeds: str | None, as_json: bool) -> int:
    """Train small policies: imitation, a process reward model, GRPO by outcomes and by steps.

    Prints the executed accuracy of each on held-out databases, and what choosing among 8 adds. The
    same command continues one that was stopped.
    """
    from producer.fine_tuning.sql_demo import SqlDemo
    from producer.fine_tuning.sql_demo_recipe import SqlDemoRecipe
    from producer.training.open_policy import require_torch

    chosen = _seeds(seed, seeds)
    require_torch("of sql demo")
    stop, installation = stop_on_signals(), read_installation(os.environ)
    found: dict[int, dict[str, Figures]] = {}
    recipe = SqlDemoRecipe()
    try:
        for one in chosen:
            found[one] = SqlDemo(one, installation, recipe, stop).run()
    except StopRequestedError:
        logger.info("stopped; the same command goes on")
        return 130
    rows = {one: accuracies(stages, recipe.strategy) for one, stages in found.items()}
    if as_json:
        report = [
            {"seed": item, "accuracies": rows[item], "stages": found[item]} for item in chosen
        ]
        click.echo(json.dumps(report))
        return 0
    names = [*rows[chosen[0]]]
    print_table(
        ["policy", *(f"seed {item}" for item in chosen), *(["mean"] if len(chosen) > 1 else [])],
        [
            [name, *(_shown(rows[item][name]) for item in chosen), *_mean(rows, name)]
            for name in names
        ],
    )
    seconds = {item: sum(stage["seconds"] for stage in found[item].values()) for item in chosen}
    cpu = {item: sum(stage["cpu_seconds"] for stage in found[item].values()) for item in chosen}
    for one in chosen:
        click.echo(f"seed {one}: {seconds[one]:.0f} s, {cpu[one]:.0f} s of CPU time")
    return 0


def _seeds(seed: int | None, seeds: str | None) -> list[int]:
    if seed is not None and seeds is not None:
        message = "give either --seed or --seeds"
        raise UsageError(message)
    if seeds is None:
        return [seed or 0]
    words = [word.strip() for word in seeds.split(",")]
    if not all(word.isdecimal() for word in words):
        message = f"--seeds: {seeds!r} is no list of whole numbers, such as 0,1,2"
        raise UsageError(message)
    return [*dict.fromkeys(map(int, words))]


def accuracies(
    stages: dict[str, Figures], strategy: Strategy
) -> dict[str, tuple[float, float | None]]:
    """Policy -> its executed accuracy and standard error; pass@N has none.

    Greedy, and beneath it what is chosen among N samples of the same policy by `strategy`.
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


def _shown(figure: tuple[float, float | None]) -> str:
    value, error = figure
    return f"{value:.3f}" if error is None else f"{value:.3f} ± {error:.3f}"


def _mean(rows: dict[int, dict[str, tuple[float, float | None]]], name: str) -> list[str]:
    """Over the seeds, with the standard error of that mean."""
    values = [row[name][0] for row in rows.values()]
    if len(values) == 1:
        return []
    return [f"{fmean(values):.3f} ± {stdev(values) / len(values) ** 0.5:.3f}"]
