"""What an operator gave up on another host is known to a trainer that continues on Kafka."""

import json
import logging
import os
import socket
import threading
import time
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from consumers.database.connection import connected
from consumers.fold.operator_drops import store_drop
from producer.emit import Emitter
from producer.errors import MismatchError, StopRequestedError
from producer.resume.foreign_drops import fetch_drops
from producer.resume.recorded_training import read_recorded_training
from producer.resume.run_folder import find_run_folder
from producer.resume.training_history import read_training_history
from producer.rewards import REWARDS
from producer.training.redo import redo
from producer.training.rescore import Scorer, rescore
from producer.training.run import run
from schemas.catalogue import topic_of
from schemas.ids import training_id
from schemas.installation import Installation, read_installation
from schemas.operator_drops import Drop, read_decisions, read_operator_drops, standing
from tests.producer.resume.test_given_up import give_up
from tests.support.forked_command import run_command
from tests.support.kafka import KafkaService
from tests.support.ports import free_port
from tests.support.small_run import small

STREAM, VALUE = "rollout/01890a5d-ac96-774b-bcce-b302099a8057", b"what was given up"
GIVEN_UP = Drop("record", STREAM, sha256(VALUE).hexdigest(), None)


@pytest.fixture
def on_kafka(installation: Installation) -> Installation:
    """A home on a Kafka that nobody needs to reach."""
    return replace(installation, kafka_bootstrap_servers="127.0.0.1:9")


def store(url: str, drop: Drop) -> None:
    with connected(url, "test") as connection, connection, connection.cursor() as cursor:
        store_drop(cursor, drop, made_by="another host", reason=None)


@pytest.mark.services
def test_what_is_in_the_database_is_fetched_once(on_kafka: Installation, migrated_url: str) -> None:
    drops = partial(fetch_drops, on_kafka, {"DATABASE_URL": migrated_url})
    assert not drops()
    store(migrated_url, GIVEN_UP)
    assert drops()
    assert read_operator_drops(on_kafka.operator_drops_path).scope(STREAM, VALUE) == "record"
    assert not drops()


