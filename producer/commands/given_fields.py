"""The fields that a command was given: its flags override its --config file."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import JsonValue

from producer.commands.config_file import place, read_config_file
from producer.commands.flags import JSON_FIELDS
from producer.errors import CuaTrainError, UsageError

FILE_FIELDS = ("file_path", "path")
"""Of a task source."""
FOLDERS = ("log_path", "log_dir", "load_checkpoint_path", "process_reward_model")
MODULES = ("core_algos", "reward_module")
EXAMPLE = '{"source_type": "demo_training"}'
LINE_CHARACTERS = 80


def given_fields(flags: Mapping[str, Any], config_file: Path | None) -> dict[str, Any]:
    """Fields of the file and of the flags, with absolute paths. UsageError."""
    given = read_config_file(config_file) if config_file is not None else {}
    for name, value in flags.items():
        if value is not None:
            given[name] = _parse_json(name, value) if name in JSON_FIELDS else value
    return with_absolute_paths(given)


def with_absolute_paths(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as they are recorded: independent of the working folder, without a password.

    UsageError for a policy or adapter folder that does not exist.
    """
    given = dict(given)
    for name in FOLDERS:
        if isinstance(given.get(name), str | Path):
            given[name] = absolute(given[name])
    for name in MODULES:
        if isinstance(given.get(name), str) and given[name].endswith(".py"):
            given[name] = str(absolute(given[name]))
    if isinstance(given.get("model_name"), str):
        given["model_name"] = policy_path("model_name", given["model_name"])
    adapter = given.get("load_checkpoint_path")
    if isinstance(adapter, Path) and not adapter.is_dir():
        message = f"load_checkpoint_path: there is no folder {adapter}"
        raise UsageError(message)
    if isinstance(given.get("dbbench_database"), str):
        given["dbbench_database"] = _without_password(given["dbbench_database"])
    for name in JSON_FIELDS & given.keys():
        given[name] = _with_absolute_files(given[name])
    return given


def policy_path(name: str, given: str, error: type[CuaTrainError] = UsageError) -> str:
    """A policy's folder as an absolute path, or its hub id. `error` for a missing folder."""
    path = absolute(given)
    if path.is_dir():
        return str(path)
    if given.startswith(("/", ".", "~")):
        message = f"{name}: there is no folder {given}"
        raise error(message)
    return given


def _parse_json(name: str, text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except json.JSONDecodeError as error:
        flag = "--" + name.replace("_", "-")
        shown = text if len(text) <= LINE_CHARACTERS else text[:LINE_CHARACTERS] + "..."
        message = (
            f"{flag}: {shown!r} is not valid JSON, {place(error)}; for example {flag} '{EXAMPLE}'"
        )
        raise UsageError(message) from None
    except RecursionError:
        message = f"--{name.replace('_', '-')} is nested too deeply"
        raise UsageError(message) from None
    return value


def _with_absolute_files(source: JsonValue) -> JsonValue:
    if isinstance(source, list):
        return [_with_absolute_files(item) for item in source]
    if isinstance(source, dict):
        files = {
            name: str(absolute(file))
            for name in FILE_FIELDS
            if isinstance(file := source.get(name), str)
        }
        return {**source, **files}
    return source


def absolute(path: str | Path) -> Path:
    """The path with ~ expanded."""
    return Path(path).expanduser().absolute()


def _without_password(url: str) -> str:
    """The URL without its password, which is set in the environment and never recorded."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    if parts.password is None:
        return url
    os.environ["CUA_DBBENCH_PASSWORD"] = unquote(parts.password)
    user = parts.netloc.partition(":")[0]
    return parts._replace(netloc=f"{user}@{parts.netloc.rpartition('@')[2]}").geturl()
