"""Work handed out through a topic: whatever happens to the group, its members receive it."""

import time
from pathlib import Path
from uuid import uuid4

import pytest

from producer.log.kafka_client import KafkaClients
from producer.log.kafka_queue import WorkMember, ensure_topic
from tests.support.kafka import KafkaService
from tests.support.reading import installation_on

pytestmark = pytest.mark.slow


def poll_until(member: WorkMember, num_partitions: int) -> None:
    """Each poll ends long before Kafka has answered a join."""
    deadline = time.monotonic() + 60
    while len(member.partitions) < num_partitions:
        assert time.monotonic() < deadline, f"has {sorted(member.partitions)}"
        member.poll(1, 0.001)


def test_a_member_gets_the_partitions_of_a_join_that_outlasts_its_polls(
    kafka: KafkaService, tmp_path: Path
) -> None:
    clients = KafkaClients(installation_on(kafka.bootstrap_servers, tmp_path, ""))
    topic = f"work-{uuid4().hex[:8]}"
    ensure_topic(clients, topic, 1)
    member = WorkMember(clients, topic, f"{topic}-group", 1, "member")
    try:
        poll_until(member, 1)
        with clients.admin() as admin:
            admin.create_partitions({topic: 4})
        poll_until(member, 4)
    finally:
        member.close()
