"""One command-line flag per field of the configuration, made from the fields themselves, so that neither can be forgotten."""

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from pydantic_core import PydanticUndefined

from producer.config import DEMO_PRESET, RunConfig
from producer.errors import UsageError

JSON_FIELDS = frozenset({"tasks", "eval_tasks"})


def config_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flags; the command gets them as keyword arguments, None where a flag was not given."""
    for name, field in reversed(RunConfig.model_fields.items()):
        flag = "--" + name.replace("_", "-")
        default = "none" if field.default in {None, PydanticUndefined} else field.default
        preset = f"; preset demo: {json.dumps(DEMO_PRESET[name])}" if name in DEMO_PRESET else ""
        text = f"{field.description} [default: {default}{preset}]"
        if field.annotation is bool:
            option = click.option(f"{flag}/--no-{flag[2:]}", name, default=None, help=text)
        else:
            option = click.option(
                flag,
                name,
                default=None,
                metavar="JSON" if name in JSON_FIELDS else "VALUE",
                help=text,
            )
        command = option(command)
    return command


def given_fields(flags: Mapping[str, Any], config_file: Path | None) -> dict[str, Any]:
    """Fields of the file, replaced by those of the flags. UsageError for what cannot be parsed."""
    given = read_config_file(config_file) if config_file is not None else {}
    for name, value in flags.items():
        if value is None:
            continue
        if name in JSON_FIELDS:
            try:
                given[name] = json.loads(value)
            except json.JSONDecodeError as error:
                message = (
                    f'{name}: expected JSON such as {{"source_type": "demo_training"}}, found'
                    f" {value!r} ({error})"
                )
                raise UsageError(message) from None
        else:
            given[name] = value
    return given


def read_config_file(path: Path) -> dict[str, Any]:
    """A JSON or TOML file of fields. UsageError."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        message = f"--config: expected a readable file, found {path}: {error.strerror}"
        raise UsageError(message) from None
    try:
        fields = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
        message = (
            f"--config: expected {'TOML' if path.suffix == '.toml' else 'JSON'} in {path}: {error}"
        )
        raise UsageError(message) from None
    if not isinstance(fields, dict):
        message = f"--config: expected an object of fields in {path}, found {type(fields).__name__}"
        raise UsageError(message)
    return fields
