"""An installation in a folder, and everything in its local log."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from consumers.log.local import LocalLogReader
from consumers.log.reader import LogRecord
from schemas.installation import Installation

Event = dict[str, Any]
ReadLog = Callable[[], list[Event]]


def of_type(events: Iterable[Event], name: str) -> list[dict[str, Any]]:
    """The data of events of the type `cua.NAME`."""
    return [event["data"] for event in events if event["type"] == f"cua.{name}"]


def installation_at(home: Path) -> Installation:
    """A local log and blobs below `home`."""
    return Installation(
        home=home,
        topic_prefix="cua.",
        kafka_bootstrap_servers=None,
        kafka_options=(),
        blobs_url=str(home / "blobs"),
    )


def installation_on(servers: str | None, home: Path, prefix: str = "cua.") -> Installation:
    """Kafka, with a spool and blobs below `home`."""
    return replace(installation_at(home), kafka_bootstrap_servers=servers, topic_prefix=prefix)


def read_all(installation: Installation) -> list[LogRecord]:
    """Every record of the local log, in the order of appending."""
    reader = LocalLogReader(installation.local_log_path, topic_prefix=installation.topic_prefix)
    reader.seek(dict.fromkeys(reader.partitions(), 0))
    records: list[LogRecord] = []
    while batch := reader.poll(1000, 0):
        records += batch
    reader.close()
    return records
