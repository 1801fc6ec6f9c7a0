"""`cua-train sql`: the text-to-SQL system; here its data sets and its demonstration."""

import json
import logging
import math
import os
from collections import Counter
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import rich_click as click

from producer.commands.options import (
    FOLDER,
    SEED,
    SPLIT,
    check_new_output,
    chosen_names,
    examples,
    option,
    with_json,
    with_skip_invalid,
)
from producer.commands.sql_evaluation import best_of_n, evaluate_sql
from producer.commands.sql_rl import rl
from producer.commands.sql_training import label_steps, reward_model, sft
from producer.commands.stopping import exit_when_stopped
from producer.console import print_report, print_table, progress_bar, warn_of_some
from producer.errors import MismatchError, UsageError
from producer.process_rewards.best_of_n import Strategy
from schemas.installation import read_installation

logger = logging.getLogger(__name__)

DATABASES = click.IntRange(1, 10_000)
"""Of one split; a call keeps them in memory."""

Figures = dict[str, Any]


@click.group()
def command() -> None:
    """Text-to-SQL with process rewards: data, reward models, trainings, evaluation."""


@click.group("data")
def data() -> None:
    """Generate text-to-SQL data sets, and check the gold SQL of any data set."""


@data.command(
    "generate",
    epilog=examples(
        "$ cua-train sql data generate --seed 0 --output questions",
        "$ cua-train sql data generate --templates count,filter --output easy",
    ),
)
@option("--seed", "The same seed generates the same data.", SEED, default=0)
@option("--train-databases", "Databases to train on.", DATABASES, default=24)
@option("--dev-databases", "Databases to evaluate on, different ones.", DATABASES, default=8)
@option(
    "--questions-per-template",
    "Questions per template and database, fewer if the rows do not yield as many.",
    click.IntRange(1, 20),
    default=2,
)
@option("--templates", "Kinds of questions.", metavar="A,B", shown="all 16")
@option(
    "--output",
    "Folder to write train.json, dev.json and databases into; must be new or empty.",
    FOLDER,
    required=True,
)
@with_json
def generate(
    *,
    seed: int,
    train_databases: int,
    dev_databases: int,
    questions_per_template: int,
    templates: str | None,
    output: Path,
    as_json: bool,
) -> None:
    """Generate databases and questions about them, in BIRD's layout.

    Each question has its gold as plain SQL and in steps (CoCTE). Questions that a common mistake
    would still answer are left out. No database is in both splits.
    """
    from producer.agents.text_to_sql.data.generate import SyntheticSize, write_synthetic
    from producer.agents.text_to_sql.data.templates import TEMPLATES

    chosen: tuple[str, ...] = ()
    if templates is not None:
        known = [template.name for template in TEMPLATES]
        chosen = chosen_names(templates, known, flag="--templates", noun="template")
    check_new_output(output)
    wanted = SyntheticSize(train_databases, dev_databases, questions_per_template, chosen)
    written = write_synthetic(output, seed, wanted)
    levels = sorted({level for size in written.values() for level in size.by_difficulty})
    report: dict[str, object] = {split: size._asdict() for split, size in written.items()}
    print_report(
        report | {"output": str(output)},
        ["split", "databases", "questions", *levels],
        [
            [
                *(split, size.num_databases, size.num_questions),
                *(size.by_difficulty.get(level, 0) for level in levels),
            ]
            for split, size in written.items()
        ],
        as_json=as_json,
    )
    if not as_json:
        logger.info("written to %s", output)


@data.command(
    "check",
    epilog=examples(
        "$ cua-train sql data check bird/dev_20240627 --split dev",
        "$ cua-train sql data check spider --json",
        "$ cua-train sql data check bird/train --skip-invalid",
    ),
)
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
@option("--split", "Questions to check.", SPLIT, default="train")
@with_skip_invalid
@with_json
def check(*, folder: Path, split: str, skip_invalid: bool, as_json: bool) -> None:
    """Execute the gold SQL of a data set in BIRD's or Spider's layout.

    Names the questions where it fails, returns no rows, or differs from the gold in CoCTE form.
    Exits with 4 if a gold fails or differs, with --skip-invalid only if all do.
    """
    from producer.agents.text_to_sql.data.layouts import DATA_SPLITS
    from producer.agents.text_to_sql.data.sound_questions import sound_questions
    from producer.agents.text_to_sql.data.tasks import Finding, findings

    chosen = next(data_split for data_split in DATA_SPLITS if data_split == split)
    questions, databases, without = sound_questions(
        folder, chosen, skip_invalid=skip_invalid, is_checked=True
    )
    found: list[Finding] = []
    with progress_bar("running the golds", len(questions)) as bar:
        for question in questions:
            found += findings(question)
            bar.advance()
    named = [(finding.question, finding.message) for finding in found]
    warn_of_some(
        [f"question {asked.question_id} about {asked.db_id}: {text}" for asked, text in named],
        "findings",
    )
    problems = Counter(finding.problem for finding in found)
    report = {
        "questions": len(questions) + len(without),
        "databases": len(databases),
        "sound": len(questions) - len({finding.question.question_id for finding in found}),
        "fails": problems["fails"],
        "no_rows": problems["no_rows"],
        "cocte": problems["cocte"],
    }
    unsound = problems["fails"] + problems["cocte"]
    if skip_invalid:
        report["left_out"] = len(without) + unsound
    print_report(report, ["", "number"], list(report.items()), as_json=as_json)
    if unsound and not (skip_invalid and unsound < len(questions)):
        message = f"{unsound} golds of {folder} are not sound"
        raise MismatchError(
            message, ways=("leave them out with --skip-invalid",) * (not skip_invalid)
        )


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


for _command in (data, sft, label_steps, reward_model, rl, evaluate_sql, best_of_n, demo):
    command.add_command(_command)
