"""JSON Schemas of payloads: one file in `schemas/json` for every type and version ever written.

The files are part of the package, for readers of the log in any language. They are made from the
payload classes (`make docs`) and never removed: a version that only an upcaster still knows keeps
its file.
"""

import json
from functools import lru_cache
from pathlib import Path

from pydantic import JsonValue

FOLDER = Path(__file__).parent / "json"
JsonSchema = dict[str, JsonValue]


def schema_path(type_: str, version: int, folder: Path = FOLDER) -> Path:
    """Where the schema of a type and version is: `json/cua.step.created/1.json`."""
    return folder / type_ / f"{version}.json"


def read_schema(type_: str, version: int, folder: Path = FOLDER) -> JsonSchema:
    """The JSON Schema of a payload. FileNotFoundError for a type or version that has none."""
    schema: JsonSchema = json.loads(schema_path(type_, version, folder).read_text(encoding="utf-8"))
    return schema


@lru_cache(maxsize=4)
def schema_versions(folder: Path = FOLDER) -> dict[str, tuple[int, ...]]:
    """Every type with its versions, oldest first."""
    return {
        child.name: tuple(sorted(int(path.stem) for path in child.glob("*.json")))
        for child in sorted(folder.iterdir())
        if child.is_dir()
    }
