"""Tables that have more than the configured log: nothing takes their place unasked."""

from collections.abc import Callable

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


def test_a_log_that_was_restored_from_an_older_state_replaces_tables_only_when_told_to(
    migrated_url: str, events: list[LoggedEvent]
) -> None:
    project(memory_log(events), migrated_url)
    before = verify(MemoryReader(memory_log(events)), migrated_url)
    restored = memory_log(events[: len(events) // 2])

    looks: list[Callable[[], object]] = [
        lambda: project(restored, migrated_url),
        lambda: verify(MemoryReader(restored), migrated_url),
        lambda: compare(MemoryReader(restored), migrated_url),
        lambda: rebuild(MemoryReader(restored), migrated_url),
        lambda: read_status(MemoryReader(restored), migrated_url),
    ]
    for look in looks:
        with pytest.raises(MismatchError, match="`cua-project rebuild --from-shorter-log`"):
            look()
    with pytest.raises(MismatchError, match="which this log does not have"):
        rebuild(MemoryReader(MemoryLog()), migrated_url, from_shorter_log=True)
    assert verify(MemoryReader(memory_log(events)), migrated_url) == before

    result = rebuild(MemoryReader(restored), migrated_url, from_shorter_log=True)

    assert (result.swapped, result.events) == (True, len(events) // 2)
    memory_log(events[len(events) // 2 :], restored)
    project(restored, migrated_url)
    assert verify(MemoryReader(restored), migrated_url).tables == before.tables
