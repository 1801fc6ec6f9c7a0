"""Parses configuration files in JSON, TOML or YAML."""

import contextlib
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from producer.bounded_text import is_deeper
from producer.errors import UsageError
from producer.json_text import MAX_DEPTH, TOO_DEEP, RefusedJsonError, read_json

YAML_ENDINGS: Final = (".yaml", ".yml")


def parse_file(path: Path) -> dict[str, Any]:
    """Parse a file: JSON, unless it is named *.toml, *.yaml or *.yml.

    A name without a suffix, such as /dev/stdin, is decided by content. Raises UsageError for a file
    that cannot be read, for a repeated field and for anything other than an object of fields.
    """
    parse = _PARSERS.get(path.suffix.lower(), read_json)
    try:
        text = path.read_text(encoding="utf-8-sig")  # Windows editors write a byte order mark
        fields = parse(text)
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}"
        raise UsageError(message) from None
    except UnicodeDecodeError:
        message = f"{path} is not a text file in UTF-8"
        raise UsageError(message) from None
    except RecursionError:
        message = f"{path}: {TOO_DEEP}"
        raise UsageError(message) from None
    except RefusedJsonError as error:
        message = f"{path}: {error}"
        raise UsageError(message) from None
    except json.JSONDecodeError as error:
        is_named = path.suffix in {".json", ""}
        hint = "" if is_named else "; name a TOML file *.toml, a YAML file *.yaml"
        message = f"{path} is not valid JSON, {place(error)}{hint}"
        raise UsageError(message) from None
    except ValueError as error:
        kind = "TOML" if parse is tomllib.loads else "YAML"
        message = f"{path} is not valid {kind}: {error}"
        raise UsageError(message) from None
    if not isinstance(fields, dict) or not all(isinstance(name, str) for name in fields):
        message = f'{path} must hold an object of fields, such as {{"num_steps": 20}}'
        raise UsageError(message)
    if is_deeper(fields, MAX_DEPTH):
        message = f"{path}: {TOO_DEEP}"
        raise UsageError(message)
    return fields


def place(error: json.JSONDecodeError) -> str:
    """The position and reason of a JSON error."""
    return f"line {error.lineno} column {error.colno}: {error.msg[:1].lower()}{error.msg[1:]}"


def _parse_yaml(text: str) -> object:
    """Parse YAML like OmegaConf: 1e-5 is a number, a date is text. Raises ValueError."""
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


def _parse_any(text: str) -> object:
    """Parse a text whose name does not tell its format."""
    if text.lstrip().startswith("{"):
        return read_json(text)
    with contextlib.suppress(tomllib.TOMLDecodeError):
        return tomllib.loads(text)
    return _parse_yaml(text)


_PARSERS: dict[str, Callable[[str], object]] = {
    "": _parse_any,
    ".toml": tomllib.loads,
    **dict.fromkeys(YAML_ENDINGS, _parse_yaml),
}
