"""What `cua-project run` says while it works, and stores with its lease for status."""

import logging
import threading

import pytest

from consumers.errors import UnreachableError
from consumers.log.reader import LogRecord
from consumers.projection.loop import ProjectionLoop
from consumers.status import read_status
from tests.consumers.projection.test_projection import DEADLINE_S
from tests.support.eventually import eventually
from tests.support.logs import logged_events, memory_log
from tests.support.memory_log import MemoryReader
from tests.support.postgres import one

pytestmark = pytest.mark.services


def test_a_projector_says_how_far_behind_it_is_and_when_it_has_caught_up(
    migrated_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    log = memory_log(logged_events("a"))
    stop = threading.Event()
    worker = threading.Thread(
        target=ProjectionLoop(MemoryReader(log), migrated_url).run_forever, args=(stop,)
    )
    worker.start()
    try:
        eventually(lambda: one(migrated_url, "SELECT caught_up_at FROM cua_ops.lease") is not None)
        assert one(
            migrated_url,
            "SELECT caught_up_at >= acquired_at AND last_error IS NULL FROM cua_ops.lease",
        )
    finally:
        stop.set()
        worker.join(DEADLINE_S)
    num_records = len(log.records)
    assert caplog.messages[0] == (
        f"projecting the local log into the tables, {num_records:,} records behind"
    )
    assert caplog.messages[1].startswith(f"caught up with the log: {num_records:,} records in ")


def test_what_a_projector_waited_out_last_is_stored_with_its_lease(migrated_url: str) -> None:
    class Away(MemoryReader):
        """The log is away at the first poll."""

        polls = 0

        def poll(self, max_records: int, timeout_s: float) -> list[LogRecord]:
            self.polls += 1
            if self.polls == 1:
                message = "the log is away"
                raise UnreachableError(message)
            return super().poll(max_records, timeout_s)

    stop = threading.Event()
    log = memory_log(logged_events("a"))
    worker = threading.Thread(
        target=ProjectionLoop(Away(log), migrated_url).run_forever, args=(stop,)
    )
    worker.start()
    try:
        eventually(lambda: read_status(MemoryReader(log), migrated_url).lag_events == 0)
        error = "SELECT last_error FROM cua_ops.lease WHERE last_error_at >= acquired_at"
        assert one(migrated_url, error) == "the log is away"
    finally:
        stop.set()
        worker.join(DEADLINE_S)
