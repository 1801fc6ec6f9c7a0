"""`cua-train sql sft`, `sql label-steps` and `sql reward-model`: supervised trainings."""

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import rich_click as click

from producer.commands.flags import (
    PANELS,
    description_of,
    field_flag,
    in_words,
    shown_default,
)
from producer.commands.given_fields import absolute, policy_path, read_config_file
from producer.commands.options import (
    COUNT,
    DEVICE,
    DTYPE,
    FILE,
    FOLDER,
    Decorator,
    examples,
    option,
    switch,
    with_json,
    with_options,
    with_skip_invalid,
    with_summary_as_json,
    with_takeover,
)
from producer.commands.shell import cua_train_command, print_result
from producer.commands.stopping import continued_by
from producer.config.training import CheckpointFields
from producer.fine_tuning.settings import DEFAULTS, FineTuningConfig
from producer.foreign_files.rewardsql_models import objective_of
from schemas.installation import read_installation

if TYPE_CHECKING:
    from producer.fine_tuning.run import FineTuningSummary

logger = logging.getLogger(__name__)

COMPLETIONS = click.IntRange(1, 1000)
FIELDS: Final = (
    *("output_dir", "train_type", "epochs", "learning_rate", "seed", "training_name", "log_path"),
    *("device", "dtype", "max_length", "cpu_threads"),
)
"""Fields of both commands whose flags are generated."""
OTHER_HELP: Final = {"seed": "Seed of fresh weights and of the examples' order."}


def _flag(name: str) -> Decorator:
    """The flag of a field, with its default, which may differ between the two commands."""
    field = FineTuningConfig.model_fields[name]
    if name == "output_dir":
        default = "`model` in the log path"
    elif field.default is None:
        default = shown_default(name)
    else:
        default = in_words(field.default)
        if name in DEFAULTS["sft"]:
            default = f"sft {in_words(DEFAULTS['sft'][name])}, reward-model {default}"
    return field_flag(
        name,
        FineTuningConfig,
        text=OTHER_HELP.get(name),
        default=default,
        panel=PANELS[name] if name in CheckpointFields.model_fields else "Options",
    )


def _help(name: str) -> str:
    return description_of(FineTuningConfig.model_fields[name])


_flags = with_options(
    option(
        "--config config_file",
        "A RewardSQL file, or a file of our own fields (`cua-train convert` prints one). Flags"
        " override it.",
        FILE,
    ),
    option("--model-name", _help("model_name"), metavar="NAME|FOLDER"),
    option(
        "--data-path",
        f"{_help('data_path')} Repeatable.",
        metavar="FILE|FOLDER",
        multiple=True,
    ),
    *map(_flag, FIELDS),
    with_takeover,
    option(
        "--gradient-checkpointing",
        _help("gradient_checkpointing"),
        click.BOOL,
        metavar="true|false",
        shown="false",
    ),
    with_summary_as_json,
)


@click.command(
    "sft",
    epilog=examples(
        "$ cua-train sql sft --model-name FOLDER --data-path examples.json",
        "$ cua-train sql sft --config sft_config.json",
    ),
)
@_flags
@option(
    "--group-by-prefix",
    _help("group_by_prefix"),
    click.BOOL,
    metavar="true|false",
    shown="false",
)
@with_skip_invalid
def sft(**flags: Any) -> None:
    """Fine-tune a policy on prompts and answers; only the answers count in the loss.

    Fields of the file that are unknown or have no effect are named on stderr. A value that cannot
    be honoured is an error.
    """
    _train("sql sft", flags)


@click.command(
    "reward-model",
    epilog=examples(
        "$ cua-train sql reward-model --model-name FOLDER --data-path steps.json",
        "$ cua-train sql reward-model --config rm_config.json",
        "$ cua-train sql reward-model --kind pairwise --model-name FOLDER --data-path pairs.json",
    ),
)
@option(
    "--kind",
    "Score each step, or the whole answer of a pair.",
    click.Choice(["process", "pairwise"]),
    shown="by the file's fields, or process",
)
@_flags
@_flag("labels")
def reward_model(*, kind: str | None, **flags: Any) -> None:
    """Train a reward model of steps (process) or of whole answers (pairwise).

    A process reward model learns at each step's marker whether the completion is right so far, from
    hard labels (+ and -) or soft ones (a probability).
    """
    _train("sql reward-model", flags, kind)


def _train(command_name: str, flags: dict[str, Any], kind: str | None = None) -> None:
    as_json, takeover, config_file = (
        flags.pop(name) for name in ("as_json", "takeover", "config_file")
    )
    flags["skip_invalid"] = flags.get("skip_invalid") or None
    flags = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in flags.items()
        if value is not None and value != ()
    }
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    if config_file is not None:
        file = read_config_file(config_file, command_name, kind=kind, overridden=flags)
        fields, names = file.fields, file.read.names
    objective = objective_of(fields, command_name, kind)
    given = {**fields, **flags}
    if "seed" in flags:
        given["data_seed"] = flags["seed"]
    names = {**names, **{name: "--" + name.replace("_", "-") for name in flags}}
    _make_absolute(given, names)
    from producer.fine_tuning.run import fine_tune

    def command_of(name: str, folder: Path) -> str:
        words = [*command_name.split(), "--training-name", name]
        if objective == "pairwise_reward":
            words += ["--kind", "pairwise"]
        if "log_path" in given:
            words += ["--log-path", str(folder)]
        return cua_train_command(*words)

    with continued_by(command_of) as (stop, on_open):
        summary = fine_tune(
            objective,
            given,
            names=names,
            installation=read_installation(os.environ),
            stop=stop,
            on_open=on_open,
            takeover=takeover,
        )
    if as_json:
        click.echo(json.dumps(asdict(summary)))
    else:
        _print_summary(summary)


