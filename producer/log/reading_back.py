"""Reads streams back for commands that write nothing: makes no file, sends and waits for nothing.

So they work in a home that may only be read, and while a stopped process holds its write lock.
"""

import shutil
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from producer.errors import MismatchError
from producer.log.event_log import EventLog
from producer.log.local_records import LocalRecords
from producer.log.stream_history import StreamHistory, read_streams_into
from schemas.installation import Installation
from schemas.operator_drops import read_operator_drops


def read_back(
    installation: Installation, subjects: Collection[str], *, timeout_s: float
) -> dict[str, StreamHistory]:
    """Several streams as others see them now; an empty history for one without records.

    Of a home that has a log. Raises UnreachableError after `timeout_s`, LogBrokenError and
    MismatchError.
    """
    if installation.kafka_bootstrap_servers is not None:
        return _read_back_from_kafka(installation, subjects, timeout_s)
    path = installation.operator_drops_path
    try:
        drops = read_operator_drops(path)
    except (ValueError, OSError) as error:
        message = f"what operators gave up cannot be read from {path}: {error}"
        raise MismatchError(message) from error
    histories = {subject: StreamHistory(subject, drops=drops) for subject in subjects}
    records = LocalRecords(installation.local_log_path)
    read_streams_into(histories, records, {}, topic_prefix=installation.topic_prefix)
    return histories


def _read_back_from_kafka(
    installation: Installation, subjects: Collection[str], timeout_s: float
) -> dict[str, StreamHistory]:
    with TemporaryDirectory() as home:
        # An EventLog makes a spool, which this home may not take.
        elsewhere = replace(installation, home=Path(home))
        if installation.operator_drops_path.exists():
            shutil.copy(installation.operator_drops_path, elsewhere.operator_drops_path)
        log = EventLog.open(elsewhere)
        try:
            return log.read_back_many(subjects, {}, timeout_s=timeout_s)
        finally:
            log.close(0.0)
