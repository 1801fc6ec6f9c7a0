"""`${a.b}` in a file of settings: each stands for the value of another field (OmegaConf's)."""

import re
from typing import Any, Final

from producer.errors import UsageError

WHOLE: Final = re.compile(r"\$\{([\w.]+)\}")
ANY: Final = re.compile(r"\$\{([^${}]*)\}")
Section = dict[str, Any]


def flattened(fields: Section, prefix: str = "") -> dict[str, Any]:
    """Dotted name -> value. A section without fields is a value."""
    found: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, dict) and value:
            found |= flattened(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found


def resolved(fields: Section, file: str) -> Section:
    """The fields without interpolations. UsageError names file and field of one that fails."""
    flat = flattened(fields)

    def value_of(name: str, above: tuple[str, ...]) -> Any:  # whatever a file holds
        return _resolve(flat[name], name, above)

    def _resolve(value: Any, name: str, above: tuple[str, ...]) -> Any:
        if isinstance(value, list):
            return [_resolve(item, name, above) for item in value]
        if not isinstance(value, str):
            return value
        whole = WHOLE.fullmatch(value.strip())
        if whole is not None:
            return _target(whole[1], name, above)
        return ANY.sub(lambda match: str(_target(match[1], name, above)), value)

    def _target(target: str, name: str, above: tuple[str, ...]) -> Any:
        if name in above:
            message = f"--config: {file}: {name}: refers to itself, by {' -> '.join(above)}"
            raise UsageError(message)
        if target in flat:
            return value_of(target, (*above, name))
        inner = {item: None for item in flat if item.startswith(f"{target}.")}
        if inner:
            begin = len(target) + 1
            return _nested({item[begin:]: value_of(item, (*above, name)) for item in inner})
        message = f"--config: {file}: {name}: there is no field {target!r} to take the value of"
        raise UsageError(message)

    return _nested({name: value_of(name, ()) for name in flat})


def _nested(flat: dict[str, Any]) -> Section:
    whole: Section = {}
    for name, value in flat.items():
        *sections, last = name.split(".")
        section = whole
        for item in sections:
            section = section.setdefault(item, {})
        section[last] = value
    return whole
