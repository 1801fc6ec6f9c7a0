"""`cua-train sql rl`: reinforcement learning of text-to-SQL from flags and verl's files."""

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import rich_click as click

from producer.commands.existing import resolve_existing
from producer.commands.flags import field_flags
from producer.commands.given_fields import read_config_file
from producer.commands.options import (
    COUNT,
    FILE,
    FOLDER,
    examples,
    given_training_name,
    option,
    with_skip_invalid,
    with_summary_as_json,
    with_takeover,
)
from producer.commands.shell import cua_train_command, print_result
from producer.commands.sql_rl_fields import COMMAND_FIELDS
from producer.commands.sql_rl_settings import FOUR, continued, settings_of
from producer.commands.stopping import continued_by
from producer.errors import UsageError
from producer.foreign_files.convert import Converted
from producer.resume.run_folder import find_run_folder
from schemas.installation import Installation, read_installation

logger = logging.getLogger(__name__)

FIELDS = (
    *("model_name", "train_type", "lora_rank", "max_tokens", "temperature", "seed"),
    *("num_steps", "groups_per_batch", "group_size", "num_substeps", "learning_rate"),
    "group_by_prefix",
    *("kl_penalty_coef", "kl_in", "kl_estimator"),
    *("remove_constant_reward_groups", "refill_rounds"),
    *("core_algos", "core_function", "process_reward_model", "reward_model_sees_results"),
    *("rm_coef", "verifier_coef"),
    *("reward_module", "reward_function", "reward_manager", "reward_port"),
    *("eval_every", "eval_episodes", "skip_baseline", "max_concurrent_rollouts"),
    *("device", "dtype", "gradient_checkpointing"),
    *("training_name", "log_path", "save_every", "behavior_if_log_dir_exists"),
)
"""Configuration fields that have a flag."""


