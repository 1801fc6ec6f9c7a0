"""Rebuild and verify wait until the database and the log are back, and go on where they were."""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psycopg2
import pytest

from consumers.database.migrate import migrate
from consumers.errors import CuaProjectError, SchemaBusyError, UnreachableError
from consumers.log.reader import LogRecord
from consumers.rebuild import outages
from consumers.rebuild.outages import MOST, wait_out_outages
from consumers.rebuild.rebuild import UnfinishedRebuild, build_into, compare, rebuild
from consumers.rebuild.verify import verify
from tests.reference_fold.histories import LoggedEvent
from tests.support.logs import memory_log
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.postgres import execute, one, running_postgres
from tests.support.rebuilding import project

pytestmark = pytest.mark.services
SCHEMAS = (
    "SELECT string_agg(nspname, ' ' ORDER BY nspname) FROM pg_namespace WHERE nspname ~ '^cua'"
)
END_OUR_SESSIONS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND"
    " pid <> pg_backend_pid()"
)
POLLED = 20
"""Records a poll, so that a short log has many batches."""


class InterruptedReader(MemoryReader):
    """Calls `interrupt` before one of its polls."""

    def __init__(self, log: MemoryLog, at_poll: int, interrupt: Callable[[], None]) -> None:
        super().__init__(log)
        self.num_polled = 0
        self._polls_left = at_poll
        self._interrupt = interrupt

    def poll(self, max_records: int, timeout_s: float) -> list[LogRecord]:
        """The next few records."""
        self._polls_left -= 1
        if self._polls_left == 0:
            self._interrupt()
        records = super().poll(min(max_records, POLLED), timeout_s)
        self.num_polled += len(records)
        return records


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outages, "PAUSE_S", 0.01)


def test_a_rebuild_goes_on_with_what_it_had_replayed(migrated_url: str, log: MemoryLog) -> None:
    execute(migrated_url, "UPDATE cua.turn SET reward = 7")
    reader = InterruptedReader(log, 4, lambda: execute(migrated_url, END_OUR_SESSIONS))
    unfinished = UnfinishedRebuild()

    report = wait_out_outages(
        lambda: rebuild(reader, migrated_url, unfinished=unfinished), migrated_url, reader
    )

    assert report.different == ["turn"]
    # What was in flight is read again, and nothing that was committed.
    assert len(log.records) < reader.num_polled <= len(log.records) + 3 * POLLED
    assert report.events == len(log.records)
    assert one(migrated_url, SCHEMAS) == "cua cua_ops"
    assert verify(MemoryReader(log), migrated_url).equal


def _verify(reader: MemoryReader, url: str) -> bool:
    return verify(reader, url).equal


def _compare(reader: MemoryReader, url: str) -> bool:
    return compare(reader, url).equal


def _build(reader: MemoryReader, url: str) -> bool:
    return build_into(reader, url, "cua_all").events > 0


@pytest.mark.parametrize("command", [_verify, _compare, _build])
def test_whoever_lost_the_snapshot_begins_again(
    migrated_url: str, log: MemoryLog, command: Callable[[MemoryReader, str], bool]
) -> None:
    reader = InterruptedReader(log, 3, lambda: execute(migrated_url, END_OUR_SESSIONS))

    assert wait_out_outages(lambda: command(reader, migrated_url), migrated_url, reader)

    built = " cua_all" if command is _build else ""
    assert one(migrated_url, SCHEMAS) == f"cua{built} cua_ops"


def test_a_database_that_is_started_again_is_waited_for(
    tmp_path: Path, events: list[LoggedEvent], caplog: pytest.LogCaptureFixture
) -> None:
    is_over = threading.Event()

    def serve_again(port: int) -> None:
        # The server ends with the thread that started it.
        with running_postgres(tmp_path, {}, port=port):
            is_over.wait(60)

    with ExitStack() as first:
        server = first.enter_context(running_postgres(tmp_path, {}))
        url = server.url()
        migrate(url)
        log = memory_log(events)
        project(log, url)
        again = threading.Thread(target=serve_again, args=(server.port,))

        def restart() -> None:
            first.close()
            threading.Timer(0.5, again.start).start()

        reader = InterruptedReader(log, 3, restart)
        unfinished = UnfinishedRebuild()
        report = wait_out_outages(lambda: rebuild(reader, url, unfinished=unfinished), url, reader)

    is_over.set()
    again.join()
    assert report.equal
    assert any("the database ended our session" in message for message in caplog.messages)
    assert any("cannot connect" in message for message in caplog.messages)


class AwayReader(MemoryReader):
    """Kafka is away for some polls, longer than a log may be silent."""

    polls_away = 200

    @property
    def problem(self) -> str | None:  # type: ignore[override]  # of another log
        """As Kafka's."""
        return "Kafka is away" if self.polls_away > 0 else None

    def poll(self, max_records: int, timeout_s: float) -> list[LogRecord]:
        """Nothing while it is away."""
        self.polls_away -= 1
        return [] if self.polls_away > 0 else super().poll(max_records, timeout_s)


def test_a_replay_waits_without_end_for_a_log_that_is_away(
    migrated_url: str, log: MemoryLog, caplog: pytest.LogCaptureFixture
) -> None:
    assert verify(AwayReader(log), migrated_url).equal
    assert caplog.messages.count("Kafka is away; retrying until it works") == 1


def failing(*errors: Exception) -> Callable[[], str]:
    left = list(errors)

    def attempt() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return attempt


LOST = psycopg2.OperationalError("server closed the connection unexpectedly")


@pytest.mark.parametrize(
    "error",
    [
        SchemaBusyError("another rebuild"),
        UnreachableError("wrong password", is_refusal=True),
        CuaProjectError("a view is in the way"),
        psycopg2.ProgrammingError("no such table"),
    ],
)
def test_what_waiting_does_not_mend_is_raised_at_once(
    migrated_url: str, log: MemoryLog, error: Exception
) -> None:
    with pytest.raises(type(error)):
        wait_out_outages(failing(error), migrated_url, MemoryReader(log))


def test_the_locks_of_our_own_lost_session_are_waited_for(
    migrated_url: str, log: MemoryLog
) -> None:
    attempt = failing(LOST, SchemaBusyError("our lost session"), LOST)
    assert wait_out_outages(attempt, migrated_url, MemoryReader(log)) == "done"


def test_a_session_that_is_ended_again_and_again_is_an_error(
    migrated_url: str, log: MemoryLog
) -> None:
    with pytest.raises(psycopg2.OperationalError):
        wait_out_outages(failing(*[LOST] * (MOST + 1)), migrated_url, MemoryReader(log))
