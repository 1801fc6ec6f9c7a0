"""A record in another topic than its stream's is in no stream: for a trainer and for the tables."""

import json
from contextlib import closing
from pathlib import Path
from uuid import UUID

from consumers.fold.parse import parse_record
from consumers.log.reader import LogRecord
from producer.emit import Emitter
from producer.log.local import LocalLog
from producer.log.writer import Record
from producer.resume.training_history import read_training_history
from schemas.event import StreamPoint
from schemas.ids import EPOCH_START
from tests.support.emitting import CREATING, REQUESTED, new_subject
from tests.support.example_run import TRAINING, TRAINING_CREATED, TRAINING_STREAM
from tests.support.reading import installation_at


def test_a_record_in_the_partition_of_its_number_in_another_topic_counts_nowhere(
    tmp_path: Path,
) -> None:
    installation, subject = installation_at(tmp_path), new_subject()
    with Emitter.open(installation) as emitter:
        emitter.stream(TRAINING_STREAM).emit(TRAINING_CREATED)
        emitter.stream(subject, training_id=UUID(TRAINING)).emit(REQUESTED)
        emitter.flush(10)
        first = next(value for key, value in emitter.log.read_topic("rollouts", {}) if key)
    kind = {"type": CREATING.TYPE, "dataschema": f"urn:cua:{CREATING.TYPE}:1"}
    second = json.dumps(json.loads(first) | kind | {"sequence": 2, "data": {}}).encode()
    with closing(LocalLog(installation.local_log_path)) as log:
        (at,) = log.append([Record("cua.training", subject, second, TRAINING)])
        log_id = log.log_id
    record = LogRecord(at.topic, at.partition, at.offset, subject, second, EPOCH_START)
    assert parse_record(record, log_id).is_foreign
    with Emitter.open(installation) as emitter:
        history = read_training_history(emitter.log, UUID(TRAINING), start={}, since={})
    assert history.streams[subject].position.point == StreamPoint(1, 1)
