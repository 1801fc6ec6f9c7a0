"""The fields given to a command: its flags override its --config file.

The file has our configuration's fields or another project's.
"""

import contextlib
import json
import os
from collections.abc import Collection, Mapping
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import JsonValue

from producer.commands.flags import JSON_FIELDS
from producer.errors import NotFoundError, UsageError
from producer.foreign_files.convert import Converted, convert
from producer.foreign_files.parsing import place
from producer.json_text import RefusedJsonError, read_json
from producer.policy.remote_checkpoint import SCHEME
from producer.pretrained.known import made_folder
from producer.resume.stamped_folder import with_stamped_folder
from schemas.installation import read_installation

FILE_FIELDS = ("file_path", "path")
"""Fields of a task source that hold paths."""
FOLDERS = ("log_path", "log_dir", "load_checkpoint_path", "process_reward_model")
MODULES = ("core_algos", "reward_module")
EXAMPLE = '{"source_type": "demo_training"}'
LINE_CHARACTERS = 80


def given_fields(flags: Mapping[str, Any], config_file: Path | None) -> dict[str, Any]:
    """Fields for `cua-train run` from a file and flags, with absolute paths. Raises UsageError."""
    fields = {}
    if config_file is not None:
        overridden = {name for name, value in flags.items() if value is not None}
        fields = read_config_file(config_file, "run", overridden=overridden).fields
    return completed_fields(flags, fields)


def read_config_file(
    path: Path,
    command: str | None = None,
    *,
    kind: str | None = None,
    overridden: Collection[str] = (),
) -> Converted:
    """Read a file as `convert` does.

    Fields that are not honoured as written are named on stderr.
    """
    converted = convert(
        path,
        command,
        kind=kind,
        overridden=overridden,
        has_flash_attention=_has_flash_attention(),
    )
    converted.log()
    return converted


def _has_flash_attention() -> bool:
    """Whether flash-attn is installed and a CUDA device is present."""
    if find_spec("flash_attn") is None:
        return False
    import torch

    return torch.cuda.is_available()


def completed_fields(flags: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Merge flags over the fields of a file and make paths absolute. Raises UsageError."""
    given = dict(fields)
    for name, value in flags.items():
        if value is not None:
            given[name] = _parse_flag(name, value) if name in JSON_FIELDS else value
    given = with_absolute_paths(given)
    return with_stamped_folder(given, read_installation(os.environ), datetime.now().astimezone())


def with_absolute_paths(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as they are recorded: independent of the working folder, and without passwords.

    Raises UsageError for a policy or adapter folder that does not exist.
    """
    given = dict(given)
    for name in FOLDERS:
        if isinstance(given.get(name), str | Path) and not str(given[name]).startswith(SCHEME):
            given[name] = absolute(given[name])
    for name in MODULES:
        if isinstance(given.get(name), str) and given[name].endswith(".py"):
            given[name] = str(absolute(given[name]))
    if isinstance(given.get("model_name"), str):
        given["model_name"] = _policy_of(given)
    adapter = given.get("load_checkpoint_path")
    if isinstance(adapter, Path) and not adapter.is_dir():
        message = f"load_checkpoint_path: there is no folder {adapter}"
        raise UsageError(message)
    if isinstance(given.get("dbbench_database"), str):
        given["dbbench_database"] = _without_password(given["dbbench_database"])
    for name in JSON_FIELDS & given.keys():
        given[name] = _with_absolute_files(given[name])
    return given


def _policy_of(given: Mapping[str, Any]) -> str:
    """Resolve the policy as `policy_path` does.

    A `base_url` server may have a policy that is not here.
    """
    try:
        return policy_path("model_name", given["model_name"])
    except NotFoundError:
        if not given.get("base_url"):
            raise
        return str(given["model_name"])


def policy_path(name: str, given: str) -> str:
    """A policy's folder as an absolute path, or its hub id.

    The name of a pretrained policy stands for its folder in CUA_HOME. Raises UsageError if the
    folder is missing, and NotFoundError if `models get` has not made the pretrained policy yet.
    """
    path = absolute(given)
    if path.is_dir():
        return str(path)
    if (made := made_folder(given, read_installation(os.environ).policies_dir)) is not None:
        return str(made)
    if given.startswith(("/", ".", "~")):
        message = f"{name}: there is no folder {given}"
        raise UsageError(message)
    return given


def _parse_flag(name: str, text: str) -> JsonValue:
    """Parse task sources given as JSON, or the name of a file of tasks."""
    if _is_file(text):
        return text
    flag = "--" + name.replace("_", "-")
    try:
        value = read_json(text)
    except RefusedJsonError as error:
        message = f"{flag}: {error}"
        raise UsageError(message) from None
    except json.JSONDecodeError as error:
        shown = text if len(text) <= LINE_CHARACTERS else text[:LINE_CHARACTERS] + "..."
        message = (
            f"{flag}: {shown!r} is neither an existing file nor valid JSON, {place(error)};"
            f" for example {flag} '{EXAMPLE}'"
        )
        raise UsageError(message) from None
    return value


def _is_file(text: str) -> bool:
    with contextlib.suppress(OSError, RuntimeError, ValueError):  # too long, ~nobody or a null byte
        return absolute(text).is_file()
    return False


def _with_absolute_files(source: JsonValue) -> JsonValue:
    """The task source; a file name stands for the source of that file."""
    if isinstance(source, str):
        source = {"source_type": "file", "file_path": source}
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
    """The absolute path, with ~ expanded."""
    return Path(path).expanduser().absolute()


def _without_password(url: str) -> str:
    """The URL without its password, which belongs in the environment and is never recorded."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    if parts.password is None:
        return url
    os.environ["CUA_DBBENCH_PASSWORD"] = unquote(parts.password)
    user = parts.netloc.partition(":")[0]
    return parts._replace(netloc=f"{user}@{parts.netloc.rpartition('@')[2]}").geturl()
