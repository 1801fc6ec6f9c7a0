"""What an operator gave up is in the log: a trainer on any host leaves it out as tables do."""

import json
import os
import threading
from functools import partial
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from producer.emit import Emitter
from producer.errors import MismatchError
from producer.resume.training_history import read_training_history
from producer.rewards import REWARDS
from producer.training.rescore import Scorer, rescore
from producer.training.run import run
from schemas.ids import training_id
from schemas.installation import Installation, read_installation
from tests.producer.resume.test_given_up import give_up, rest
from tests.support.forked_command import run_command
from tests.support.kafka import KafkaService
from tests.support.small_run import small


def test_what_was_given_up_is_not_scored_again(installation: Installation) -> None:
    run(small(num_steps=1), installation=installation)
    scorer = Scorer(reward_name="binary", reward=REWARDS["binary"], config={})
    again = partial(rescore, installation, "small", scorer, stop=threading.Event())
    num_scored = again().rollouts
    with Emitter.open(installation) as emitter:
        history = read_training_history(emitter.log, training_id("small"), start={}, since={})
        rollout = next(stream for stream in history.streams if stream.startswith("rollout/"))
        *_, (_, last) = emitter.log.local.read_streams("cua.rollouts", [rollout], {})
    give_up(installation, rollout, rest(last))
    assert again().rollouts == num_scored - 1


@pytest.mark.slow
def test_what_is_given_up_and_taken_back_on_another_host_counts_for_a_trainer_here(
    kafka: KafkaService, migrated_url: str, tmp_path: Path
) -> None:
    environ = {
        "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "CUA_TOPIC_PREFIX": f"{tmp_path.name}.",
        "CUA_HOME": str(tmp_path / "here"),
    }
    here = read_installation(environ)
    there = os.environ | environ | {"CUA_HOME": str(tmp_path / "there")}
    there["DATABASE_URL"] = migrated_url
    own = f"training/{training_id('small')}"
    run(small(num_steps=1), installation=here)
    send_behind(kafka, f"{tmp_path.name}.training", own, b'{"' + own.encode())
    with pytest.raises(MismatchError, match="cannot be"):
        run(small(num_steps=2), installation=here)

    def project() -> list[dict[str, str]]:
        """What is not applied then; the tables are what a replay gives."""
        cua_project(there, "run", "--once")
        assert json.loads(cua_project(there, "verify", "--json"))["equal"]
        listed: list[dict[str, str]] = json.loads(cua_project(there, "parked", "list", "--json"))
        return listed

    (parked,) = project()
    cua_project(there, "parked", "drop", parked["id"], "--rest")
    (refused,) = project()
    assert (refused["id"], refused["state"]) == (parked["id"], "refused")
    with pytest.raises(MismatchError, match="--rest"):
        run(small(num_steps=2), installation=here)
    cua_project(there, "parked", "drop", own, "--undo")
    assert project() == [parked]
    with pytest.raises(MismatchError, match="cannot be"):
        run(small(num_steps=2), installation=here)
    cua_project(there, "parked", "drop", parked["id"])
    assert run(small(num_steps=2), installation=here).status == "completed"
    assert project() == []
    assert json.loads(cua_project(there, "rebuild", "--json"))["changed"] == 0
    # Nothing of the other host's folder was needed to write to the log.
    assert not (tmp_path / "there" / "log").exists()


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
