"""EventLog without a broker: what it promises while Kafka is away, and on close."""

import logging
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from producer.errors import LogBrokenError, UnreachableError
from producer.log.event_log import EventLog
from producer.log.writer import Record
from schemas.installation import Installation
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.reading import installation_at

RECORD = Record("cua.rollouts", "rollout/a", b"1")


@pytest.fixture
def without_broker(tmp_path: Path) -> Installation:
    return replace(installation_at(tmp_path), kafka_bootstrap_servers=f"127.0.0.1:{free_port()}")


def shipper_threads() -> int:
    return sum(thread.name == "cua-shipper" for thread in threading.enumerate())


def test_a_local_log_is_where_others_read_and_has_nothing_to_ship(tmp_path: Path) -> None:
    log = EventLog.open(installation_at(tmp_path))
    log.local.append([RECORD])
    assert log.connect() is log.local
    assert log.log_id() == log.local.log_id
    assert log.lower_bounds() == log.ends()
    assert sum(log.ends().values()) == 1
    assert [value for _, value in log.read_topic("rollouts", {})] == [b"1"]
    log.wait_shipped(0.0)
    assert log.num_unshipped() == 0
    assert log.close(1.0) == 0
    assert log.close(1.0) == 0


def test_without_kafka_only_what_needs_it_raises_and_closing_says_what_stays(
    without_broker: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    log = EventLog.open(without_broker)
    log.local.append([RECORD])
    log.notify()
    assert log.lower_bounds() == {}
    assert log.num_unshipped() == 1
    with pytest.raises(UnreachableError, match="KAFKA_BOOTSTRAP_SERVERS"):
        log.connect()
    with pytest.raises(UnreachableError):
        log.ends()
    with pytest.raises(UnreachableError):
        log.wait_shipped(0.1)
    assert log.close(0.1) == 1
    assert any("1 events are not sent yet" in line for line in caplog.messages)
    assert shipper_threads() == 0


def test_a_thread_that_waits_for_kafka_holds_up_neither_close_nor_a_shorter_wait(
    without_broker: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    log = EventLog.open(without_broker)
    raised: list[str] = []

    def wait() -> None:
        try:
            log.connect(60.0)
        except UnreachableError as error:
            raised.append(str(error))

    caplog.set_level(logging.WARNING, logger="producer.log.kafka_contact")
    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    eventually(lambda: "Waiting up to 60 s" in caplog.text, 10)
    began = time.monotonic()
    with pytest.raises(UnreachableError):
        log.connect(0.0)
    log.close(0.0)
    assert time.monotonic() - began < 5
    waiting.join(5)
    assert not waiting.is_alive()
    assert "was closed" in raised[0]
    with pytest.raises(UnreachableError, match="was closed"):
        log.connect(60.0)


def test_a_spool_that_can_no_longer_be_read_is_closed_all_the_same(
    without_broker: Installation,
) -> None:
    log = EventLog.open(without_broker)
    log.local.append([RECORD])
    with closing(sqlite3.connect(without_broker.local_log_path)) as other:
        other.execute("DROP TABLE head")
    with pytest.raises(LogBrokenError, match="cannot be read"):
        log.close(1.0)
    assert shipper_threads() == 0
    with pytest.raises(LogBrokenError, match="was closed"):
        log.local.append([RECORD])


def test_a_blob_store_that_cannot_be_used_leaves_nothing_open(tmp_path: Path) -> None:
    installation = replace(installation_at(tmp_path), blobs_url="nonsense://bucket")
    with pytest.raises(UnreachableError, match="Set CUA_BLOBS"):
        EventLog.open(installation)
    assert shipper_threads() == 0
