"""The fields that a command was given: its flags override its --config file.

The file has fields of the configuration as JSON, TOML or YAML, by its ending.
"""

import contextlib
import json
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import JsonValue

from producer.commands.flags import JSON_FIELDS
from producer.errors import CuaTrainError, NotFoundError, UsageError, did_you_mean
from producer.foreign_files.agent_peft import is_agent_peft, read_agent_peft
from producer.json_text import RepeatedNameError, read_json
from producer.policy.remote_checkpoint import SCHEME
from producer.pretrained.known import made_folder
from producer.resume.stamped_folder import with_stamped_folder
from schemas.installation import read_installation

YAML_ENDINGS = (".yaml", ".yml")
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
            given[name] = _parse_flag(name, value) if name in JSON_FIELDS else value
    given = with_absolute_paths(given)
    return with_stamped_folder(given, read_installation(os.environ), datetime.now().astimezone())


def with_absolute_paths(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as they are recorded: independent of the working folder, without a password.

    UsageError for a policy or adapter folder that does not exist.
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
    """As `policy_path`; a server of base_url may have a pretrained policy that is not here."""
    try:
        return policy_path("model_name", given["model_name"])
    except NotFoundError:
        if not given.get("base_url"):
            raise
        return str(given["model_name"])


def policy_path(name: str, given: str, error: type[CuaTrainError] = UsageError) -> str:
    """A policy's folder as an absolute path, or its hub id. `error` for a missing folder.

    The name of a pretrained policy stands for its folder in CUA_HOME, after `models get`;
    NotFoundError before.
    """
    path = absolute(given)
    if path.is_dir():
        return str(path)
    if (made := made_folder(given, read_installation(os.environ).policies_dir)) is not None:
        return str(made)
    if given.startswith(("/", ".", "~")):
        message = f"{name}: there is no folder {given}"
        raise error(message)
    return given


def _parse_flag(name: str, text: str) -> JsonValue:
    """The task sources, as JSON, or the name of a file of tasks."""
    if _is_file(text):
        return text
    flag = "--" + name.replace("_", "-")
    try:
        value = read_json(text)
    except RepeatedNameError as error:
        message = f"{flag}: {error}; remove one of them"
        raise UsageError(message) from None
    except json.JSONDecodeError as error:
        shown = text if len(text) <= LINE_CHARACTERS else text[:LINE_CHARACTERS] + "..."
        message = (
            f"{flag}: {shown!r} is neither an existing file nor valid JSON, {place(error)};"
            f" for example {flag} '{EXAMPLE}'"
        )
        raise UsageError(message) from None
    except RecursionError:
        message = f"{flag} is nested too deeply"
        raise UsageError(message) from None
    return value


def _is_file(text: str) -> bool:
    with contextlib.suppress(OSError, RuntimeError, ValueError):  # too long, ~nobody, a null byte
        return absolute(text).is_file()
    return False


def _with_absolute_files(source: JsonValue) -> JsonValue:
    """The task source; the name of a file stands for the source of that file."""
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


def read_config_file(path: Path, omit: Iterable[str] = ()) -> dict[str, Any]:
    """The file's fields: JSON unless it is called *.toml, *.yaml or *.yml.

    Without the fields to `omit` (`section.field`). Reads an assignment of Agent-PEFT with the files
    that it imports. UsageError for an unreadable file and for a repeated field.
    """
    fields = _read(path)
    for name in omit:
        _omit(fields, name, path)
    return read_agent_peft(path, _read) if is_agent_peft(fields) else fields


def given_file(path: Path | None, omit: Iterable[str]) -> dict[str, Any]:
    """As `read_config_file`; no fields without a file. UsageError for `omit` without one."""
    if path is not None:
        return read_config_file(path, omit)
    if omit:
        message = "--omit: requires --config"
        raise UsageError(message)
    return {}


def _omit(fields: dict[str, Any], name: str, path: Path) -> None:
    *sections, last = name.split(".")
    section = fields
    for key in sections:
        section = section[key] if isinstance(section.get(key), dict) else {}
    if last not in section:
        message = f"--omit: {path.name} has no field {name!r}.{did_you_mean(name, fields)}"
        raise UsageError(message)
    del section[last]


def _read(path: Path) -> dict[str, Any]:
    parse = _PARSERS.get(path.suffix.lower(), read_json)
    try:
        text = path.read_text(encoding="utf-8-sig")  # Windows editors write a byte order mark
        fields = parse(text)
    except OSError as error:
        message = f"--config: {path} cannot be read: {error.strerror}"
        raise UsageError(message) from None
    except UnicodeDecodeError:
        message = f"--config: {path} is not a text file in UTF-8"
        raise UsageError(message) from None
    except RecursionError:
        message = f"--config: {path} is nested too deeply"
        raise UsageError(message) from None
    except RepeatedNameError as error:
        message = f"--config: {path}: {error.name} is given twice; remove one of them"
        raise UsageError(message) from None
    except json.JSONDecodeError as error:
        hint = "" if path.suffix == ".json" else "; name a TOML file *.toml, a YAML file *.yaml"
        message = f"--config: {path} is not valid JSON, {place(error)}{hint}"
        raise UsageError(message) from None
    except tomllib.TOMLDecodeError as error:
        message = f"--config: {path} is not valid TOML: {error}"
        raise UsageError(message) from None
    except ValueError as error:
        message = f"--config: {path} is not valid YAML: {error}"
        raise UsageError(message) from None
    if not isinstance(fields, dict) or not all(isinstance(name, str) for name in fields):
        message = f'--config: {path} must hold an object of fields, such as {{"num_steps": 20}}'
        raise UsageError(message)
    return fields


def place(error: json.JSONDecodeError) -> str:
    """Position and reason of a JSON error."""
    return f"line {error.lineno} column {error.colno}: {error.msg[:1].lower()}{error.msg[1:]}"


def _parse_yaml(text: str) -> object:
    """YAML as OmegaConf reads it: 1e-5 is a number, a date is text. ValueError."""
    import yaml
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    if not text.strip():
        return None
    try:
        return OmegaConf.to_container(OmegaConf.create(text))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = "" if mark is None else f"line {mark.line + 1} column {mark.column + 1}: "
        message = f"{where}{error.problem}"
        raise ValueError(message) from None
    except (yaml.YAMLError, OmegaConfBaseException, TypeError) as error:
        raise ValueError(str(error).splitlines()[0]) from None


_PARSERS: dict[str, Callable[[str], object]] = {
    ".toml": tomllib.loads,
    **dict.fromkeys(YAML_ENDINGS, _parse_yaml),
}
