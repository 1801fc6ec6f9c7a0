"""`cua-train sql eval` and `sql best-of-n`: executed accuracy, alone and chosen by step scores."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import rich_click as click

from producer.commands.options import examples, given_training_name, with_json, with_options
from producer.commands.stopping import stop_on_signals
from producer.console import print_table, rounded
from producer.durable import write_durably
from producer.errors import NotFoundError, StopRequestedError, UsageError
from schemas.installation import read_installation

_asked = with_options(
    click.option(
        "--model-name",
        metavar="NAME|FOLDER",
        help="Policy to ask: a folder, an adapter's folder, a Hugging Face id, `oracle`.",
    ),
    click.option("--training-name", metavar="NAME", help="Or the newest state of this training."),
    click.option(
        "--data-path",
        type=click.Path(path_type=Path),
        required=True,
        metavar="FOLDER",
        help="Data set as BIRD's or Spider's.",
    ),
    click.option(
        "--split",
        type=click.Choice(["train", "dev", "test"]),
        default="dev",
        help="Which questions. [default: dev]",
    ),
    click.option(
        "--limit",
        type=click.IntRange(1),
        metavar="INTEGER",
        help="First questions. [default: all]",
    ),
    click.option(
        "--max-tokens",
        type=click.IntRange(1),
        metavar="INTEGER",
        help="Of a completion. [default: 512, or the training's]",
    ),
    click.option(
        "--seed",
        type=click.IntRange(min=0),
        metavar="INTEGER",
        help="Of what is sampled. [default: 0, or the training's]",
    ),
    click.option(
        "--device",
        metavar="auto|cpu|cuda|cuda:N",
        help="Where it is computed. [default: auto, or the training's]",
    ),
)
"""Which policy is asked which questions."""


@click.command(
    "eval",
    epilog=examples(
        "$ cua-train sql eval --model-name SFT --data-path DATA",
        "$ cua-train sql eval --training-name first --data-path bird --split dev --json",
    ),
)
@_asked
@click.option(
    "--temperature",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="FLOAT",
    help="0 is greedy. [default: 0]",
)
@with_json
def evaluate_sql(*, as_json: bool, temperature: float, **asked: Any) -> int:
    """Ask each question once and execute the answer: accuracy and standard error by difficulty."""
    policy, source, training_name = _named(**asked)
    from producer.fine_tuning.executed_accuracy import executed_accuracy

    try:
        found = executed_accuracy(
            {**policy, "eval_temperature": temperature},
            source,
            installation=read_installation(os.environ),
            training_name=training_name,
            stop=stop_on_signals(),
        )
    except StopRequestedError:
        return 130
    if as_json:
        rows = {name: asdict(one) for name, one in found.by_difficulty.items()}
        click.echo(json.dumps(rounded({**asdict(found.overall), "by_difficulty": rows})))
        return 0
    print_table(
        ["difficulty", "accuracy", "standard error", "questions"],
        [
            [name, f"{one.accuracy:.3f}", f"{one.standard_error:.3f}", one.questions]
            for name, one in [*found.by_difficulty.items(), ("all", found.overall)]
        ],
    )
    return 0


@click.command(
    "best-of-n",
    epilog=examples(
        "$ cua-train sql best-of-n --model-name SFT --reward-model PRM --data-path DATA --n 8",
        "$ cua-train sql best-of-n --training-name first --reward-model PRM --data-path DATA"
        " --n 32 --plot best-of-n.svg",
    ),
)
@_asked
@click.option(
    "--reward-model",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FOLDER",
    help="Process reward model, as `cua-train sql reward-model` wrote it.",
)
@click.option(
    "--n",
    type=click.IntRange(1, 1024),
    default=8,
    metavar="INTEGER",
    help="Completions of each question. [default: 8]",
)
@click.option(
    "--temperature",
    type=click.FloatRange(min=0),
    default=1.0,
    metavar="FLOAT",
    help="Of the samples. [default: 1]",
)
@click.option(
    "--plot", type=click.Path(path_type=Path), metavar="FILE", help="Write a plot over N, as SVG."
)
@with_json
def best_of_n(
    *,
    as_json: bool,
    temperature: float,
    reward_model: Path,
    n: int,
    plot: Path | None,
    **asked: Any,
) -> int:
    """Ask each question N times and choose the answer whose steps score best.

    Shares of right answers by product, min, last and average of the steps' scores, and pass@N, for
    N = 1, 2, 4 ... up to --n.
    """
    if temperature == 0 and n > 1:
        message = "--temperature: 0 samples the same completion every time; use 1"
        raise UsageError(message)
    if plot is not None and (plot.is_dir() or not plot.absolute().parent.is_dir()):
        message = f"--plot: {plot} cannot be written; name a file in a folder that exists"
        raise UsageError(message)
    if not reward_model.expanduser().is_dir():
        message = f"--reward-model: there is no folder {reward_model}"
        raise NotFoundError(message)
    policy, source, training_name = _named(**asked)
    from producer.fine_tuning.executed_accuracy import chosen_accuracy
    from producer.process_rewards.best_of_n_plot import best_of_n_svg

    try:
        found = chosen_accuracy(
            {**policy, "eval_temperature": temperature},
            source,
            n=n,
            reward_model=reward_model.expanduser().absolute(),
            installation=read_installation(os.environ),
            training_name=training_name,
            stop=stop_on_signals(),
        )
    except StopRequestedError:
        return 130
    if plot is not None:
        write_durably(plot, best_of_n_svg(found.sizes))
    rows = [
        {"n": size.num_candidates, **size.by_strategy, "pass_at_n": size.pass_at_n}
        for size in found.sizes
    ]
    if as_json:
        report = {"questions": found.questions, "completions": found.completions, "sizes": rows}
        click.echo(json.dumps(rounded(report)))
        return 0
    print_table(
        [*rows[0]],
        [
            [value if isinstance(value, int) else f"{value:.3f}" for value in row.values()]
            for row in rows
        ],
    )
    click.echo(f"{found.questions} questions, {found.completions} completions of each")
    return 0


def _named(
    *,
    model_name: str | None,
    training_name: str | None,
    data_path: Path,
    split: str,
    limit: int | None,
    **fields: Any,
) -> tuple[dict[str, Any], dict[str, Any], str | None]:
    """(fields of the policy, task source, training). UsageError."""
    from producer.fine_tuning.named_policy import policy_fields, questions_of

    if (model_name is None) == (training_name is None):
        message = "give either --model-name or --training-name"
        raise UsageError(message)
    given = {name: value for name, value in fields.items() if value is not None}
    source = questions_of(data_path, split, limit)
    if training_name is not None:
        return given, source, given_training_name(training_name)
    if model_name is not None and Path(model_name).expanduser().is_dir():
        model_name = str(Path(model_name).expanduser().absolute())
    elif model_name is not None and model_name.startswith(("/", ".", "~")):
        message = f"--model-name: there is no folder {model_name}"
        raise NotFoundError(message)
    return {"max_tokens": 512, **given, **policy_fields(model_name)}, source, None
