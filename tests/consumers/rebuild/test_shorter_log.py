"""Tables that have more than the configured log: nothing takes their place unasked."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from consumers.errors import MismatchError
from consumers.rebuild.rebuild import compare, rebuild
from consumers.rebuild.verify import verify
from consumers.status import read_status
from tests.reference_fold.histories import LoggedEvent
from tests.support.logs import logged_events, memory_log
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.postgres import one
from tests.support.rebuilding import project

pytestmark = pytest.mark.services


@pytest.fixture
def events() -> list[LoggedEvent]:
    return logged_events("a")


def looks(log: MemoryLog, url: str) -> list[Callable[[], object]]:
    """What trusts the tables beside the log."""
    return [
        lambda: project(log, url),
        lambda: compare(MemoryReader(log), url),
        lambda: rebuild(MemoryReader(log), url),
        lambda: read_status(MemoryReader(log), url),
    ]


@pytest.mark.parametrize("name", ["", "another"])
def test_filled_tables_are_not_replaced_by_an_empty_log_of_another_name(
    migrated_url: str, events: list[LoggedEvent], name: str
) -> None:
    """A mistyped CUA_TOPIC_PREFIX, a deleted topic, KAFKA_BOOTSTRAP_SERVERS forgotten."""
    log = memory_log(events)
    project(log, migrated_url)
    before = verify(MemoryReader(log), migrated_url)

    for build in (rebuild, compare):
        with pytest.raises(MismatchError, match=r"log is empty; nothing was changed\. Look at"):
            build(MemoryReader(MemoryLog(name)), migrated_url)

    assert verify(MemoryReader(log), migrated_url) == before
    left = "SELECT count(*) FROM pg_namespace WHERE nspname ~ '^cua_' AND nspname <> 'cua_ops'"
    assert one(migrated_url, left) == 0


def test_tables_of_another_log_get_this_ones_rows_only_when_told_to(
    migrated_url: str, events: list[LoggedEvent]
) -> None:
    """A mistyped CUA_TOPIC_PREFIX or KAFKA_BOOTSTRAP_SERVERS that names somebody else's log."""
    ours, other = memory_log(events), memory_log(logged_events("b"), MemoryLog("another"))
    project(ours, migrated_url)
    before = verify(MemoryReader(ours), migrated_url)

    told = (
        r"from another log, memory:.* log is another:.*; nothing was changed.*`cua-project rebuild"
    )
    for build in (rebuild, compare):
        with pytest.raises(MismatchError, match=f"{told} --adopt-log`"):
            build(MemoryReader(other), migrated_url)
    with pytest.raises(MismatchError, match=f"{told} --adopt-log`"):
        rebuild(MemoryReader(other), migrated_url, from_shorter_log=True)
    assert verify(MemoryReader(ours), migrated_url) == before

    result = rebuild(MemoryReader(other), migrated_url, adopt_log=True)

    assert (result.equal, result.was_empty, result.events) == (False, False, len(other.records))
    assert verify(MemoryReader(other), migrated_url).equal
    assert rebuild(MemoryReader(other), migrated_url, adopt_log=True).equal


def test_an_empty_log_is_not_adopted(migrated_url: str, events: list[LoggedEvent]) -> None:
    project(memory_log(events), migrated_url)

    with pytest.raises(MismatchError, match="the configured log is empty; nothing was changed"):
        rebuild(MemoryReader(MemoryLog("another")), migrated_url, adopt_log=True)


def test_a_log_that_was_restored_from_an_older_state_replaces_tables_only_when_told_to(
    migrated_url: str, events: list[LoggedEvent]
) -> None:
    project(memory_log(events), migrated_url)
    before = verify(MemoryReader(memory_log(events)), migrated_url)
    restored = memory_log(events[: len(events) // 2])

    def look_closer() -> object:
        return verify(MemoryReader(restored), migrated_url)

    for look in (*looks(restored, migrated_url), look_closer):
        with pytest.raises(MismatchError, match="`cua-project rebuild --from-shorter-log`"):
            look()
    with pytest.raises(MismatchError, match="which this log does not have"):
        rebuild(MemoryReader(MemoryLog()), migrated_url, from_shorter_log=True)
    assert verify(MemoryReader(memory_log(events)), migrated_url) == before

    result = rebuild(MemoryReader(restored), migrated_url, from_shorter_log=True)

    assert (result.equal, result.events) == (False, len(events) // 2)
    memory_log(events[len(events) // 2 :], restored)
    project(restored, migrated_url)
    assert verify(MemoryReader(restored), migrated_url).tables == before.tables


def grown(events: list[LoggedEvent], longer_than: MemoryLog) -> MemoryLog:
    """Restored from the older state `events`, and then others were added."""
    log = memory_log(events)
    log.began += timedelta(hours=1)
    ends = MemoryReader(longer_than).end_offsets(MemoryReader(longer_than).partitions())
    for name in "bcdefgh":
        memory_log(logged_events(name), log)
        reader = MemoryReader(log)
        if all(reader.end_offsets([at])[at] > end for at, end in ends.items()):
            return log
    raise AssertionError


def test_a_restored_log_that_has_grown_past_the_tables_is_not_continued_in_silence(
    migrated_url: str, events: list[LoggedEvent]
) -> None:
    """Every offset that the tables need is there, and what they have read of it was another."""
    log = memory_log(events)
    project(log, migrated_url)
    before = verify(MemoryReader(log), migrated_url)
    restored = grown(events[: len(events) // 2], log)

    for look in looks(restored, migrated_url):
        with pytest.raises(MismatchError, match=r"appended at .*, but .*--from-shorter-log"):
            look()
    found = verify(MemoryReader(restored), migrated_url)
    assert not found.equal
    assert found.differences
    assert "appended at 2026-03-01T00:00:00." in (found.log_problem or "")
    assert verify(MemoryReader(log), migrated_url) == before

    result = rebuild(MemoryReader(restored), migrated_url, from_shorter_log=True)

    assert not result.equal
    assert verify(MemoryReader(restored), migrated_url).equal
    assert verify(MemoryReader(restored), migrated_url).log_problem is None
    project(restored, migrated_url)


def test_equal_rows_of_other_records_are_not_called_equal(
    migrated_url: str, events: list[LoggedEvent]
) -> None:
    log = memory_log(events)
    project(log, migrated_url)
    again = MemoryLog()
    again.began += timedelta(hours=1)

    found = verify(MemoryReader(memory_log(events, again)), migrated_url)

    assert (found.equal, found.differences) == (False, [])
    assert "the log was restored from an older state" in (found.log_problem or "")


def test_tables_that_are_behind_the_older_state_go_on_with_what_was_added_to_it(
    migrated_url: str, events: list[LoggedEvent]
) -> None:
    """Whatever was lost, the tables had not read it."""
    log = memory_log(events[: len(events) // 2])
    project(log, migrated_url)
    log.began += timedelta(hours=1)

    project(memory_log(logged_events("b"), log), migrated_url)

    assert verify(MemoryReader(log), migrated_url).equal
