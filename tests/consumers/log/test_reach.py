"""A log that has not the next record says why, and what to do."""

import contextlib
from pathlib import Path
from uuid import uuid4

import pytest
from kafka import KafkaAdminClient
from kafka import TopicPartition as KafkaPartition

from consumers.errors import CuaProjectError, MismatchError
from consumers.log.open import open_reader
from consumers.log.reach import out_of_reach
from consumers.log.reader import TopicPartition
from producer.log.kafka import KafkaLog
from schemas.catalogue import TOPIC_NAMES
from tests.consumers.log.test_kafka_topics import write
from tests.support.eventually import eventually
from tests.support.kafka import KafkaService
from tests.support.logs import logged_events
from tests.support.reading import installation_on

A, B = TopicPartition("cua.rollouts", 0), TopicPartition("cua.rollouts", 1)
BEGINNINGS, ENDS = {A: 3, B: 0}, {A: 9, B: 4}


@pytest.mark.parametrize("wanted", [{A: 3, B: 0}, {A: 9, B: 4}, {A: 5}, {}])
def test_a_log_has_every_offset_from_its_beginning_up_to_its_end(
    wanted: dict[TopicPartition, int],
) -> None:
    assert out_of_reach(wanted, BEGINNINGS, ENDS) is None


def test_an_offset_before_the_beginning_was_deleted_and_an_archive_may_have_it() -> None:
    error = out_of_reach({A: 2, B: 0}, BEGINNINGS, ENDS)
    assert type(error) is CuaProjectError
    assert str(error) == (
        "the next record to read is cua.rollouts/0 offset 2, but the partition begins at 3: records"
        " were deleted. With an archive that has them, `cua-project rebuild --archive` makes the"
        " tables"
    )


def test_an_offset_behind_the_end_was_cut_off_and_the_tables_may_be_made_from_the_rest() -> None:
    error = out_of_reach({A: 3, B: 5}, BEGINNINGS, ENDS)
    assert type(error) is MismatchError
    assert str(error) == (
        "the next record to read is cua.rollouts/1 offset 5, but the partition ends at 4: this is"
        " another log, or it was truncated or restored from an older state; `cua-project rebuild"
        " --from-shorter-log` replaces the tables with what it has"
    )


@pytest.mark.services
def test_records_that_are_deleted_while_they_are_read_are_reported_as_before_the_start(
    kafka: KafkaService, tmp_path: Path
) -> None:
    installation = installation_on(kafka.bootstrap_servers, tmp_path, f"t{uuid4().hex[:8]}.")
    log = KafkaLog(installation, [installation.topic_prefix + name for name in TOPIC_NAMES])
    write(log, logged_events("a"), installation.topic_prefix)
    log.close()
    with contextlib.closing(open_reader(installation)) as reader:
        ends = reader.end_offsets(reader.partitions())
        at, end = max(ends.items(), key=lambda item: item[1])
        with pytest.raises(MismatchError, match=rf"offset {end + 1}, .* at {end}: .*truncated"):
            reader.seek({at: end + 1})
        reader.seek({at: 0})
        admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
        admin.delete_records({KafkaPartition(*at): end})
        admin.close()
        with pytest.raises(CuaProjectError, match=rf"begins at {end}: records were deleted\. With"):
            eventually(lambda: bool(reader.poll(10, 0.2)))
        with pytest.raises(CuaProjectError, match=rf"begins at {end}: records were deleted\. With"):
            reader.seek({at: 0})
