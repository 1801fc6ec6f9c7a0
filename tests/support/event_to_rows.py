"""given / when / then for the projection: events go into a real log, rows come out of PostgreSQL.

`then` names every row that the event under test inserted or changed, and nothing else may differ.
It then applies every record a second time, and rebuilds the tables from the log: neither may change
a row.
"""

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import psycopg2
from click.testing import CliRunner

from consumers.cli import cli
from consumers.log.open import open_reader
from consumers.projection.loop import ProjectionLoop
from schemas.base import Payload
from schemas.ids import uuid7
from schemas.installation import read_installation
from schemas.wire import encode
from tests.reference_fold.reference import TABLES
from tests.reference_fold.writers import LoggedEvent
from tests.support.example_run import TRAINING
from tests.support.logs import write_local_log

NOW = "2026-03-01T12:00:00+00:00"
"""Time of the event under test, as rows show it; the events before it have earlier times."""
Rows = dict[tuple[str, str], dict[str, Any]]
"""(table, id) -> the row's columns as JSON."""


class Inserted(NamedTuple):
    """A new row with all columns that are not NULL; the id may be left out."""

    table: str
    columns: dict[str, Any]


class Changed(NamedTuple):
    """A row that was there: the columns that have another value now."""

    table: str
    id: str
    columns: dict[str, Any]


Row = Inserted | Changed
StatusChange = Callable[[str, str, int], Inserted]
"""(event type, stream, sequence) -> the row of status_history."""


def inserted(table: str, **columns: Any) -> Inserted:
    """A row that the event makes."""
    return Inserted(table, columns)


def changed(table: str, id: str, **columns: Any) -> Changed:  # noqa: A002  # the column's name
    """A row that the event changes."""
    return Changed(table, id, columns)


def status_changed(
    entity: str, entity_id: str, old: str | None, new: str, *, percent: float | None = None
) -> StatusChange:
    """The row of status_history for a change made by the event under test.

    The event's type, stream and sequence are filled in by `then`.
    """

    def row(event_type: str, subject: str, sequence: int) -> Inserted:
        columns = {
            "entity_type": entity,
            "entity_id": entity_id,
            "old_status": old,
            "new_status": new,
            "progress_percent": percent,
            "metadata_json": {"type": event_type},
            "changed_at": NOW,
            "created_at": NOW,
            "stream": subject,
            "epoch": 1,
            "sequence": sequence,
        }
        return Inserted(
            "status_history", {name: value for name, value in columns.items() if value is not None}
        )

    return row


@dataclass
class EventToRows:
    """One case: `given` any number of times, then `when` once, then `then` once."""

    url: str
    """Of an empty, migrated database."""
    history: list[tuple[str, Payload]] = field(default_factory=list)
    _event: tuple[str, Payload] | None = None

    def given(self, subject: str, *payloads: Payload) -> "EventToRows":
        """Events of one stream that come before."""
        self.history += [(subject, payload) for payload in payloads]
        return self

    def when(self, subject: str, payload: Payload) -> "EventToRows":
        """The event under test."""
        self._event = (subject, payload)
        return self

    def then(self, *expected: Row | StatusChange) -> None:
        """What the event does to the tables: these rows, and no others."""
        assert self._event is not None, "when() comes before then()"
        subject, payload = self._event
        sequence = 1 + sum(subject == earlier for earlier, _ in self.history)
        rows = [
            item(payload.TYPE, subject, sequence) if callable(item) else item for item in expected
        ]
        records = _records([*self.history, self._event])
        self._append_and_project(records[:-1])
        before = self._rows()
        self._append_and_project(records[-1:])
        after = self._rows()
        lines = _differences(_effect(before, after, rows), rows)
        assert not lines, "\n".join(lines)

        self._append_and_project(records)
        assert self._rows() == after, "the same records again changed a row"
        status = self._report("status", "--json")
        assert (status["duplicates"], status["parked"]) == (len(records), 0)
        rebuilt = self._report("rebuild", "--json")
        assert (rebuilt["equal"], rebuilt["changed"]) == (True, 0)
        assert self._rows() == after, "the rebuilt tables have other rows"

    def _append_and_project(self, records: list[LoggedEvent]) -> None:
        installation = read_installation(os.environ)
        write_local_log(installation.local_log_path, records)
        reader = open_reader(installation)
        try:
            ProjectionLoop(reader, self.url).run_once()
        finally:
            reader.close()

    def _rows(self) -> Rows:
        found: Rows = {}
        connection = psycopg2.connect(self.url.replace("postgresql+psycopg2", "postgresql"))
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET timezone TO UTC")
                for table in TABLES:
                    cursor.execute(f'SELECT id::text, to_jsonb(t) FROM cua."{table}" t')
                    found |= {(table, key): row for key, row in cursor.fetchall()}
        finally:
            connection.close()
        return found

    def _report(self, *arguments: str) -> Any:
        result = CliRunner().invoke(
            cli, arguments, env={"DATABASE_URL": self.url}, catch_exceptions=False
        )
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


def _records(events: list[tuple[str, Payload]]) -> list[LoggedEvent]:
    """The events as the log has them: numbered per stream, a second apart, the last one at NOW."""
    end = datetime.fromisoformat(NOW).astimezone(UTC)
    sequences: Counter[str] = Counter()
    records = []
    for number, (subject, payload) in enumerate(events, start=1):
        sequences[subject] += 1
        time = end - timedelta(seconds=len(events) - number)
        value = encode(
            payload,
            id=uuid7(time),
            source="//host/1/20260301T115900-00c0ffee",
            time=time,
            subject=subject,
            epoch=1,
            sequence=sequences[subject],
            training_id=UUID(TRAINING),
        )
        records.append(LoggedEvent(subject, value))
    return records


def _effect(before: Rows, after: Rows, expected: list[Row]) -> list[Row]:
    """What the event did; without the ids of new rows in tables where the case names none."""
    with_ids = {
        item.table for item in expected if isinstance(item, Inserted) and "id" in item.columns
    }
    assert before.keys() <= after.keys(), "a row disappeared"
    effect: list[Row] = []
    for (table, key), row in after.items():
        old = before.get((table, key))
        if old is None:
            columns = {name: value for name, value in row.items() if value is not None}
            if table not in with_ids:
                del columns["id"]
            effect.append(Inserted(table, columns))
        elif row != old:
            columns = {name: value for name, value in row.items() if value != old[name]}
            effect.append(Changed(table, key, columns))
    return effect


def _differences(found: list[Row], expected: list[Row]) -> list[str]:
    """A line per row that is only on one side, for a test that fails."""
    lines = [f"not in the tables: {row}" for row in expected if row not in found]
    lines += [f"not in the case: {row}" for row in found if row not in expected]
    if len(found) != len(expected):
        lines.append(f"the tables have {len(found)} rows, the case has {len(expected)}")
    return lines
