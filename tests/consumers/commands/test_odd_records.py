"""What a record may hold at worst: it is parked, everything else is projected, and all is shown."""

import json
import os
import sys
from random import Random
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from consumers.cli import main
from consumers.database.connection import connected
from consumers.database.location import database_engine
from consumers.tables import StreamState
from producer.log.local import LocalLog
from producer.log.writer import Record
from schemas import ids
from schemas.installation import read_installation
from tests.reference_fold.histories import Shape, history
from tests.support.logs import write_local_log

pytestmark = pytest.mark.services
SMALL = Shape(steps=1, groups=1, group_size=1, turns=1, has_trouble=False)
LONG = "".join(map(chr, Random(1).choices(range(0x100, 0xD000), k=4_000)))
"""An index row of it is too large."""
DEEP = '{"a":' * 100_000 + "1" + "}" * 100_000
KEYS = ("\x00", LONG, "é", "", "training/é")
"""Of no stream."""

ENVELOPES: dict[str, dict[str, Any]] = {
    "a time before the year 1": {"time": "0001-01-01T00:00:00+14:00"},
    "a time after the year 9999": {"time": "9999-12-31T23:59:59-14:00"},
    "an epoch above int4": {"epoch": 2**31},
    "a sequence above int8": {"sequence": 2**63},
    "a claim that continues a point above int4": {
        "epoch": 2,
        "sequence": 1,
        "continues": "1/99999999999",
    },
    "a source with a NUL": {"source": "//a\x00"},
    "a source without end": {"source": LONG * 100},
    "a type with a NUL": {"type": "cua.\x00"},
    "a type without end": {"type": LONG * 100},
    "a schema version of 10,000 digits": {"dataschema": "urn:cua:x:" + "9" * 10_000},
    "another training": {"trainingid": str(ids.training_id("elsewhere"))},
    "no data": {"data": None},
}
PAYLOADS: dict[str, dict[str, Any]] = {
    "a count above int4": {"total_steps": 2**31},
    "a seed above int8": {"recipe.seed": 2**63},
    "a count of 4,000 digits": {"total_steps": int("9" * 4_000)},
    "a run name without end": {"run_name": LONG},
    "a run name with a NUL": {"run_name": "a\x00b"},
}
VALUES: dict[str, bytes] = {
    "a tombstone": b"",
    "no UTF-8": b"\xff\xfe\x00",
    "an array": b"[]",
    "a lone surrogate": b'{"subject": "\\ud800"}',
    "objects in objects": DEEP.encode(),
    "a number of a million digits": b"9" * 1_000_000,
}
APPLIED: dict[str, dict[str, Any]] = {
    "the first moment": {"time": "0001-01-01T00:00:00Z"},
    "the last moment": {"time": "9999-12-31T23:59:59.999999Z"},
}


def odd_records() -> tuple[dict[str, Record], dict[str, Record]]:
    """(parked, applied): each the first record of a training of its own, by its name."""
    parked: dict[str, Record] = {}
    applied: dict[str, Record] = {}
    for number, name in enumerate([*ENVELOPES, *PAYLOADS, *VALUES, *APPLIED]):
        run_name = PAYLOADS.get(name, {}).get("run_name", f"odd-{number}")
        (first, *_) = history(run_name, number, SMALL)
        event = json.loads(first.value)
        event |= ENVELOPES.get(name, {}) | APPLIED.get(name, {})
        for field, value in PAYLOADS.get(name, {}).items():
            part = event["data"]["recipe"] if field.startswith("recipe.") else event["data"]
            part[field.removeprefix("recipe.")] = value
        value = VALUES.get(name, json.dumps(event).encode())
        (applied if name in APPLIED else parked)[name] = Record(
            "cua.training", first.subject, value
        )
    return parked, applied


def test_odd_records_are_parked_one_by_one_and_shown_everywhere(
    migrated_url: str, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    path = read_installation(os.environ).local_log_path
    whole = history("whole", 1, SMALL)
    parked, applied = odd_records()
    write_local_log(path, whole)
    log = LocalLog(path)
    for number, record in enumerate([*parked.values(), *applied.values()]):
        log.append([record])
        # Without a stream, too.
        log.append([record._replace(key=KEYS[number % len(KEYS)])])
    log.close()

    def call(*arguments: str) -> bytes:
        monkeypatch.setattr(sys, "argv", ["cua-project", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        output, errors = capsysbinary.readouterr()
        assert end.value.code == 0, (arguments, errors[-2_000:])
        return output

    report = json.loads(call("run", "--once", "--json"))

    assert report["events"] == len(whole) + len(applied)
    unapplied = json.loads(call("parked", "list", "--json"))
    streams = {item["stream"] for item in unapplied if not item["stream"].startswith("record/")}
    assert streams == {item.key for item in parked.values()}
    assert len(unapplied) == 2 * len(parked) + len(applied)
    # Every value, and every kind of key once.
    alone = [item for item in unapplied if item["stream"].startswith("record/")][: len(KEYS)]
    for item in [*(item for item in unapplied if item["stream"] in streams), *alone]:
        call("parked", "show", item["id"])
    for arguments in (
        ("parked", "list"), ("status",), ("status", "--json"), ("tail",), ("tail", "--json"),
        ("tail", "--format", "%k %v %T %s %d\\n"), ("parked", "retry"), ("verify", "--json"),
        ("rebuild", "--json"), ("run", "--once", "--json"),
    ):  # fmt: skip
        call(*arguments)
    assert json.loads(call("rebuild", "--check", "--json"))["equal"]


def test_times_at_the_edges_are_read_whatever_the_servers_time_zone(migrated_url: str) -> None:
    with connected(migrated_url, "test") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT current_database()")
        (name,) = cursor.fetchone() or ("",)
        cursor.execute(f"ALTER DATABASE \"{name}\" SET timezone = 'America/New_York'")
        cursor.execute(
            "INSERT INTO cua.stream_position (stream, epoch, sequence, source, ends, refused,"
            " statuses, parked_since, dropped, num_waiting, last_event_at, drops) VALUES"
            " ('training/a', 1, 1, '', '{}', '[]', '{}', '0001-01-01T00:00:00Z', false, 0,"
            " '9999-12-31T23:59:59Z', '{}')"
        )
        connection.commit()
    engine = database_engine(migrated_url)
    with Session(engine) as session:
        assert session.execute(text("SHOW timezone")).scalar() == "UTC"
        state = session.get(StreamState, "training/a")
        assert state is not None
        assert state.parked_since is not None
        assert (state.parked_since.year, state.parked_since.hour) == (1, 0)
    engine.dispose()
