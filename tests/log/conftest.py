"""One broker for the tests of this folder; those that kill a broker start their own."""

from collections.abc import Iterator

import pytest

from tests.kafka_service import KafkaService


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaService]:
    with KafkaService() as service:
        yield service
