"""What a run left behind, as hashes: events and rows without ids and times, and weights."""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg2

from schemas.installation import read_installation
from tests.support.reading import read_all

Facts = dict[str, list[dict[str, str]]]
"""Kind (an event's type, a table's name) -> the fields of each, by path."""
ENVELOPE = ("id", "time", "source", "subject", "trainingid", "epoch", "sequence")
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
THROTTLED = ("progressed", "heartbeat")
"""Events whose number depends on the clock."""
BOOKKEEPING = ("projection", "reader_position", "stream_position", "unapplied_record")
"""Tables of the projector's own, which count those events, too."""
THROTTLED_COLUMNS = frozenset(
    {
        *("sequence", "last_heartbeat", "current_task_index", "avg_turn_time"),
        *("estimated_total_time", "estimated_remaining_time", "current_phase"),
    }
)
"""Columns that follow from them."""


def events_of(home: Path) -> Facts:
    """Every event of the home's log."""
    facts: Facts = defaultdict(list)
    for record in read_all(read_installation({"CUA_HOME": str(home)})):
        event = json.loads(record.value)
        if any(word in event["type"] for word in THROTTLED):
            continue
        fields = {key: value for key, value in event.items() if key not in ENVELOPE}
        facts[event["type"]].append(dict(_flat(fields, "", str(home))))
    return facts


def rows_of(url: str, home: Path) -> Facts:
    """Every row of the tables in `cua`."""
    facts: Facts = {}
    with psycopg2.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'cua'"
            " AND table_type = 'BASE TABLE' ORDER BY 1"
        )
        for name in sorted({name for (name,) in cursor.fetchall()} - {*BOOKKEEPING}):
            cursor.execute(f'SELECT to_jsonb(t) FROM cua."{name}" t')  # a table's name
            rows = [
                {key: value for key, value in row.items() if key not in THROTTLED_COLUMNS}
                for (row,) in cursor
            ]
            facts[f"table {name}"] = [dict(_flat(row, "", str(home))) for row in rows]
    return facts


def weights_of(home: Path) -> dict[str, str]:
    """File -> sha256, of every file of weights that the home's trainings saved."""
    folders = [home / "runs", home / "sql-demo"]
    return {
        str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in folders
        for path in sorted(folder.rglob("*.safetensors"))
    }


def volatile_fields(runs: Sequence[Facts]) -> dict[str, list[str]]:
    """Kind -> paths whose values differ between runs of the same code."""
    first = runs[0]
    return {
        kind: paths
        for kind in sorted(first)
        if (
            paths := [
                path
                for path in sorted({path for fields in first[kind] for path in fields})
                if len({_values(run.get(kind, []), path) for run in runs}) > 1
            ]
        )
    }


def digest(facts: Facts, volatile: dict[str, list[str]]) -> dict[str, str]:
    """Kind -> how many there are and a hash of what does not vary."""
    found = {}
    for kind, items in sorted(facts.items()):
        left_out = {*volatile.get(kind, [])}
        kept = sorted(
            json.dumps(
                [(path, value) for path, value in sorted(item.items()) if path not in left_out]
            )
            for item in items
        )
        found[kind] = f"{len(kept)} {hashlib.sha256(json.dumps(kept).encode()).hexdigest()[:16]}"
    return found


def _values(items: Iterable[dict[str, str]], path: str) -> tuple[str, ...]:
    return tuple(sorted(item.get(path, "") for item in items))


def _flat(value: Any, path: str, home: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}", home)
        return
    text = json.dumps(value, sort_keys=True).replace(home, "HOME")
    text = text.replace(str(Path(home).parent), "FOLDER")
    yield path, UUID.sub("#", text)
