"""Reads a --config file: fields of the configuration as JSON, TOML or YAML, by its ending."""

import json
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from producer.errors import UsageError, did_you_mean
from producer.foreign_files.agent_peft import is_agent_peft, read_agent_peft

YAML_ENDINGS = (".yaml", ".yml")


class _RepeatedFieldError(ValueError):
    """The file has a field twice; one of them would be ignored."""


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
    parse = _PARSERS.get(path.suffix.lower(), _parse_json)
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
    except _RepeatedFieldError as error:
        message = f"--config: {path}: {error} is given twice; remove one of them"
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


def _parse_json(text: str) -> object:
    return json.loads(text, object_pairs_hook=_unique_fields)


def _unique_fields(pairs: list[tuple[Any, JsonValue]]) -> dict[Any, JsonValue]:
    fields: dict[Any, JsonValue] = {}
    for name, value in pairs:
        if name in fields:
            raise _RepeatedFieldError(name)
        fields[name] = value
    return fields


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
