"""`cua-train sql sft` and `sql reward-model`: the original's files, and flags over them."""

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from producer.commands.config_file import read_config_file
from producer.commands.continue_hint import ContinueHint
from producer.commands.options import (
    examples,
    with_options,
    with_summary_as_json,
    with_takeover,
)
from producer.commands.shell import cua_project_command, cua_train_command
from producer.commands.stopping import stop_on_signals
from producer.errors import StopRequestedError, UsageError, did_you_mean
from producer.fine_tuning.settings import Objective
from producer.foreign_files.rewardsql_models import read_original
from schemas.installation import read_installation

if TYPE_CHECKING:
    from producer.fine_tuning.summary import FineTuningSummary

logger = logging.getLogger(__name__)

FOLDERS = ("model_name", "output_dir", "log_path")
PAIRWISE_FIELDS = frozenset({"chosen_key", "rejected_key"})
PROCESS_FIELDS = frozenset({"input_key", "label_key", "placeholder_token", "reward_tokens"})


_flags = with_options(
    click.option(
        "--config",
        "config_file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="The original's JSON file as it is (or TOML, YAML); flags win.",
    ),
    click.option(
        "--omit",
        multiple=True,
        metavar="FIELD",
        help="Leave this field of the file out. Repeatable.",
    ),
    click.option("--model-name", metavar="NAME|FOLDER", help="Policy to begin from."),
    click.option(
        "--data-path",
        multiple=True,
        metavar="FILE|FOLDER",
        help=(
            "Examples, JSON or JSON lines; sft: or a data set as BIRD's or Spider's. Repeatable."
        ),
    ),
    click.option(
        "--output-dir",
        metavar="FOLDER",
        help="For the trained policy. [default: `model` in the training's folder]",
    ),
    click.option(
        "--train-type",
        type=click.Choice(["full", "lora"]),
        metavar="full|lora",
        help="All weights, or an adapter. [default: sft lora, reward-model full]",
    ),
    click.option("--epochs", type=click.INT, metavar="INTEGER", help="[default: 1]"),
    click.option("--learning-rate", type=click.FLOAT, metavar="FLOAT", help="Highest."),
    click.option(
        "--seed",
        type=click.INT,
        metavar="INTEGER",
        help="Of fresh weights and of the examples' order. [default: 42]",
    ),
    click.option(
        "--training-name",
        metavar="NAME",
        panel="Checkpoints and resume",
        help="The same name continues the same training. [default: a new name]",
    ),
    click.option(
        "--log-path",
        metavar="FOLDER",
        panel="Checkpoints and resume",
        help="Folder of resume states and checkpoints. [default: CUA_HOME/runs/NAME]",
    ),
    with_takeover,
    click.option("--device", metavar="auto|cpu|cuda|cuda:N", help="Where it is computed."),
    click.option(
        "--cpu-threads",
        type=click.INT,
        metavar="INTEGER",
        help=(
            "On a processor: threads of one operation of a policy of more than 50 M weights."
            " [default: the machine's; recorded]"
        ),
    ),
    with_summary_as_json,
)
"""What both commands take; flags win over the file."""


@click.command(
    "sft",
    epilog=examples(
        "$ cua-train sql sft --model-name FOLDER --data-path examples.json",
        "$ cua-train sql sft --config sft_config.json",
    ),
)
@_flags
def sft(*, config_file: Path | None, omit: tuple[str, ...], **flags: Any) -> int:
    """Fine-tune a policy on prompts and their answers; the loss is on the answers alone.

    Fields of the file that are unknown or without effect are named on stderr; those that cannot be
    honoured are refused by name.
    """
    return _train("sft", _file(config_file, omit), flags)


@click.command(
    "reward-model",
    epilog=examples(
        "$ cua-train sql reward-model --model-name FOLDER --data-path steps.json",
        "$ cua-train sql reward-model --config rm_config.json",
        "$ cua-train sql reward-model --kind pairwise --model-name FOLDER --data-path pairs.json",
    ),
)
@click.option(
    "--kind",
    type=click.Choice(["process", "pairwise"]),
    metavar="process|pairwise",
    help="A score for each step, or one for the answer. [default: as the file's fields say]",
)
@click.option(
    "--labels",
    type=click.Choice(["soft", "hard"]),
    metavar="soft|hard",
    help="Labels that are numbers: as they are, or right above one half. [default: soft]",
)
@_flags
def reward_model(
    *, kind: str | None, config_file: Path | None, omit: tuple[str, ...], **flags: Any
) -> int:
    """Train a reward model: of each step (process), or of whole answers (pairwise).

    A process reward model learns, at each step's marker, whether the completion is right so far,
    from hard labels (+ and -) or soft ones (a probability).
    """
    fields = _file(config_file, omit)
    is_pairwise = kind == "pairwise" or (
        kind is None and PAIRWISE_FIELDS & fields.keys() and not PROCESS_FIELDS & fields.keys()
    )
    return _train("pairwise_reward" if is_pairwise else "process_reward", fields, flags)


