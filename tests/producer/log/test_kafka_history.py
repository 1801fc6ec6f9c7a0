"""A training's records in Kafka, read on a host that has no offsets: none is missed."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from uuid import uuid4

import pytest
from kafka import KafkaProducer
from kafka.admin import ConfigResource, KafkaAdminClient

from producer.log.kafka import KafkaLog
from producer.log.kafka_history import KafkaHistory
from producer.log.writer import TopicPartition
from schemas import ids
from schemas.catalogue import NUM_PARTITIONS, TOPIC_NAMES, stream, topic_of
from schemas.home import home_partition
from schemas.installation import Installation
from schemas.kafka_log import TIMES_SETTING, TOPIC_SETTINGS
from tests.reference_fold.histories import LoggedEvent, Shape, history
from tests.reference_fold.writers import BEGAN
from tests.support.eventually import eventually
from tests.support.kafka import KafkaService
from tests.support.reading import installation_on

pytestmark = pytest.mark.services
CALM = Shape(steps=1, groups=1, group_size=2, turns=2, has_trouble=False)
MINE = ids.training_id("mine")
OWN = stream("training", MINE)
MADE = history("mine", 1, CALM)
"""Its first event was made within half a second after BEGAN."""


class Topics:
    """Both topics of an installation, in which records have any times."""

    def __init__(self, installation: Installation, admin: KafkaAdminClient) -> None:
        self.installation = installation
        self._admin = admin
        names = [installation.topic_prefix + name for name in TOPIC_NAMES]
        settings = {**TOPIC_SETTINGS, TIMES_SETTING: "CreateTime"}
        wanted = {"num_partitions": NUM_PARTITIONS, "configs": settings}
        admin.create_topics(dict.fromkeys(names, wanted), wait_for_metadata=True)

    def append(self, events: list[LoggedEvent], minutes: float) -> None:
        """Records that Kafka got so many minutes after BEGAN."""
        time_ms = int((BEGAN + timedelta(minutes=minutes)).timestamp() * 1000)
        with closing(KafkaProducer(bootstrap_servers=self._servers)) as producer:
            for event in events:
                producer.send(
                    topic_of(event.subject, self.installation.topic_prefix),
                    event.value,
                    event.subject.encode(),
                    partition=home_partition(event.subject, NUM_PARTITIONS),
                    timestamp_ms=time_ms,
                )
            producer.flush(30)

    def stamp(self, *names: str) -> None:
        """From now on these topics say that the times are the broker's."""
        for name in names:
            topic = self.installation.topic_prefix + name
            wanted = {TIMES_SETTING: "LogAppendTime"}
            self._admin.alter_configs([ConfigResource("TOPIC", topic, configs=wanted)])
            eventually(partial(self._is_stamped, topic))

    def _is_stamped(self, topic: str) -> bool:
        with closing(KafkaLog(self.installation)) as log:
            return log.has_append_times(topic)

    @property
    def _servers(self) -> str:
        assert self.installation.kafka_bootstrap_servers is not None
        return self.installation.kafka_bootstrap_servers


@pytest.fixture
def topics(kafka: KafkaService, tmp_path: Path) -> Iterator[Topics]:
    installation = installation_on(kafka.bootstrap_servers, tmp_path, f"h{uuid4().hex}.")
    with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)) as admin:
        yield Topics(installation, admin)


def read(
    topics: Topics, since: Mapping[TopicPartition, int] | None = None
) -> dict[str, list[tuple[str, bytes]]]:
    """What is read of each topic to continue the training, and of its own stream (`own`)."""
    training, rollouts = (topics.installation.topic_prefix + name for name in TOPIC_NAMES)
    known = KafkaHistory()
    with closing(KafkaLog(topics.installation)) as log:
        found = {"own": list(known.read_own(log, training, OWN, since or {}))}
        for topic in (training, rollouts):
            records = known.read_training(log, topic, training, MINE, since or {})
            found[topic.removeprefix(topics.installation.topic_prefix)] = list(records)
    return found


def is_whole(found: dict[str, list[tuple[str, bytes]]]) -> bool:
    """Whether every record of the training was found, each stream in order."""
    expected: dict[str, list[bytes]] = {}
    for event in MADE:
        expected.setdefault(event.subject, []).append(event.value)
    every = [*found["training"], *found["rollouts"]]
    streams = {name: [value for key, value in every if key == name] for name in expected}
    return streams == expected and found["own"] == [(OWN, value) for value in expected[OWN]]


def names(found: list[tuple[str, bytes]], event: LoggedEvent) -> bool:
    return (event.subject, event.value) in found


