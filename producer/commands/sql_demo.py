"""`cua-train sql demo`: text-to-SQL from data to a policy that learned from executed rows."""

import json
import math
import os
import threading
from collections.abc import Callable
from statistics import fmean, stdev
from typing import Any

import rich_click as click

from producer.commands.options import SEED, examples, option, switch, with_json
from producer.commands.stopping import exit_when_stopped
from producer.console import print_table
from producer.errors import UsageError
from producer.process_rewards.best_of_n import Strategy
from schemas.installation import Installation, read_installation

Figures = dict[str, Any]
Accuracy = tuple[float, float | None]
GAIN, CONTROL = "  gain", "  gain of the control"
LEARNING = {"rejection sampling": "smollm2-135m", "grpo outcome": "small"}
"""Maps a stage that learns from rewards to its policy."""


@click.command(
    "demo",
    epilog=examples(
        "$ cua-train sql demo                  # one seed, SmolLM2-135M-Instruct",
        "$ cua-train sql demo --seeds 0,1,2",
        "$ cua-train sql demo --small          # without a pretrained policy",
    ),
)
@switch(
    "--small",
    "Train a small policy that is built here: imitation with planted mistakes, a process reward"
    " model, GRPO by outcomes and by steps, and the best of 8 samples.",
)
@option("--seed", "Seed of data, weights and samples.", SEED, shown="0")
@option("--seeds", "Several seeds, one after another.", metavar="S[,S]")
@with_json
def demo(*, small: bool, seed: int | None, seeds: str | None, as_json: bool) -> None:
    """Fetch SmolLM2-135M-Instruct and train it: SFT on 128 gold queries, then rejection sampling.

    Prints its greedy execution accuracy on held-out databases, before and after it learned from its
    own right answers, and the gain of a control, trained on as many of its answers at random. The
    same command continues after it was stopped. --json prints an object for each seed.
    """
    from producer.training.open_policy import require_torch

    chosen = _seeds(seed, seeds)
    require_torch("of sql demo")
    installation = read_installation(os.environ)
    with exit_when_stopped(lambda: "the same command continues it") as stop:
        run_seed, rows_of = _small(installation, stop) if small else _pretrained(installation, stop)
        found = {item: run_seed(item) for item in chosen}
    rows = {item: rows_of(stages) for item, stages in found.items()}
    if as_json:
        for item in chosen:
            whole = {"seed": item, **report(found[item]), "accuracies": rows[item]}
            click.echo(json.dumps(whole))
        return
    print_table(
        ["policy", *(f"seed {item}" for item in chosen), *(["mean"] if len(chosen) > 1 else [])],
        [
            [name, *(_text(name, rows[item][name]) for item in chosen), *_mean(rows, name)]
            for name in rows[chosen[0]]
        ],
    )
    for item, stages in found.items():
        if not small:
            measured = stages["rejection sampling"]
            click.echo(
                f"seed {item}: {measured['questions']} held-out questions about"
                f" {measured['databases']} databases, greedy; standard errors clustered by"
                " database, of gains paired; the control was trained on the same number of these"
                " answers, chosen at random"
            )
        seconds, cpu = (
            sum(stage[name] for stage in stages.values()) for name in ("seconds", "cpu_seconds")
        )
        click.echo(f"seed {item}: {seconds:.0f} s, {cpu:.0f} s of CPU time")


def report(stages: dict[str, Figures]) -> Figures:
    """Summarise a seed's stages for scripts."""
    method = next(name for name in LEARNING if name in stages)
    learned, control = stages[method], stages.get("control", {})
    return {
        "policy": LEARNING[method],
        "method": method,
        "eval_tasks": learned["questions"],
        "eval_split": learned["eval_split"],
        "success_before": learned["before"],
        "standard_error_before": learned["before_standard_error"],
        "success_after": learned["accuracy"],
        "standard_error_after": learned["standard_error"],
        "gain": learned["gain"],
        "gain_standard_error": learned["gain_standard_error"],
        "control_gain": control.get("gain"),
        "control_gain_standard_error": control.get("gain_standard_error"),
        "seconds": sum(stage["seconds"] for stage in stages.values()),
        "stages": [{"name": name, **figures} for name, figures in stages.items()],
    }