def _make_absolute(given: dict[str, Any], names: Mapping[str, str]) -> None:
    """Make paths absolute, so that the training continues from any folder. Raises UsageError."""
    if isinstance(given.get("model_name"), str):
        given["model_name"] = policy_path(
            names.get("model_name", "model_name"), given["model_name"]
        )
    for name in ("output_dir", "log_path"):
        if isinstance(given.get(name), str | Path):
            given[name] = str(absolute(given[name]))
    paths = given.get("data_path")
    paths = [paths] if isinstance(paths, str) else paths
    if isinstance(paths, list) and all(isinstance(path, str) for path in paths):
        given["data_path"] = [str(absolute(path)) for path in paths]


@click.command(
    "label-steps",
    epilog=examples(
        "$ cua-train sql label-steps --model-name SFT --data-path DATA --output steps.json",
        "$ cua-train sql label-steps --model-name SFT --data-path DATA --output steps.json"
        " --completions 4 --step-completions 8 --limit 100",
    ),
)
@option("--model-name", "Policy to sample from.", metavar="NAME|FOLDER", required=True)
@option(
    "--data-path",
    "Data set in BIRD's or Spider's layout; asks the questions of its split `train`.",
    FOLDER,
    required=True,
)
@with_skip_invalid
@option("--output", "JSON file for `cua-train sql reward-model`; overwritten.", FILE, required=True)
@option("--completions", "Completions of each question.", COMPLETIONS, default=4)
@option(
    "--step-completions",
    "Completions of each prefix; a label is the share that is right.",
    COMPLETIONS,
    default=8,
)
@option("--limit", "Use only this many questions, the first ones.", COUNT, shown="all")
@option("--max-tokens", "Tokens of a completion.", COUNT, default=512)
@option(
    "--temperature",
    "Sampling temperature; a higher one gives more wrong completions to learn from.",
    click.FloatRange(0, min_open=True),
    default=1.0,
)
@switch(
    "--results",
    "Write each step with its result, for `cua-train sql rl --reward-model-sees-results`.",
)
@option("--seed", "Seed of the samples.", click.INT, default=0)
@option("--device", "Where to compute.", metavar=DEVICE, default="auto")
@option("--dtype", "Type of the policy's weights.", DTYPE, default="auto")
@option(
    "--training-name",
    "The same name continues the same labelling.",
    metavar="NAME",
    shown="a new name",
)
@switch("--takeover", "Continue even if another process seems to be labelling.")
@with_json
def label_steps(*, as_json: bool, takeover: bool, **options: Any) -> None:
    """Label the steps of sampled completions by completing each prefix several times.

    Each completion is a rollout of a training of its own; its labels are events.
    """
    from producer.fine_tuning.step_labels import label_steps as label

    for name in ("data_path", "output"):
        options[name] = absolute(options[name])
    options["model_name"] = policy_path("--model-name", options["model_name"])
    words = [
        f"--{name.replace('_', '-')}={value}"
        for name, value in options.items()
        if value is not None and name not in {"training_name", "results", "skip_invalid"}
    ]
    words += ["--results"] * options["results"]
    words += ["--skip-invalid"] * options["skip_invalid"]

    def command_of(name: str, _folder: Path) -> str:
        return cua_train_command("sql", "label-steps", *words, f"--training-name={name}")

    with continued_by(command_of) as (stop, on_open):
        found = label(
            data=options.pop("data_path"),
            completions_per_question=options.pop("completions"),
            installation=read_installation(os.environ),
            stop=stop,
            on_open=on_open,
            takeover=takeover,
            **options,
        )
    if as_json:
        click.echo(json.dumps(asdict(found)))
        return
    click.echo(
        f"labelled {found.steps} steps of {found.completions} completions of {found.questions}"
        f" questions: {found.output}"
    )
    if found.correct is not None and found.mean_label is not None:
        click.echo(f"right completions: {found.correct:.3f}, mean label: {found.mean_label:.3f}")


def _print_summary(summary: "FineTuningSummary") -> None:
    figures = (
        ("loss", summary.loss_before, summary.loss_after),
        ("accuracy", summary.accuracy_before, summary.accuracy_after),
        ("AUC", summary.auc_before, summary.auc_after),
    )
    print_result(
        summary,
        [
            f"examples: {summary.examples} trained on, {summary.held_out} held out,"
            f" {summary.left_out} too long",
            *(
                f"held-out {name}: {before:.4f} before, {after:.4f} after"
                for name, before, after in figures
                if before is not None and after is not None
            ),
            f"trained policy: {summary.output_dir}",
        ],
    )
