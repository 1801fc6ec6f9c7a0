"""The fields that a command was given: those of its flags, over those of its --config file."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import JsonValue

from producer.commands.config_file import place, read_config_file
from producer.commands.flags import JSON_FIELDS
from producer.errors import UsageError

FILE_FIELDS = ("file_path", "path")
"""Of a task source."""
FOLDERS = ("log_path", "log_dir", "load_checkpoint_path", "process_reward_model")
EXAMPLE = '{"source_type": "demo_training"}'


def given_fields(flags: Mapping[str, Any], config_file: Path | None) -> dict[str, Any]:
    """Fields of the file and of the flags, which win. UsageError for what cannot be parsed.

    Folders and files are made absolute, so that the training continues from any working folder.
    """
    given = read_config_file(config_file) if config_file is not None else {}
    for name, value in flags.items():
        if value is not None:
            given[name] = _parse_json(name, value) if name in JSON_FIELDS else value
    given |= _with_absolute_paths(given)
    model_name = given.get("model_name")
    if isinstance(model_name, str) and Path(model_name).expanduser().is_dir():
        given["model_name"] = str(_absolute(model_name))
    elif isinstance(model_name, str) and model_name.startswith(("/", ".", "~")):
        message = f"model_name: there is no folder {model_name}"
        raise UsageError(message)
    adapter = given.get("load_checkpoint_path")
    if isinstance(adapter, Path) and not adapter.is_dir():
        message = f"load_checkpoint_path: there is no folder {adapter}"
        raise UsageError(message)
    if isinstance(given.get("dbbench_database"), str):
        given["dbbench_database"] = _without_password(given["dbbench_database"])
    for name in JSON_FIELDS & given.keys():
        given[name] = _with_absolute_files(given[name])
    return given


def _parse_json(name: str, text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except json.JSONDecodeError as error:
        flag = "--" + name.replace("_", "-")
        shown = text if len(text) <= 80 else text[:80] + "..."  # noqa: PLR2004  # a line of a terminal
        message = (
            f"{flag}: {shown!r} is not valid JSON, {place(error)}; for example {flag} '{EXAMPLE}'"
        )
        raise UsageError(message) from None
    except RecursionError:
        message = f"--{name.replace('_', '-')} is nested too deeply"
        raise UsageError(message) from None
    return value


def _with_absolute_paths(given: Mapping[str, Any]) -> dict[str, Any]:
    """The given folders, and files of the user's code."""
    folders = {
        name: _absolute(given[name]) for name in FOLDERS if isinstance(given.get(name), str | Path)
    }
    modules = {
        name: str(_absolute(given[name]))
        for name in ("core_algos", "reward_module")
        if isinstance(given.get(name), str) and given[name].endswith(".py")
    }
    return {**folders, **modules}


def _with_absolute_files(source: JsonValue) -> JsonValue:
    if isinstance(source, list):
        return [_with_absolute_files(item) for item in source]
    if isinstance(source, dict):
        files = {
            name: str(_absolute(file))
            for name in FILE_FIELDS
            if isinstance(file := source.get(name), str)
        }
        return {**source, **files}
    return source


def _absolute(path: str | Path) -> Path:
    return Path(path).expanduser().absolute()


def _without_password(url: str) -> str:
    """The URL without its password, which goes to the environment: the record must not hold it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    if parts.password is None:
        return url
    os.environ["CUA_DBBENCH_PASSWORD"] = unquote(parts.password)
    user = parts.netloc.partition(":")[0]
    return parts._replace(netloc=f"{user}@{parts.netloc.rpartition('@')[2]}").geturl()
