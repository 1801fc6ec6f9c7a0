"""`cua-train sql eval` and `sql best-of-n`: execution accuracy, also when chosen by step scores."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import rich_click as click

from producer.commands.given_fields import policy_path
from producer.commands.options import (
    COUNT,
    DEVICE,
    DTYPE,
    FOLDER,
    SEED,
    SPLIT,
    examples,
    given_training_name,
    option,
    with_json,
    with_options,
    with_skip_invalid,
)
from producer.commands.stopping import exit_when_stopped
from producer.console import print_table, rounded
from producer.errors import UsageError
from schemas.installation import read_installation

TEMPERATURE = click.FloatRange(min=0)
_policy_and_questions = with_options(
    option(
        "--model-name",
        "Policy: a folder, an adapter's folder, a Hugging Face id, or `oracle`.",
        metavar="NAME|FOLDER",
    ),
    option("--training-name", "Or the newest state of this training.", metavar="NAME"),
    option("--data-path", "Data set in BIRD's or Spider's layout.", FOLDER, required=True),
    with_skip_invalid,
    option("--split", "Questions to ask.", SPLIT, default="dev"),
    option("--limit", "Use only this many questions, the first ones.", COUNT, shown="all"),
    option("--max-tokens", "Tokens of a completion.", COUNT, shown="512, or the training's"),
    option("--seed", "Seed of the samples.", SEED, shown="0, or the training's"),
    option("--device", "Where to compute.", metavar=DEVICE, shown="auto, or the training's"),
    option("--dtype", "Type of the policy's weights.", DTYPE, shown="auto, or the training's"),
)


@click.command(
    "eval",
    epilog=examples(
        "$ cua-train sql eval --model-name SFT --data-path DATA",
        "$ cua-train sql eval --training-name first --data-path bird --split dev --json",
    ),
)
@_policy_and_questions
@option("--temperature", "Sampling temperature; 0 is greedy.", TEMPERATURE, default=0.0)
@with_json
def evaluate_sql(*, as_json: bool, temperature: float, **given: Any) -> None:
    """Ask each question once and execute the answer: accuracy and standard error by difficulty."""
    policy, source, training_name = _named(**given)
    from producer.fine_tuning.executed_accuracy import executed_accuracy

    with exit_when_stopped() as stop:
        found = executed_accuracy(
            {**policy, "eval_temperature": temperature},
            source,
            installation=read_installation(os.environ),
            training_name=training_name,
            stop=stop,
        )
    if as_json:
        rows = {name: asdict(share) for name, share in found.by_difficulty.items()}
        click.echo(json.dumps(rounded({**asdict(found.overall), "by_difficulty": rows})))
        return
    print_table(
        ["difficulty", "accuracy", "standard error", "questions"],
        [
            [name, f"{share.accuracy:.3f}", f"{share.standard_error:.3f}", share.questions]
            for name, share in [*found.by_difficulty.items(), ("all", found.overall)]
        ],
    )


@click.command(
    "best-of-n",
    epilog=examples(
        "$ cua-train sql best-of-n --model-name SFT --reward-model PRM --data-path DATA --n 8",
        "$ cua-train sql best-of-n --training-name first --reward-model PRM --data-path DATA"
        " --n 32 --json",
    ),
)
@_policy_and_questions
@option(
    "--reward-model",
    "Process reward model: a folder that `cua-train sql reward-model` wrote.",
    FOLDER,
    required=True,
)
@option("--n", "Completions of each question.", click.IntRange(1, 1024), default=8)
@option("--temperature", "Sampling temperature.", TEMPERATURE, default=1.0)
@with_json
def best_of_n(
    *,
    as_json: bool,
    temperature: float,
    reward_model: Path,
    n: int,
    **given: Any,
) -> None:
    """Ask each question N times and choose the answer with the best step scores.

    Prints the shares of right answers when choosing by the product, minimum, last or average of the
    step scores, and pass@N, for N = 1, 2, 4 ... up to --n.
    """
    if temperature == 0 and n > 1:
        message = "--temperature: 0 samples the same completion every time; use 1"
        raise UsageError(message)
    if not reward_model.expanduser().is_dir():
        message = f"--reward-model: there is no folder {reward_model}"
        raise UsageError(message)
    policy, source, training_name = _named(**given)
    from producer.fine_tuning.executed_accuracy import chosen_accuracy

    with exit_when_stopped() as stop:
        found = chosen_accuracy(
            {**policy, "eval_temperature": temperature},
            source,
            n=n,
            reward_model=reward_model.expanduser().absolute(),
            installation=read_installation(os.environ),
            training_name=training_name,
            stop=stop,
        )
    rows = [
        {"n": size.num_candidates, **size.by_strategy, "pass_at_n": size.pass_at_n}
        for size in found.sizes
    ]
    if as_json:
        report = {"questions": found.questions, "completions": found.completions, "sizes": rows}
        click.echo(json.dumps(rounded(report)))
        return
    print_table(
        [*rows[0]],
        [
            [value if isinstance(value, int) else f"{value:.3f}" for value in row.values()]
            for row in rows
        ],
    )
    click.echo(f"{found.questions} questions, {found.completions} completions of each")


def _named(
    *,
    model_name: str | None,
    training_name: str | None,
    data_path: Path,
    split: str,
    limit: int | None,
    skip_invalid: bool,
    **fields: Any,
) -> tuple[dict[str, Any], dict[str, Any], str | None]:
    """(fields of the policy, task source, training). Raises UsageError."""
    from producer.fine_tuning.named_policy import policy_fields, questions_of

    if (model_name is None) == (training_name is None):
        message = "give either --model-name or --training-name"
        raise UsageError(message)
    given = {name: value for name, value in fields.items() if value is not None}
    source = questions_of(data_path, split, limit, skip_invalid=skip_invalid)
    if training_name is not None:
        return given, source, given_training_name(training_name)
    assert model_name is not None  # noqa: S101  # one of them is given
    policy = policy_fields(policy_path("--model-name", model_name))
    return {"max_tokens": 512, **given, **policy}, source, None
