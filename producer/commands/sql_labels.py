"""`cua-train sql label-steps`: examples for a process reward model, by Monte-Carlo completion."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import rich_click as click

from producer.commands.continue_hint import ContinueHint
from producer.commands.options import examples, with_json
from producer.commands.shell import cua_train_command
from producer.commands.stopping import stop_on_signals
from producer.errors import StopRequestedError
from schemas.installation import read_installation


@click.command(
    "label-steps",
    epilog=examples(
        "$ cua-train sql label-steps --model-name SFT --data-path DATA --output steps.json",
        "$ cua-train sql label-steps --model-name SFT --data-path DATA --output steps.json"
        " --completions 4 --step-completions 8 --limit 100",
    ),
)
@click.option(
    "--model-name", required=True, metavar="NAME|FOLDER", help="Policy whose completions they are."
)
@click.option(
    "--data-path",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FOLDER",
    help="Data set as BIRD's or Spider's; its split `train` is asked.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="JSON for `cua-train sql reward-model`; replaced.",
)
@click.option(
    "--completions",
    type=click.IntRange(1, 1000),
    default=4,
    metavar="INTEGER",
    help="Completions of each question. [default: 4]",
)
@click.option(
    "--step-completions",
    type=click.IntRange(1, 1000),
    default=8,
    metavar="INTEGER",
    help="Completions of each prefix; a label is the share that is right. [default: 8]",
)
@click.option(
    "--limit", type=click.IntRange(1), metavar="INTEGER", help="First questions. [default: all]"
)
@click.option(
    "--max-tokens",
    type=click.IntRange(1),
    default=512,
    metavar="INTEGER",
    help="Of a completion. [default: 512]",
)
@click.option(
    "--temperature",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    metavar="FLOAT",
    help="Of completions; a higher one gives more wrong ones to learn from. [default: 1]",
)
@click.option(
    "--results",
    is_flag=True,
    help="Write each step with its result, for `cua-train sql rl --reward-model-sees-results`.",
)
@click.option("--seed", type=click.INT, default=0, metavar="INTEGER", help="[default: 0]")
@click.option("--device", default="auto", metavar="auto|cpu|cuda|cuda:N", help="[default: auto]")
@click.option(
    "--training-name",
    metavar="NAME",
    help="The same name continues the same labelling. [default: a new name]",
)
@click.option(
    "--takeover", is_flag=True, help="Continue although another process seems to be labelling."
)
@with_json
def label_steps(*, as_json: bool, completions: int, takeover: bool, **options: Any) -> int:
    """Label the steps of sampled completions by completing each prefix several times.

    Every completion is a rollout of a training of its own, and its labels are events of it.
    """
    from producer.fine_tuning.step_labels import label_steps as label

    model_name: str = options.pop("model_name")
    if Path(model_name).expanduser().is_dir():
        model_name = str(Path(model_name).expanduser().absolute())

    hint = ContinueHint()

    def on_open(name: str, folder: Path) -> None:
        given = [f"--{key.replace('_', '-')}={value}" for key, value in kept.items()]
        given += ["--results"] * options["results"]
        words = ["sql", "label-steps", *given, f"--training-name={name}"]
        hint.begun(name, folder, cua_train_command(*words))

    data, output = (options.pop(item).expanduser().absolute() for item in ("data_path", "output"))
    kept = {
        "model_name": model_name,
        "data_path": data,
        "output": output,
        "completions": completions,
        **{
            key: one
            for key, one in options.items()
            if one is not None and key not in {"training_name", "results"}
        },
    }
    try:
        found = label(
            model_name=model_name,
            data=data,
            output=output,
            completions_per_question=completions,
            installation=read_installation(os.environ),
            stop=stop_on_signals(),
            on_open=on_open,
            takeover=takeover,
            **options,
        )
    except StopRequestedError:
        return hint.stopped()
    if as_json:
        click.echo(json.dumps(asdict(found)))
        return 0
    click.echo(
        f"labelled {found.steps} steps of {found.completions} completions of {found.questions}"
        f" questions: {found.output}"
    )
    if found.correct is not None and found.mean_label is not None:
        click.echo(f"right completions: {found.correct:.3f}, mean label: {found.mean_label:.3f}")
    return 0