def _file(config_file: Path | None, omit: tuple[str, ...]) -> dict[str, Any]:
    """The file's fields without those to omit. UsageError."""
    fields = {} if config_file is None else read_config_file(config_file)
    for name in omit:
        if name not in fields:
            known = did_you_mean(name, fields)
            message = f"--omit: the file has no field {name!r}.{known}"
            raise UsageError(message)
        del fields[name]
    return fields


def _train(objective: Objective, fields: Mapping[str, Any], flags: dict[str, Any]) -> int:
    as_json, takeover = flags.pop("as_json"), flags.pop("takeover")
    read = read_original(fields, objective, has_flash_attention=_has_flash_attention())
    for remark in read.remarks():
        logger.warning("%s", remark)
    given = read.given
    for name, value in flags.items():
        if value not in {None, ()}:
            given[name] = list(value) if isinstance(value, tuple) else value
            read.names[name] = "--" + name.replace("_", "-")
    if flags["seed"] is not None:
        given["data_seed"] = flags["seed"]
    _make_absolute(given, read.names)
    from producer.fine_tuning.run import fine_tune

    stop = stop_on_signals()
    installation = read_installation(os.environ)
    hint = ContinueHint()

    def on_open(name: str, folder: Path) -> None:
        words = ["sql", "sft" if objective == "sft" else "reward-model", "--training-name", name]
        if objective == "pairwise_reward":
            words += ["--kind", "pairwise"]
        if "log_path" in given:
            words += ["--log-path", str(folder)]
        hint.begun(name, folder, cua_train_command(*words))

    try:
        summary = fine_tune(
            objective,
            given,
            names=read.names,
            installation=installation,
            stop=stop,
            on_open=on_open,
            takeover=takeover,
        )
    except StopRequestedError:
        return hint.stopped()
    if as_json:
        click.echo(json.dumps(asdict(summary)))
    else:
        _print_summary(summary)
    return 0


def _has_flash_attention() -> bool:
    """Whether the package and a CUDA device are there."""
    if find_spec("flash_attn") is None:
        return False
    import torch

    return torch.cuda.is_available()


def _make_absolute(given: dict[str, Any], names: Mapping[str, str]) -> None:
    """Folders and files, so that the training continues from any working folder. UsageError."""
    for name in FOLDERS:
        value = given.get(name)
        if not isinstance(value, str):
            continue
        path = Path(value).expanduser()
        if name != "model_name" or path.is_dir():
            given[name] = str(path.absolute())
        elif value.startswith(("/", ".", "~")):
            message = f"{names.get(name, name)}: there is no folder {value}"
            raise UsageError(message)
    paths = given.get("data_path")
    paths = [paths] if isinstance(paths, str) else paths
    if isinstance(paths, list) and all(isinstance(path, str) for path in paths):
        given["data_path"] = [str(Path(path).expanduser().absolute()) for path in paths]


def _print_summary(summary: "FineTuningSummary") -> None:
    click.echo(
        f"training {summary.training_name}: {summary.status} after step {summary.steps},"
        f" {summary.seconds:.0f} s"
    )
    click.echo(
        f"examples: {summary.examples} trained on, {summary.held_out} held out,"
        f" {summary.left_out} too long"
    )
    for name, before, after in (
        ("loss", summary.loss_before, summary.loss_after),
        ("accuracy", summary.accuracy_before, summary.accuracy_after),
        ("AUC", summary.auc_before, summary.auc_after),
    ):
        if before is not None and after is not None:
            click.echo(f"held-out {name}: {before:.4f} before, {after:.4f} after")
    click.echo(f"trained policy: {summary.output_dir}")
    click.echo("look at it:")
    click.echo(f"  {cua_project_command('tail', '--training', summary.training_name, '-n', '20')}")
