"""A rebuild whose sessions are ended has changed nothing; one waits while the log is away."""

from collections.abc import Callable, Sequence

import psycopg2
import pytest

from consumers.database.lost_session import lost_session
from consumers.errors import UnreachableError
from consumers.log.reader import LogRecord, TopicPartition
from consumers.rebuild.rebuild import build_into, compare, rebuild
from consumers.rebuild.verify import verify
from tests.reference_fold.histories import LoggedEvent
from tests.support.logs import memory_log
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.postgres import execute, one
from tests.support.rebuilding import run

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
        self._polls_left = at_poll
        self._interrupt = interrupt

    def poll(self, max_records: int, timeout_s: float) -> list[LogRecord]:
        """The next few records."""
        self._polls_left -= 1
        if self._polls_left == 0:
            self._interrupt()
        return super().poll(min(max_records, POLLED), timeout_s)


def _build(reader: MemoryReader, url: str) -> object:
    return build_into(reader, url, "cua_all")


@pytest.mark.parametrize("command", [rebuild, compare, verify, _build])
def test_a_command_whose_sessions_are_ended_says_so_and_the_next_one_begins_again(
    migrated_url: str, log: MemoryLog, command: Callable[[MemoryReader, str], object]
) -> None:
    execute(migrated_url, "UPDATE cua.turn SET reward = 7")
    reader = InterruptedReader(log, 3, lambda: execute(migrated_url, END_OUR_SESSIONS))

    with pytest.raises(psycopg2.Error) as ended:
        command(reader, migrated_url)

    assert "run the same command again" in str(lost_session(ended.value))
    assert one(migrated_url, "SELECT min(reward) FROM cua.turn") == 7
    command(MemoryReader(log), migrated_url)
    assert run(log, migrated_url).different == ([] if command is rebuild else ["turn"])
    assert one(migrated_url, SCHEMAS) == f"cua{' cua_all' * (command is _build)} cua_ops"
    assert verify(MemoryReader(log), migrated_url).equal


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


class LeavingReader(MemoryReader):
    """Goes away at the end of its first reading; the next questions have no answer."""

    def __init__(self, log: MemoryLog, questions_away: int) -> None:
        super().__init__(log)
        self._questions_away = questions_away
        self._has_read = False

    def poll(self, max_records: int, timeout_s: float) -> list[LogRecord]:
        """All of it."""
        self._has_read = True
        return super().poll(max_records, timeout_s)

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """UnreachableError after the first reading."""
        if self._has_read and self._questions_away > 0:
            self._questions_away -= 1
            message = "Kafka did not answer"
            raise UnreachableError(message)
        return super().end_offsets(partitions)


def test_a_rebuild_waits_for_a_log_that_goes_away_between_two_readings(
    migrated_url: str, events: list[LoggedEvent], caplog: pytest.LogCaptureFixture
) -> None:
    log = memory_log(events)
    log.kind = "kafka"
    report = rebuild(LeavingReader(log, questions_away=2), migrated_url)
    assert report.was_empty
    assert caplog.messages.count("Kafka did not answer; retrying until it works") == 1
    assert verify(MemoryReader(log), migrated_url).equal


def test_a_local_log_that_cannot_be_read_any_more_ends_it(
    migrated_url: str, events: list[LoggedEvent]
) -> None:
    with pytest.raises(UnreachableError, match="did not answer"):
        rebuild(LeavingReader(memory_log(events), questions_away=1), migrated_url)