@click.command(
    "rl",
    epilog=examples(
        "$ cua-train sql rl --model-name SFT --data-path DATA --epochs 2",
        "$ cua-train sql rl --config grpo_trainer.yaml --data-path DATA --output-dir policy",
        "$ cua-train sql rl --model-name SFT --data-path DATA --reward-model PRM --rm-coef 1",
        "$ cua-train sql rl --training-name first --num-steps 40   # more steps",
    ),
)
@option(
    "--config config_file",
    "A verl trainer file, such as RewardSQL's grpo_trainer.yaml, or a file of our own fields"
    " (`cua-train convert` prints one). Flags override it.",
    FILE,
)
@option(
    "--algorithm",
    "Chooses the advantages, unless --core-function does.",
    click.Choice((*FOUR, "dapo")),
    shown="the file's, or grpo",
)
@option(
    "--data-path",
    "Data set in BIRD's or Spider's layout, or verl's Parquet file of prompts: trained on its split"
    " train, evaluated on dev (or test).",
    FOLDER,
    metavar="FOLDER|FILE",
)
@with_skip_invalid
@option("--output-dir", "Folder of the result.", metavar="FOLDER", shown="in the log path")
@option("--epochs", "Passes over the questions, in place of --num-steps.", COUNT)
@field_flags(
    FIELDS,
    group_size={"default": "8"},
    max_tokens={"default": "512"},
    model_name={"default": "required"},
    remove_constant_reward_groups={"default": "no"},
    eval_episodes={"default": "one for each question"},
    process_reward_model={"flag": "--reward-model"},
)
@with_takeover
@with_summary_as_json
def rl(
    *,
    config_file: Path | None,
    takeover: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Train a policy by reinforcement: the executed rows reward it, and the scores of its steps.

    Fields of the file that are unknown or have no effect are named on stderr, all of them with
    --verbose. A value that cannot be honoured is an error, unless a flag overrides it.
    """
    from producer.training.asked_config import read_asked
    from producer.training.preflight import check_folders

    flags["skip_invalid"] = flags["skip_invalid"] or None
    flags = {name: value for name, value in flags.items() if value is not None}
    installation = read_installation(os.environ)
    _register(flags)
    file = None
    if config_file is not None:
        file = read_config_file(config_file, "sql rl", overridden=flags)
    given = _settings(flags, file, installation)
    name = given.get("training_name")
    config = read_asked(given, installation)
    check_folders(installation, config)
    config = resolve_existing(config, installation)
    output = flags.get("output_dir", file.fields.get("output_dir") if file else None)
    folder = None if output is None else Path(str(output)).expanduser().absolute()
    if folder is not None:
        from producer.fine_tuning.output import check_planned_output

        check_planned_output(folder, name, installation, config.run_folder)
    from producer.fine_tuning.output import write_adapter
    from producer.training.run import run
    from producer.training.summary import summary_lines

    def command_of(name: str, run_folder: Path) -> str:
        words = ["sql", "rl", "--training-name", name]
        if config.run_folder is not None:
            words += ["--log-path", str(run_folder)]
        if folder is not None:
            words += ["--output-dir", str(folder)]
        return cua_train_command(*words)

    with continued_by(command_of) as (stop, on_open):
        summary = run(
            config, installation=installation, stop=stop, on_open=on_open, takeover=takeover
        )
    written = write_adapter(summary, folder)
    if as_json:
        click.echo(json.dumps({**asdict(summary), "output_dir": str(written)}))
    else:
        lines = summary_lines(summary, "executed accuracy")
        print_result(summary, [*lines, f"trained policy: {written}"])


def _settings(
    flags: dict[str, Any], file: Converted | None, installation: Installation
) -> dict[str, Any]:
    """Configuration fields of a new or a continuing training. Raises UsageError."""
    fields = {} if file is None else file.fields
    named = flags.get("training_name", fields.get("training_name"))
    if named is None:
        return settings_of(flags, file)
    name = given_training_name(str(named))
    whole = {**fields, **flags, "training_name": name}
    is_of_record = "data_path" not in flags and not COMMAND_FIELDS & fields.keys()
    if is_of_record and _exists(installation, name, whole):
        for asked in ("algorithm", "epochs"):
            if asked in flags:
                message = (
                    f"--{asked}: training {name!r} exists and would be continued; leave"
                    f" --{asked} out, or give --num-steps to train longer"
                )
                raise UsageError(message)
        return continued({k: v for k, v in whole.items() if k not in COMMAND_FIELDS})
    given = settings_of({**flags, "training_name": name}, file)
    if "training_name" not in flags:
        given["training_name"] = _name_of_algorithm(name, given, installation)
    return given


def _register(flags: dict[str, Any]) -> None:
    """Load the user's module first, because the file may name functions that it registers."""
    from producer.process_rewards.user_module import load_user_module

    if (module := flags.get("reward_module")) is not None:
        try:
            load_user_module(module)
        except ValueError as error:
            message = f"--reward-module: {error}"
            raise UsageError(message) from error


def _name_of_algorithm(name: str, given: Mapping[str, Any], installation: Installation) -> str:
    """The file's training name, plus the algorithm if that training has other advantages."""
    from producer.training.asked_config import recorded_config

    recorded = recorded_config(installation, name)
    if recorded is None:
        return name
    function, advantage = given.get("core_function"), given.get("advantage")
    if function == recorded.get("core_function") and advantage in {
        None,
        recorded.get("advantage"),
    }:
        return name
    words = str(function or advantage).removeprefix("compute_").removesuffix("_advantage")
    other = f"{name}-{words.replace('_', '-')}"
    logger.info("training %r exists with other advantages; this one is named %r", name, other)
    return other


def _exists(installation: Installation, name: str, flags: dict[str, Any]) -> bool:
    """Whether the training has a saved state here or a record in the log."""
    from producer.resume import resume_state
    from producer.training.asked_config import recorded_config

    log_path = flags.get("log_path")
    folder = find_run_folder(
        installation, name, None if log_path is None else Path(log_path).expanduser().absolute()
    )
    if resume_state.find_states(folder):
        return True
    return recorded_config(installation, name) is not None
