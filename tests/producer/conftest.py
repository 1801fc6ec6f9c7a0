"""A new installation, its log as plain dictionaries, and an OpenAI-compatible server."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from consumers.log.local import LocalLogReader
from schemas.installation import Installation, read_installation
from tests.support.chat_server import ChatServer, chat_server


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return read_installation({"CUA_HOME": str(tmp_path / "home")})


@pytest.fixture
def read_log(installation: Installation) -> Callable[[], list[dict[str, Any]]]:
    def read() -> list[dict[str, Any]]:
        reader = LocalLogReader(installation.local_log_path, topic_prefix=installation.topic_prefix)
        try:
            reader.seek(dict.fromkeys(reader.partitions(), 0))
            events: list[dict[str, Any]] = []
            while records := reader.poll(10_000, 0.0):
                events += [
                    {
                        **json.loads(record.value),
                        "topic": record.topic,
                        "partition": record.partition,
                        "offset": record.offset,
                    }
                    for record in records
                ]
            return events
        finally:
            reader.close()

    return read


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server() as started:
        yield started


@pytest.fixture(scope="session")
def phone_server() -> Iterator[str]:
    """The URL of `cua-train env serve`: simulated phones."""
    from tests.support.env_servers import served_by_command

    with served_by_command() as (url, _):
        yield url