@cache
def other(name: str) -> list[LoggedEvent]:
    return history(name, 1, CALM)


def rollout_of(name: str) -> LoggedEvent:
    return next(event for event in other(name) if event.subject.startswith("rollout/"))


def test_what_was_appended_from_an_hour_before_the_training_on_is_read_and_no_more(
    topics: Topics,
) -> None:
    topics.append(other("long before"), -200)
    topics.append([rollout_of("before")], -61)
    topics.append([rollout_of("shortly before")], -59)
    topics.append(MADE, 5)
    topics.append(other("after"), 6)
    topics.stamp(*TOPIC_NAMES)
    found = read(topics)
    assert is_whole(found)
    late = [*MADE, *other("after"), rollout_of("shortly before")]
    for name in TOPIC_NAMES:
        own = {(one.subject, one.value) for one in late if topic_of(one.subject, "") == name}
        assert {key for key, _ in set(found[name]) ^ own} == set()


@pytest.mark.parametrize("stamped", ["training", "rollouts", None])
def test_a_topic_with_producers_times_is_read_whole(
    topics: Topics, stamped: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """The clock of the host that ran the rollouts was three days behind."""
    topics.append([event for event in MADE if topic_of(event.subject, "") == "training"], 0)
    topics.append([event for event in MADE if topic_of(event.subject, "") == "rollouts"], -4320)
    topics.append([rollout_of("before")], -4320)
    if stamped == "rollouts":
        # Of when the training began nothing is known then.
        topics.stamp(stamped)
    elif stamped:
        topics.stamp(stamped)
    with caplog.at_level(logging.INFO, "producer"):
        found = read(topics)
    assert is_whole(found)
    assert names(found["rollouts"], rollout_of("before"))
    assert "rollouts from its beginning: the message.timestamp.type of" in caplog.text


def test_a_copy_that_got_the_trainings_own_stream_last_is_read_from_when_it_was_made(
    topics: Topics,
) -> None:
    """A copied topic has the copy's append times: here its rollouts were copied a day before."""
    topics.append([rollout_of("before")], -62)
    topics.append([event for event in MADE if topic_of(event.subject, "") == "rollouts"], 10)
    topics.append([event for event in MADE if topic_of(event.subject, "") == "training"], 1450)
    topics.stamp(*TOPIC_NAMES)
    found = read(topics)
    assert is_whole(found)
    assert not names(found["rollouts"], rollout_of("before"))


def test_a_trainer_whose_clock_is_ahead_is_found_by_when_kafka_got_its_first_record(
    topics: Topics,
) -> None:
    topics.append([rollout_of("before")], -1500)
    topics.append(MADE, -1400)
    topics.stamp(*TOPIC_NAMES)
    found = read(topics)
    assert is_whole(found)
    assert not names(found["rollouts"], rollout_of("before"))


@pytest.mark.parametrize("first", [b"no event", None])
def test_a_stream_that_does_not_begin_with_its_first_event_is_searched_for_everywhere(
    topics: Topics, first: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Retention has deleted it, or the rest is in another partition, or a stranger was there."""
    own = [event for event in MADE if event.subject == OWN]
    elsewhere = [event for event in MADE if event.subject != OWN]
    topics.append(elsewhere, -300)
    topics.append([LoggedEvent(OWN, first), *own] if first else own[1:], 0)
    topics.stamp(*TOPIC_NAMES)
    with caplog.at_level(logging.INFO, "producer"):
        found = read(topics)
    every = {*found["training"], *found["rollouts"]}
    assert every >= {(event.subject, event.value) for event in elsewhere}
    assert "is missing" in caplog.text


def test_partitions_whose_offsets_a_state_has_are_read_from_there_and_others_by_time(
    topics: Topics,
) -> None:
    topics.append([rollout_of("shortly before"), rollout_of("next")], -5)
    topics.append(MADE, 0)
    topics.stamp(*TOPIC_NAMES)
    with closing(KafkaLog(topics.installation)) as log:
        rollouts = f"{topics.installation.topic_prefix}rollouts"
        place, further = (
            log.place_of(rollouts, rollout_of(name).subject) for name in ("shortly before", "next")
        )
    assert place != further
    found = read(topics, {place: 1})
    assert is_whole(found)
    assert not names(found["rollouts"], rollout_of("shortly before"))
    assert names(found["rollouts"], rollout_of("next"))


def test_a_new_name_has_nothing(topics: Topics) -> None:
    topics.append(other("after"), 0)
    assert read(topics)["own"] == []
