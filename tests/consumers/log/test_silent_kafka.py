"""A Kafka that takes connections and answers nothing is named within seconds."""

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from producer.errors import StopRequestedError, UnreachableError
from producer.log import kafka_client
from producer.log.kafka import KafkaLog
from producer.log.kafka_contact import wait_for_kafka
from producer.log.writer import Record
from schemas.catalogue import TOPIC_NAMES, topic_of
from schemas.installation import read_installation
from tests.reference_fold.histories import history
from tests.support.eventually import eventually
from tests.support.kafka import KafkaService
from tests.support.postgres import one
from tests.support.running_command import Command

pytestmark = [pytest.mark.services, pytest.mark.slow]


@pytest.fixture
def environ(kafka: KafkaService, migrated_url: str, tmp_path: Path) -> dict[str, str]:
    """An installation on the session's broker, with topics of its own."""
    return {
        "PATH": os.environ["PATH"],
        "CUA_HOME": str(tmp_path / "home"),
        "CUA_TOPIC_PREFIX": f"t{uuid4().hex}.",
        "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "DATABASE_URL": migrated_url,
    }


@contextmanager
def stopped(kafka: KafkaService) -> Iterator[None]:
    kafka.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        kafka.send_signal(signal.SIGCONT)


def write(environ: dict[str, str], name: str, seed: int) -> None:
    installation = read_installation(environ)
    log = KafkaLog(installation, [installation.topic_prefix + topic for topic in TOPIC_NAMES])
    log.append(
        [
            Record(topic_of(event.subject, installation.topic_prefix), event.subject, event.value)
            for event in history(name, seed)
        ]
    )
    log.close()


def test_every_command_that_meets_a_silent_broker_says_so_and_ends(
    kafka: KafkaService, environ: dict[str, str]
) -> None:
    write(environ, "first", 1)
    codes = {"status": 5, "tail -n 5": 5, "verify": 5, "run --once": 5, "doctor": 1}
    with stopped(kafka):
        commands = {words: Command(words.split(), environ) for words in codes}
        assert {words: command.wait(60) for words, command in commands.items()} == codes
    for words, command in commands.items():
        assert words == "doctor" or f"Kafka at {kafka.bootstrap_servers}" in command.said
        assert "Traceback" not in command.said


def test_whoever_follows_names_the_silence_and_goes_on_when_the_broker_does(
    kafka: KafkaService, environ: dict[str, str], tmp_path: Path
) -> None:
    write(environ, "first", 1)
    printed = tmp_path / "printed"
    with printed.open("wb") as stdout:
        projector = Command(["run"], environ)
        tail = Command(["tail", "-f", "--offset", "start"], environ, stdout)
    try:
        projector.says("caught up", 60)
        eventually(lambda: printed.stat().st_size > 0)  # it has read from Kafka
        with stopped(kafka):
            assert "retrying until it works" in projector.says("Kafka at")
            assert "Still waiting" in tail.says("Kafka at")
        write(environ, "second", 2)
        projector.says("works again", 60)
        tail.says("answers again", 60)
        deadline = time.monotonic() + 60
        while one(environ["DATABASE_URL"], "SELECT count(*) FROM cua.training") != 2:
            assert time.monotonic() < deadline, projector.said
            time.sleep(0.2)
    finally:
        for command in (projector, tail):
            command.process.terminate()
        assert [projector.wait(30), tail.wait(30)] == [0, 130]


def test_a_trainer_names_the_silence_at_its_start_and_hears_a_stop(
    kafka: KafkaService, environ: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    # A process warns once a minute about each server; a test before this one may have used it up.
    kafka_client._slow_answers.cache_clear()
    installation, stop = read_installation(environ), threading.Event()
    with stopped(kafka), caplog.at_level(logging.WARNING):
        with pytest.raises(UnreachableError):
            wait_for_kafka(installation, 0.0, stop)
        assert [line for line in caplog.messages if "has not answered for 5 s" in line]
        threading.Timer(1.0, stop.set).start()
        began = time.monotonic()
        with pytest.raises(StopRequestedError):
            wait_for_kafka(installation, 60.0, stop)
        assert time.monotonic() - began < 5