Pipeline = tuple[
    Callable[[int], dict[str, Figures]], Callable[[dict[str, Figures]], dict[str, Accuracy]]
]
"""Runners of a seed's stages, with functions that turn their figures into table rows."""


def _small(installation: Installation, stop: threading.Event) -> Pipeline:
    from producer.fine_tuning.sql_demo import SqlDemo, SqlDemoRecipe

    recipe = SqlDemoRecipe()
    return (
        lambda seed: SqlDemo(seed, installation, recipe, stop).run(),
        lambda stages: accuracies(stages, recipe.strategy),
    )


def _pretrained(installation: Installation, stop: threading.Event) -> Pipeline:
    from producer.fine_tuning.pretrained_demo import PretrainedDemo, PretrainedDemoRecipe

    recipe = PretrainedDemoRecipe()
    return (
        lambda seed: PretrainedDemo(seed, installation, recipe, stop).run(),
        pretrained_accuracies,
    )


def pretrained_accuracies(stages: dict[str, Figures]) -> dict[str, Accuracy]:
    """Map each policy to its greedy execution accuracy and standard error.

    The paired gains come last.
    """
    zero_shot, measured = stages["zero-shot"], stages["rejection sampling"]
    return {
        f"as it comes ({zero_shot['questions']} questions)": (
            zero_shot["accuracy"],
            zero_shot["standard_error"],
        ),
        f"sft on {stages['data']['imitated']} golds": (
            measured["before"],
            measured["before_standard_error"],
        ),
        "sft + rejection sampling": (measured["accuracy"], measured["standard_error"]),
        GAIN: (measured["gain"], measured["gain_standard_error"]),
        CONTROL: (stages["control"]["gain"], stages["control"]["gain_standard_error"]),
    }


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


def accuracies(stages: dict[str, Figures], strategy: Strategy) -> dict[str, Accuracy]:
    """Map each policy to its execution accuracy and standard error; pass@N has no error.

    Greedy answers come first, then the answers that `strategy` chooses among N samples.
    """
    outcome, process = stages["grpo outcome"], stages["grpo process"]
    return {
        "sft": (outcome["before"], outcome["before_standard_error"]),
        **_chosen("sft", stages["best of n, sft"], strategy),
        "sft + grpo (outcome)": (outcome["accuracy"], outcome["standard_error"]),
        "sft + grpo (process)": (process["accuracy"], process["standard_error"]),
        **_chosen("process", stages["best of n, process"], strategy),
    }


def _chosen(policy: str, stage: Figures, strategy: Strategy) -> dict[str, Accuracy]:
    largest = stage["sizes"][-1]
    n, share = largest["n"], largest[strategy]
    error = math.sqrt(share * (1 - share) / stage["questions"])
    return {
        f"  {policy}, one sample": (stage["sizes"][0][strategy], None),
        f"  {policy}, best of {n}": (share, error),
        f"  {policy}, pass@{n}": (largest["pass_at_n"], None),
    }


def _text(name: str, figure: Accuracy) -> str:
    value, error = figure
    shown = f"{value:+.3f}" if name in {GAIN, CONTROL} else f"{value:.3f}"
    return shown if error is None else f"{shown} ± {error:.3f}"


def _mean(rows: dict[int, dict[str, Accuracy]], name: str) -> list[str]:
    """The mean over the seeds, with its standard error."""
    values = [row[name][0] for row in rows.values()]
    if len(values) == 1:
        return []
    return [_text(name, (fmean(values), stdev(values) / len(values) ** 0.5))]
