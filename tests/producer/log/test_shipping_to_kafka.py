"""Emitter, spool and shipper against a real Kafka that is killed."""

import contextlib
import gc
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from kafka.admin import ConfigResource, KafkaAdminClient

from consumers.log.open import open_reader
from consumers.log.reader import LogRecord
from producer.emit import Emitter
from producer.emit.ownership import ClaimLostError, claim
from producer.errors import UnreachableError
from producer.log.stream_history import StreamHistory
from schemas.environment import EnvironmentCreationStarted, EnvironmentRequested
from schemas.event import StreamPoint
from tests.support.kafka import KafkaService, free_port
from tests.support.paths import ROOT
from tests.support.reading import installation_on

pytestmark = [
    pytest.mark.services,
    # kafka-python leaves the socket of a connection that was refused to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

REQUESTED = EnvironmentRequested(env_type="a", box_type="b", config={})


@pytest.fixture(autouse=True)
def _collect_sockets() -> Iterator[None]:
    yield
    gc.collect()


def test_kafka_killed_while_events_are_emitted_loses_none_and_keeps_their_order(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    subjects = [f"environment/{uuid4()}" for _ in range(5)]
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
                emitter.stream(subject).emit(EnvironmentCreationStarted() if number else REQUESTED)
                longest_s = max(longest_s, time.perf_counter() - began)
            time.sleep(0.005)
        emitter.flush(10)
        assert longest_s < 0.5
        service.start()
        emitter.log.wait_shipped(90)
        for subject in subjects:
            history = emitter.log.read_back(subject, {})
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


def test_what_a_killed_process_left_in_the_spool_is_sent_first_by_the_next(
    tmp_path: Path, kafka: KafkaService
) -> None:
    prefix = f"t{uuid4().hex}."
    # It never reaches a broker: everything it acknowledged is in the spool alone.
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.emitting_process", "2"],
        cwd=ROOT,
        env={
            **os.environ,
            "CUA_HOME": str(tmp_path),
            "CUA_TOPIC_PREFIX": prefix,
            "KAFKA_BOOTSTRAP_SERVERS": f"127.0.0.1:{free_port()}",
            "PYTHONPATH": str(ROOT),
        },
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    acknowledged: dict[str, int] = {}
    for _ in range(100):
        subject, number, _ref = process.stdout.readline().split()
        acknowledged[subject] = int(number)
    process.kill()
    process.communicate()
    with Emitter.open(installation_on(kafka.bootstrap_servers, tmp_path, prefix)) as emitter:
        emitter.log.wait_shipped(60)
        for subject, last in acknowledged.items():
            history = emitter.log.read_back(subject, {})
            assert history.position.sequence >= last
            assert not history.waiting


def test_a_shipper_that_is_stopped_is_replaced_and_what_it_sends_afterwards_breaks_no_order(
    tmp_path: Path, kafka: KafkaService
) -> None:
    prefix = f"t{uuid4().hex}."
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.emitting_process", "3"],
        cwd=ROOT,
        env={
            **os.environ,
            "CUA_HOME": str(tmp_path),
            "CUA_TOPIC_PREFIX": prefix,
            "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        },
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    installation = installation_on(kafka.bootstrap_servers, tmp_path, prefix)
    acknowledged: dict[str, int] = {}

    def read(num_lines: int) -> None:
        for _ in range(num_lines):
            subject, number, _ref = process.stdout.readline().split()  # type: ignore[union-attr]
            acknowledged[subject] = int(number)

    try:
        read(300)
        with Emitter.open(installation) as emitter:
            for _ in range(2):
                # Wherever it stands: in a request, in a commit, or between the two.
                process.send_signal(signal.SIGSTOP)
                # With all its threads: one could take the file's lock behind the look for it.
                os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
                stopped_at = dict(acknowledged)
                other = f"environment/{uuid4()}"
                emitter.stream(other).emit(REQUESTED)
                if is_locked(installation.local_log_path):
                    process.send_signal(signal.SIGCONT)
                    read(30)
                    continue
                emitter.flush(30)
                emitter.log.wait_shipped(30)
                histories = emitter.log.read_back_many([*stopped_at, other], {})
                assert histories[other].position.sequence == 1
                for subject, last in stopped_at.items():
                    assert histories[subject].position.sequence >= last
                process.send_signal(signal.SIGCONT)
                read(300)
            process.kill()
            emitter.log.wait_shipped(60)
            for subject, history in emitter.log.read_back_many(list(acknowledged), {}).items():
                assert history.position.sequence >= acknowledged[subject]
                assert not history.waiting
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
    prefix = f"t{uuid4().hex}."
    subject = f"environment/{uuid4()}"
    homes = [tmp_path / "host-a", tmp_path / "host-b"]
    first, second = (
        Emitter.open(installation_on(kafka.bootstrap_servers, home, prefix)) for home in homes
    )
    with first, second:
        claim(first, REQUESTED, StreamHistory(subject), {})
        with pytest.raises(ClaimLostError, match=first.source):
            claim(second, REQUESTED, StreamHistory(subject), {})
    with Emitter.open(installation_on(kafka.bootstrap_servers, homes[1], prefix)) as third:
        history = third.log.read_back(subject, {}, timeout_s=30)
        assert history.position.source == first.source
        claim(third, EnvironmentCreationStarted(), history, {})
        after = third.log.read_back(subject, {})
        assert after.position.point == StreamPoint(2, 1)
        assert after.position.source == third.source


def test_without_kafka_emitting_goes_on_and_what_needs_the_log_says_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    emitter = Emitter.open(installation_on(f"127.0.0.1:{free_port()}", tmp_path))
    emitter.stream(f"environment/{uuid4()}").emit(REQUESTED).wait(10)
    with pytest.raises(UnreachableError, match="KAFKA_BOOTSTRAP_SERVERS"):
        emitter.log.wait_shipped(0.1)
    assert emitter.close(timeout_s=0.2) == 1
    assert any("1 events are not sent yet" in line for line in caplog.messages)


def test_topics_that_exist_are_used_as_they_are(tmp_path: Path, kafka: KafkaService) -> None:
    prefix = f"t{uuid4().hex}."
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    admin.create_topics(
        {f"{prefix}rollouts": {"num_partitions": 3}, f"{prefix}training": {"num_partitions": 1}},
        wait_for_metadata=True,
    )
    admin.close()
    installation = installation_on(kafka.bootstrap_servers, tmp_path, prefix)
    subjects = [f"environment/{uuid4()}" for _ in range(20)]
    with Emitter.open(installation) as emitter:
        for subject in subjects:
            emitter.stream(subject).emit(REQUESTED)
        emitter.log.wait_shipped(30)
        assert all(emitter.log.read_back(subject, {}).exists for subject in subjects)
    reader = open_reader(installation)
    assert [place.partition for place in reader.partitions()] == [0, 1, 2, 0]
    assert sum(reader.end_offsets(reader.partitions()).values()) == 20
    reader.close()


def test_topics_that_we_make_keep_everything_and_are_stamped_by_the_broker(
    tmp_path: Path, kafka: KafkaService
) -> None:
    prefix = f"t{uuid4().hex}."
    with Emitter.open(installation_on(kafka.bootstrap_servers, tmp_path, prefix)) as emitter:
        emitter.log.connect(30)
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    (described,) = admin.describe_topics([f"{prefix}rollouts"])
    settings = str(admin.describe_configs([ConfigResource("TOPIC", f"{prefix}rollouts")]))
    admin.close()
    assert len(described["partitions"]) == 12
    assert "LogAppendTime" in settings
    assert re.search(r"'retention.ms': \{'value': '-1'", settings), settings