@pytest.mark.services
def test_a_database_without_tables_has_nothing_and_gets_nothing(
    on_kafka: Installation, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert not fetch_drops(on_kafka, {"DATABASE_URL": database_url})
    assert caplog.messages == []
    with connected(database_url, "test") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'cua%'")
        assert cursor.fetchone() == (0,)


def test_a_database_that_does_not_answer_is_given_up_with_a_warning(
    on_kafka: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://a:b@127.0.0.1:{silent.getsockname()[1]}/c"
        began = time.monotonic()
        assert not fetch_drops(on_kafka, {"DATABASE_URL": url}, limit_s=2)
        assert time.monotonic() - began < 6
    assert any(
        "did not answer within 2 s" in message and "not for the tables" in message
        for message in caplog.messages
    )


def test_a_stop_is_heard_while_the_database_is_silent(on_kafka: Installation) -> None:
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://a:b@127.0.0.1:{silent.getsockname()[1]}/c"
        threading.Timer(1, stop.set).start()
        began = time.monotonic()
        with pytest.raises(StopRequestedError):
            fetch_drops(on_kafka, {"DATABASE_URL": url}, stop=stop)
        assert time.monotonic() - began < 9  # a silent database is given up after ten


def test_asking_makes_no_database(tmp_path: Path) -> None:
    home = tmp_path / "new"
    environ = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    out = cua_project(environ | {"CUA_HOME": str(home)}, "parked", "sync", "--json")
    assert (json.loads(out), home.exists()) == ({"fetched": 0}, False)


def test_a_database_that_is_away_is_named_without_its_password(
    on_kafka: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"postgresql://a:secret@127.0.0.1:{free_port()}/c"
    assert not fetch_drops(on_kafka, {"DATABASE_URL": url})
    assert any("cannot connect to PostgreSQL" in message for message in caplog.messages)
    assert "secret" not in caplog.text


def test_without_a_server_nobody_is_asked(
    installation: Installation, on_kafka: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    """The embedded database is the home's own; only on Kafka may another host have decided."""
    caplog.set_level(logging.INFO)
    assert not fetch_drops(installation, {})
    assert caplog.messages == []
    assert not fetch_drops(on_kafka, {})
    assert any("no database is configured here" in message for message in caplog.messages)


def give_up_elsewhere(installation: Installation, url: str, kind: str) -> Drop:
    """The rest of a stream from its last record on, in the database alone."""
    with Emitter.open(installation) as emitter:
        own = training_id("small")
        history = read_training_history(emitter.log, own, start={}, since={})
        stream = next(stream for stream in history.streams if stream.startswith(f"{kind}/"))
        log, topic = emitter.log.local, topic_of(stream, "cua.")
        *_, last = (value for _, value in log.read_streams(topic, [stream], {}))
    drop = Drop("rest", stream, sha256(last).hexdigest(), None)
    store(url, drop)
    return drop


@pytest.mark.services
def test_what_was_given_up_elsewhere_is_known_with_a_local_log_too(
    installation: Installation, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another host needs the database alone to give something up."""
    run(small(num_steps=1), installation=installation)
    give_up_elsewhere(installation, migrated_url, "training")
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    with pytest.raises(MismatchError, match="--rest"):
        run(small(num_steps=2), installation=installation)


@pytest.mark.services
def test_what_was_given_up_elsewhere_is_not_scored_again(
    installation: Installation, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(small(num_steps=1), installation=installation)
    scorer = Scorer(reward_name="binary", reward=REWARDS["binary"], config={})
    again = partial(rescore, installation, "small", scorer, stop=threading.Event())
    num_scored = again().rollouts
    give_up_elsewhere(installation, migrated_url, "rollout")
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    assert again().rollouts == num_scored - 1


@pytest.mark.services
def test_what_was_given_up_elsewhere_is_fetched_before_a_step_is_trained_again(
    installation: Installation, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(small(num_steps=1), installation=installation)
    drop = give_up_elsewhere(installation, migrated_url, "training")
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    redo(installation, "small", 1, None, threading.Event())
    given_up = standing(read_decisions(installation.operator_drops_path))
    assert given_up.keys() == {drop}


def test_the_history_is_read_again_with_what_was_fetched(installation: Installation) -> None:
    run(small(num_steps=1), installation=installation)
    own = training_id("small")
    with Emitter.open(installation) as emitter:
        folder = find_run_folder(installation, "small", None)
        before = read_recorded_training(emitter, "small", folder).history
        rollout = next(stream for stream in before.streams if stream.startswith("rollout/"))
        log = emitter.log.local
        values = [value for _, value in log.read_streams("cua.rollouts", [rollout], {})]
        asked = []

        def fetch() -> bool:
            asked.append(own)
            give_up(installation, Drop("rest", rollout, sha256(values[-1]).hexdigest(), None))
            return True

        after = read_recorded_training(emitter, "small", folder, fetch_drops=fetch).history
        assert after.of(rollout).is_abandoned
        read_recorded_training(emitter, "another", folder, fetch_drops=fetch)
    assert asked == [own]


@pytest.mark.slow
def test_a_record_given_up_on_another_host_does_not_stop_a_trainer_here(
    kafka: KafkaService, migrated_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {
        "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "CUA_TOPIC_PREFIX": f"{tmp_path.name}.",
        "CUA_HOME": str(tmp_path / "here"),
    }
    here = read_installation(environ)
    run(small(num_steps=1), installation=here)
    own = f"training/{training_id('small')}"
    garbage = b'{"' + own.encode()
    send_behind(kafka, f"{tmp_path.name}.training", own, garbage)
    with pytest.raises(MismatchError, match="cannot be"):
        run(small(num_steps=2), installation=here)

    there = os.environ | environ | {"CUA_HOME": str(tmp_path / "there")}
    there["DATABASE_URL"] = migrated_url
    cua_project(there, "run", "--once")
    parked = json.loads(cua_project(there, "parked", "list", "--json"))
    (record,) = (item for item in parked if item["stream"] == own and item["kind"] == "unreadable")
    at = f"{record['topic']}/{record['partition']}@{record['offset']}"
    cua_project(there, "parked", "drop", at)

    monkeypatch.setenv("DATABASE_URL", migrated_url)
    assert run(small(num_steps=2), installation=here).status == "completed"


def cua_project(environ: dict[str, str], *arguments: str) -> str:
    done = run_command("consumers", *arguments, environ=environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


def send_behind(kafka: KafkaService, topic: str, key: str, value: bytes) -> None:
    """Append a record where the stream's records are."""
    consumer = KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers)
    places = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)]
    consumer.assign(places)
    consumer.seek_to_beginning()
    ends = consumer.end_offsets(places)
    partition = None
    while partition is None and any(consumer.position(at) < ends[at] for at in places):
        for at, records in consumer.poll(1000).items():
            if any(record.key == key.encode() for record in records):
                partition = at.partition
    consumer.close()
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
    producer.send(topic, value, key.encode(), partition=partition).get(30)
    producer.close()
