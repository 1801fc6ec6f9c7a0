"""Topics that are deleted while events are sent: made again as ours are, with all events."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource

from producer.emit import Emitter
from producer.errors import MismatchError
from schemas.catalogue import NUM_PARTITIONS, TOPIC_NAMES
from schemas.environment import EnvironmentCreationStarted, EnvironmentRequested
from schemas.event import StreamPoint
from tests.support.kafka import KafkaService
from tests.support.reading import installation_on

REQUESTED = EnvironmentRequested(env_type="a", box_type="b", config={})


@pytest.fixture
def prefix() -> str:
    return f"t{uuid4().hex[:8]}."


@pytest.fixture
def admin(kafka: KafkaService) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    yield client
    client.close()


def test_topics_deleted_under_a_sender_are_made_again_as_ours_are_and_get_every_event(
    kafka: KafkaService, admin: KafkaAdminClient, prefix: str, tmp_path: Path
) -> None:
    """The broker would make them with one partition and a week's retention (its defaults)."""
    topics = [prefix + name for name in TOPIC_NAMES]
    subject = f"environment/{uuid4()}"
    installation = installation_on(kafka.bootstrap_servers, tmp_path, prefix)
    with Emitter.open(installation) as emitter:
        stream = emitter.stream(subject)
        stream.emit(REQUESTED)
        stream.emit(EnvironmentCreationStarted())
        emitter.flush(10)
        emitter.log.wait_shipped(30)
        admin.delete_topics(topics)

        for _ in range(8):
            stream.emit(EnvironmentCreationStarted())
        emitter.flush(10)

        with pytest.raises(MismatchError, match="deleted and made again while this process ran"):
            emitter.log.wait_shipped(60)
    with Emitter.open(installation) as emitter:
        emitter.log.wait_shipped(30)
        history = emitter.log.read_back(subject, {})
        assert history.position.point == StreamPoint(1, 10)
        assert not history.waiting
    assert {len(topic["partitions"]) for topic in admin.describe_topics(topics)} == {NUM_PARTITIONS}
    described = admin.describe_configs([ConfigResource("TOPIC", topic) for topic in topics])
    assert {item["retention.ms"]["value"] for item in described["topic"].values()} == {"-1"}
