"""Emitter, spool and shipper against a real Kafka that is killed."""

import contextlib
import os
import signal
import sqlite3
import time
from itertools import islice
from pathlib import Path
from uuid import uuid4

import pytest

from consumers.log.open import open_reader
from consumers.log.reader import LogRecord
from producer.emit import Emitter
from producer.emit.ownership import ClaimLostError, claim
from producer.log.stream_history import StreamHistory
from schemas.event import StreamPoint
from schemas.installation import Installation
from tests.support.emitting import (
    CREATING,
    REQUESTED,
    acknowledged,
    emitting_process,
    new_subject,
)
from tests.support.kafka import KafkaService
from tests.support.ports import free_port
from tests.support.reading import installation_on

pytestmark = pytest.mark.services


@pytest.fixture
def home(tmp_path: Path, kafka: KafkaService) -> Installation:
    return installation_on(kafka.bootstrap_servers, tmp_path, f"t{uuid4().hex}.")


def test_kafka_killed_while_events_are_emitted_loses_none_and_keeps_their_order(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    subjects = [new_subject() for _ in range(5)]
    with KafkaService() as service:
        emitter = Emitter.open(installation_on(service.bootstrap_servers, tmp_path))
        emitter.log.connect(30)
        reader = open_reader(installation_on(service.bootstrap_servers, tmp_path))
        reader.seek(dict.fromkeys(reader.partitions(), 0))
        read: list[LogRecord] = []
        longest_s = 0.0
        for number in range(400):
            if number == 150:
                read += reader.poll(5000, 1)
                service.kill()
            for subject in subjects:
                began = time.perf_counter()
                emitter.stream(subject).emit(CREATING if number else REQUESTED)
                longest_s = max(longest_s, time.perf_counter() - began)
            time.sleep(0.005)
        emitter.flush(10)
        assert longest_s < 5  # one that waited for Kafka would wait for its start below
        service.start()
        emitter.log.wait_shipped(90)
        for history in emitter.log.read_back_many(subjects, {}).values():
            assert history.position.point == StreamPoint(1, 400)
            assert len(history.events) == 400
            assert not history.waiting
        assert emitter.close() == 0
        deadline = time.monotonic() + 60
        while len({record.value for record in read}) < 2000 and time.monotonic() < deadline:
            read += reader.poll(5000, 1)
        assert len({record.value for record in read}) == 2000
        reader.close()
    assert len([line for line in caplog.messages if "kept on this disk" in line]) <= 1


def check_in_log(emitter: Emitter, last: dict[str, int]) -> None:
    """Everything that was acknowledged is there, without a gap."""
    for subject, history in emitter.log.read_back_many(list(last), {}).items():
        assert history.position.sequence >= last[subject]
        assert not history.waiting


def test_what_a_killed_process_left_in_the_spool_is_sent_first_by_the_next(
    home: Installation,
) -> None:
    # It never reaches a broker: everything it acknowledged is in the spool alone.
    away = f"127.0.0.1:{free_port()}"
    process = emitting_process(home.home, 2, prefix=home.topic_prefix, servers=away)
    assert process.stdout is not None
    left = acknowledged(islice(process.stdout, 100))
    process.kill()
    process.communicate()
    with Emitter.open(home) as emitter:
        emitter.log.wait_shipped(60)
        check_in_log(emitter, left)


def test_a_shipper_that_is_stopped_is_replaced_and_what_it_sends_afterwards_breaks_no_order(
    home: Installation,
) -> None:
    servers = str(home.kafka_bootstrap_servers)
    process = emitting_process(home.home, 3, prefix=home.topic_prefix, servers=servers)
    assert process.stdout is not None
    try:
        last = acknowledged(islice(process.stdout, 300))
        with Emitter.open(home) as emitter:
            for _ in range(2):
                # Wherever it stands: in a request, in a commit, or between the two.
                process.send_signal(signal.SIGSTOP)
                # With all its threads: one could take the file's lock behind the look for it.
                os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
                other = new_subject()
                emitter.stream(other).emit(REQUESTED)
                if is_locked(home.local_log_path):
                    process.send_signal(signal.SIGCONT)
                    last |= acknowledged(islice(process.stdout, 30))
                    continue
                emitter.flush(30)
                emitter.log.wait_shipped(30)
                histories = emitter.log.read_back_many([*last, other], {})
                for subject, number in {**last, other: 1}.items():
                    assert histories[subject].position.sequence >= number
                process.send_signal(signal.SIGCONT)
                last |= acknowledged(islice(process.stdout, 300))
            process.kill()
            emitter.log.wait_shipped(60)
            check_in_log(emitter, last)
    finally:
        process.kill()
        process.communicate()


def is_locked(path: Path) -> bool:
    """Whether a process stands inside a commit of this file."""
    with contextlib.closing(sqlite3.connect(path, timeout=0.2, isolation_level=None)) as file:
        try:
            file.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        file.execute("ROLLBACK")
        return False


def test_two_hosts_claim_one_stream_through_kafka_and_one_of_them_gets_it(
    tmp_path: Path, kafka: KafkaService
) -> None:
    prefix, subject = f"t{uuid4().hex}.", new_subject()
    hosts = [
        installation_on(kafka.bootstrap_servers, tmp_path / name, prefix) for name in ("a", "b")
    ]
    with Emitter.open(hosts[0]) as first, Emitter.open(hosts[1]) as second:
        claim(first, REQUESTED, StreamHistory(subject), {})
        with pytest.raises(ClaimLostError, match=first.source):
            claim(second, REQUESTED, StreamHistory(subject), {})
    with Emitter.open(hosts[1]) as third:
        history = third.log.read_back(subject, {}, timeout_s=30)
        assert history.position.source == first.source
        claim(third, CREATING, history, {})
        after = third.log.read_back(subject, {})
        assert after.position.point == StreamPoint(2, 1)
        assert after.position.source == third.source
