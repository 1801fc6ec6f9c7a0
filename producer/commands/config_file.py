"""Reads a --config file: fields of the configuration as JSON, TOML or YAML, told by its ending."""

import json
import tomllib
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from producer.errors import UsageError
from producer.foreign_files.agent_peft import is_agent_peft, read_agent_peft

YAML_ENDINGS = (".yaml", ".yml")


class _RepeatedFieldError(ValueError):
    """A field stands in the file twice: one of them would be ignored."""


def read_config_file(path: Path) -> dict[str, Any]:
    """The file's fields. UsageError for what cannot be read, and for a field that is given twice.

    JSON unless the file is called *.toml, *.yaml or *.yml. An assignment of Agent-PEFT is read with
    the files that it imports.
    """
    fields = _read(path)
    return read_agent_peft(path, _read) if is_agent_peft(fields) else fields


def _read(path: Path) -> dict[str, Any]:
    parse = _PARSERS.get(path.suffix.lower(), _parse_json)
    try:
        text = path.read_text(encoding="utf-8-sig")  # editors on Windows begin with a mark
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
    """Where JSON is broken, and how."""
    return f"line {error.lineno} column {error.colno}: {error.msg[:1].lower()}{error.msg[1:]}"


def _parse_json(text: str) -> object:
    return json.loads(text, object_pairs_hook=_without_repetition)


def _without_repetition(pairs: list[tuple[Any, JsonValue]]) -> dict[Any, JsonValue]:
    fields: dict[Any, JsonValue] = {}
    for name, value in pairs:
        if name in fields:
            raise _RepeatedFieldError(name)
        fields[name] = value
    return fields


def _parse_yaml(text: str) -> object:
    """YAML of plain values. ValueError."""
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # PyYAML ships no types
        """Refuses a field that is given twice, and leaves dates as text."""

    def construct_mapping(loader: Loader, node: Any) -> dict[Hashable, Any]:
        loader.flatten_mapping(node)
        pairs = [
            (loader.construct_object(name, deep=True), loader.construct_object(value, deep=True))
            for name, value in node.value
        ]
        return _without_repetition(pairs)

    Loader.add_constructor("tag:yaml.org,2002:map", construct_mapping)
    Loader.add_constructor("tag:yaml.org,2002:timestamp", yaml.SafeLoader.construct_yaml_str)
    try:
        return yaml.load(text, Loader)  # noqa: S506  # a safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = "" if mark is None else f"line {mark.line + 1} column {mark.column + 1}: "
        message = f"{where}{error.problem}"
        raise ValueError(message) from None
    except (yaml.YAMLError, TypeError) as error:
        raise ValueError(str(error).splitlines()[0]) from None


_PARSERS: dict[str, Callable[[str], object]] = {
    ".toml": tomllib.loads,
    **dict.fromkeys(YAML_ENDINGS, _parse_yaml),
}
