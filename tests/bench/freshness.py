"""How old a fact is when the tables show it.

A projector in its own process, 1,000 events a second into a local log.

Run: `python -m tests.bench.freshness [--json]`. Age is from the return of the append to the first
look at the tables that shows it.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

from consumers.database.connection import connected
from consumers.database.migrate import migrate
from producer.log.local import LocalLog
from producer.log.writer import Record
from schemas.catalogue import topic_of
from schemas.installation import read_installation
from tests.bench.projection import database, recorded_run

EVENTS_PER_S = 1_000
AT_ONCE = 10
"""Events in one append: what an emitter's group commit would gather in ten milliseconds."""
SECONDS = 15
LOOK_EVERY_S = 0.005
DEADLINE_S = 60


def run() -> dict[str, float]:
    """Ages in milliseconds."""
    said = recorded_run(1)[: EVENTS_PER_S * SECONDS]
    with tempfile.TemporaryDirectory() as folder, database() as (url, _):
        environment = os.environ | {"CUA_HOME": folder, "DATABASE_URL": url}
        migrate(url)
        path = Path(read_installation(environment).local_log_path)
        appended: list[float] = []
        shown: list[tuple[float, int]] = []
        projector = subprocess.Popen(
            [sys.executable, "-c", "from consumers.cli import main; main()", "run"], env=environment
        )
        watcher = threading.Thread(target=_watch, args=(url, len(said), shown))
        watcher.start()
        try:
            with closing(LocalLog(path)) as log:
                _append(
                    log,
                    [
                        Record(topic_of(item.subject, "cua."), item.subject, item.value)
                        for item in said
                    ],
                    appended,
                )
            watcher.join(DEADLINE_S)
        finally:
            projector.terminate()
            projector.wait()
    return _ages(appended, shown)


def _append(log: LocalLog, records: list[Record], appended: list[float]) -> None:
    """At a steady pace, from two seconds after the projector's start on."""
    due = time.monotonic() + 2
    for start in range(0, len(records), AT_ONCE):
        time.sleep(max(0.0, due - time.monotonic()))
        due += AT_ONCE / EVENTS_PER_S
        log.append(records[start : start + AT_ONCE])
        appended += [time.monotonic()] * AT_ONCE


def _watch(url: str, count: int, shown: list[tuple[float, int]]) -> None:
    """How many events the tables show, over time."""
    deadline = time.monotonic() + DEADLINE_S
    with connected(url, "bench") as connection, connection.cursor() as cursor:
        connection.autocommit = True
        while time.monotonic() < deadline:
            cursor.execute("SELECT coalesce(sum(num_events), 0) FROM cua.reader_position")
            row = cursor.fetchone()
            assert row is not None
            shown.append((time.monotonic(), int(row[0])))
            if shown[-1][1] >= count:
                return
            time.sleep(LOOK_EVERY_S)


def _ages(appended: list[float], shown: list[tuple[float, int]]) -> dict[str, float]:
    ages, looks = [], iter(shown)
    at, number = next(looks)
    for index, when in enumerate(appended):
        while number <= index:
            at, number = next(looks)
        ages.append((at - when) * 1e3)
    ages.sort()
    return {
        "events": len(ages),
        "p50_ms": ages[len(ages) // 2],
        "p95_ms": ages[len(ages) * 95 // 100],
        "max_ms": ages[-1],
    }


def main() -> None:
    """One line on stdout; --json: one object."""
    ages = run()
    if "--json" in sys.argv:
        sys.stdout.write(json.dumps(ages) + "\n")
        return
    figures = "  ".join(f"{name} {value:.0f}" for name, value in ages.items())
    sys.stdout.write(f"freshness at {EVENTS_PER_S} events/s: {figures}\n")


if __name__ == "__main__":
    main()
