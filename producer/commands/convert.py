"""`cua-train convert`: converts another project's configuration to our own fields, as TOML."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import rich_click as click

from producer.commands.given_fields import read_config_file
from producer.commands.options import examples
from producer.commands.sql_rl_fields import SqlRlFields, read_sql_rl
from producer.commands.sql_rl_settings import ADVANTAGE_OF_SETTING
from producer.config import RunConfig, read_fields
from producer.config.recipe_names import EVAL_TASKS, KEYS, in_our_names
from producer.errors import UsageError
from producer.field_errors import SECRET_NAME, did_you_mean_field
from producer.foreign_files.convert import Converted
from producer.foreign_files.rewardsql_models import objective_of
from producer.foreign_files.toml_text import toml_comment, toml_text
from producer.numbers import NONE

NEVER_COPIED: Final = "secrets are never copied; set it in the environment"
PASSWORD: Final = re.compile(
    r"([a-z][a-z0-9+.-]*://[^/@:\s]*):(?!\d+(?:[/,?]|$))[^@\s,]*@", re.IGNORECASE
)
"""Matches the password in a URL. Digits before a slash, comma or question mark are a port."""
KINDS: Final = (
    "fields of `cua-train run` or `cua-train sql`, an Agent-PEFT assignment (assignment_config), a"
    " verl trainer file (actor_rollout_ref, algorithm, trainer) or a RewardSQL file"
    " (model_id_or_path, dataset)"
)


@click.command(
    "convert",
    epilog=examples(
        "$ cua-train convert grpo_trainer.yaml > rl.toml",
        "$ cua-train sql rl --config rl.toml --data-path bird",
    ),
)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
def command(*, file: Path) -> None:
    """Convert another project's configuration to our fields, and print it as TOML.

    Reads Agent-PEFT assignments, verl trainer files and RewardSQL files. The first comments name
    the command to use the printed file with, which then trains as with the original. Other
    comments give each field's original name, and what was left out and why. Secrets are never
    printed.
    """
    click.echo(converted_text(read_config_file(file)), nl=False)


def converted_text(file: Converted) -> str:
    """The file as TOML. Raises UsageError for an unknown kind of file and for invalid values."""
    fields, left_out = _without_secrets(file.fields)
    if file.origin is None:
        fields = _in_our_names(file.path, fields)
    if not fields and not left_out:
        message = f"{file.path} has no fields; expected {KINDS}"
        raise UsageError(message)
    command_name = command_of(file.path, fields) if file.origin is None else file.origin.command
    fields = _checked(command_name, fields, file.read.names)
    read = file.read
    unknown = [name for name in sorted({*read.unknown}) if not _is_secret(name)]
    left_out += [
        f"{name}: left out: {NEVER_COPIED}" for name in sorted({*read.unknown} - {*unknown})
    ]
    head = [
        f"converted from {file.path.name}, {file.title}",
        f"use it with: cua-train {command_name} --config THIS_FILE",
        *left_out,
        *read.told,
        *([f"unknown fields, left out: {', '.join(unknown)}"] if unknown else []),
    ]
    return "\n".join(
        part
        for part in (
            toml_comment(head),
            toml_text(fields, {name: _origin_of(name, file) for name in fields}),
            toml_comment(read.reasons()),
        )
        if part
    )


def _origin_of(name: str, file: Converted) -> str:
    """One of our fields: its name in the file, and when it is a default or has an effect."""
    theirs = file.name_of(name)
    remarks = [theirs] if theirs != name else []
    remarks += (
        ["the default of the original, not in the file"] if theirs in file.read.absent else []
    )
    remarks += (
        [f"only with advantage {ADVANTAGE_OF_SETTING[name]}"]
        if name in ADVANTAGE_OF_SETTING
        else []
    )
    return ", ".join(remarks)


def command_of(path: Path, fields: Mapping[str, Any]) -> str:
    """The command that takes these fields of ours. Raises UsageError if no command does."""
    # Imported here to keep --help quick.
    from producer.fine_tuning.settings import FineTuningConfig

    names = fields.keys() - KEYS.keys() - {EVAL_TASKS}
    if names <= RunConfig.model_fields.keys():
        return "run"
    if names <= FineTuningConfig.model_fields.keys():
        return "sql sft" if objective_of(fields) == "sft" else "sql reward-model"
    if unknown := sorted(names - SqlRlFields.model_fields.keys()):
        hint = did_you_mean_field(unknown[0], RunConfig.model_fields)
        message = f"{path}: unknown fields: {', '.join(unknown)}.{hint} Expected {KINDS}"
        raise UsageError(message)
    return "sql rl"


def _checked(command_name: str, fields: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """The fields as the command reads them, each validated separately."""
    if command_name == "run":
        read = read_fields(fields)
    elif command_name == "sql rl":
        read = read_sql_rl(fields, names)
    else:
        from producer.fine_tuning.settings import read_fine_tuning

        needed = {"model_name": "a policy", "data_path": "a file"}
        config = read_fine_tuning(objective_of(fields), {**needed, **fields}, names=names)
        read = config.recorded()
    return {name: NONE if read[name] is None else read[name] for name in fields if name in read}


def _in_our_names(path: Path, fields: dict[str, Any]) -> dict[str, Any]:
    try:
        return in_our_names(fields)
    except ValueError as error:
        message = f"{path}: {error}"
        raise UsageError(message) from None


def _is_secret(name: str) -> bool:
    return SECRET_NAME.search(name.rpartition(".")[2]) is not None


def _without_secrets(fields: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The fields without keys and passwords, and one line for each that was left out."""
    left_out: list[str] = []

    def kept(value: Any, name: str) -> Any:
        if isinstance(value, dict):
            left_out.extend(
                f"{name}.{key}: left out: {NEVER_COPIED}" for key in value if _is_secret(key)
            )
            return {
                key: kept(item, f"{name}.{key}")
                for key, item in value.items()
                if not _is_secret(key)
            }
        if isinstance(value, list):
            return [kept(item, f"{name}[{number}]") for number, item in enumerate(value)]
        if isinstance(value, str) and PASSWORD.search(value):
            left_out.append(f"{name}: its password is left out: {NEVER_COPIED}")
            return PASSWORD.sub(r"\1@", value)
        return value

    from producer.fine_tuning.settings import FineTuningConfig

    known = SqlRlFields.model_fields.keys() | FineTuningConfig.model_fields.keys() | KEYS.keys()
    found = {}
    for name, value in fields.items():
        if name in KEYS and value not in (None, ""):  # the value may be an object
            left_out.append(f"{name}: left out: {KEYS[name]}")
        elif _is_secret(name) and name not in known:
            left_out.append(f"{name}: left out: {NEVER_COPIED}")
        elif value is not None:
            found[name] = kept(value, name)
    return found, left_out
