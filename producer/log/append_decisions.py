"""Appends operators' decisions to the log; `cua-project parked drop` runs it as a process.

    python -m producer.log.append_decisions LOG_ID < decisions.jsonl

Straight to where others read them, not through a spool: once it ends well they are in the log. One
JSON object per line of stdin; on stdout one with `appended`, the coordinates, or with `error` and
`exit_code`. LOG_ID: of the log that the tables were made from.
"""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from uuid import UUID

from producer.errors import CuaTrainError, MismatchError
from producer.log.local import LocalLog
from producer.log.writer import Coordinates, LogWriter, Record, RecordRefusedError
from schemas.catalogue import BY_TYPE, topic_of
from schemas.home import describe_growth
from schemas.ids import new_source, uuid7_text
from schemas.installation import Installation, read_installation
from schemas.wire import encode


def append_decisions(
    installation: Installation, lines: Iterable[str], log_id: str | None = None
) -> Sequence[Coordinates]:
    """Append in order; returns once they are durable.

    LogBrokenError, UnreachableError; MismatchError when the log is not `log_id`, or has no topic of
    this name: none is made.
    """
    now = datetime.now(UTC)
    records, source = [], new_source(now)
    for line in lines:
        fields = json.loads(line)
        subject, training = fields["subject"], fields["trainingid"]
        value = encode(
            BY_TYPE[fields["type"], 1].model_validate(fields["data"]),
            id=uuid7_text(now),
            source=source,
            time=now,
            subject=subject,
            training_id=None if training is None else UUID(training),
        )
        topic = topic_of(subject, installation.topic_prefix)
        records.append(Record(topic, subject, value, training or ""))
    with closing(_open(installation)) as log:
        if log_id is not None and log_id != log.log_id:
            grown = describe_growth(log_id, log.log_id)
            raise MismatchError(grown or _other_log(log_id, log.log_id))
        if absent := {record.topic for record in records} - {at.topic for at in log.ends()}:
            message = f"the log has no topic {', '.join(sorted(absent))}; look at CUA_TOPIC_PREFIX"
            raise MismatchError(message)
        return log.append(records)


def _other_log(tables: str, configured: str) -> str:
    return (
        f"the tables were made from the log {tables}, and the configured log is {configured}. Look"
        " at KAFKA_BOOTSTRAP_SERVERS, CUA_TOPIC_PREFIX and CUA_HOME"
    )


def _open(installation: Installation) -> LogWriter:
    """MismatchError for a home without a log: none is made."""
    if installation.kafka_bootstrap_servers is not None:
        from producer.log.kafka import KafkaLog

        return KafkaLog(installation, makes_topics=False)
    if not installation.local_log_path.exists():
        message = f"there is no log at {installation.local_log_path}; look at CUA_HOME"
        raise MismatchError(message)
    return LocalLog(installation.local_log_path)


def main() -> None:
    """Decisions of stdin into the log of the environment's installation."""
    try:
        log_id = sys.argv[1] if len(sys.argv) > 1 else None
        appended = append_decisions(read_installation(os.environ), sys.stdin, log_id)
        answer: dict[str, object] = {"appended": [list(at) for at in appended]}
    except CuaTrainError as error:
        answer = {"error": str(error), "exit_code": error.exit_code}
    except RecordRefusedError as error:
        answer = {"error": f"{error}. Those before it are there", "exit_code": 1}
    print(json.dumps(answer))  # noqa: T201  # the answer of this process


if __name__ == "__main__":
    main()
