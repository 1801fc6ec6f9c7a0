"""Several processes fill the tables as one would."""

import os
from pathlib import Path
from uuid import UUID

import pytest

from consumers.errors import CuaProjectError
from consumers.fold.parse import parse_record
from consumers.log.local import LocalLogReader
from consumers.log.reader import TopicPartition
from consumers.projection.loop import ProjectionLoop
from consumers.rebuild.parallel import Parallel, divide
from consumers.rebuild.replay import without_stream
from consumers.rebuild.verify import verify
from schemas.installation import Installation, read_installation
from tests.reference_fold.comparison import database_tables, differences, plain_tables
from tests.reference_fold.histories import LoggedEvent, Shape
from tests.reference_fold.reference import fold
from tests.support.logs import logged_events, write_local_log
from tests.support.memory_log import MemoryLog

SHAPE = Shape(steps=2, groups=2, group_size=3, turns=3)


@pytest.fixture
def events() -> list[LoggedEvent]:
    return logged_events("a", "b", "c", shape=SHAPE)


@pytest.fixture
def installation(events: list[LoggedEvent]) -> Installation:
    found = read_installation(os.environ)
    write_local_log(found.local_log_path, events)
    return found


def open_log(path: Path) -> LocalLogReader:
    return LocalLogReader(path, topic_prefix="cua.")


def test_work_is_divided_by_length_and_nothing_is_left_out() -> None:
    partitions = [TopicPartition("t", number) for number in range(4)]
    until = dict(zip(partitions, (100, 60, 50, 7), strict=True))

    shards = divide({partitions[3]: 7}, until, 2)

    assert shards == [{partitions[0]: 100}, {partitions[1]: 60, partitions[2]: 50}]
    assert divide(until, until, 2) == []


def test_a_process_stops_before_a_record_without_a_stream_but_not_before_a_foreign_one() -> None:
    log = MemoryLog()
    name = f"rollout/{UUID(int=1)}"
    own = log.append(name, b"")
    foreign = log.append(name, b"", partition=(own.partition + 1) % 3)
    nameless = log.append(None, b"", partition=0)
    decided = log.append(f"record/{UUID(int=1)}", b"")

    found = [
        without_stream([parse_record(record, log.log_id)])
        for record in (own, foreign, nameless, decided)
    ]

    assert found[:2] == [None, None]
    assert found[2] == f"cua.rollouts/0 offset {nameless.offset} names no stream"
    assert found[3] is not None


@pytest.mark.services
def test_a_projector_that_is_far_behind_catches_up_with_several_processes(
    migrated_url: str, installation: Installation, events: list[LoggedEvent]
) -> None:
    parallel = Parallel(installation, 2, worthwhile_records=1).fill

    report = ProjectionLoop(
        open_log(installation.local_log_path), migrated_url, parallel=parallel
    ).run_once()

    assert report.events == len(events)
    reference = fold((event.subject, event.value) for event in events)
    assert differences(plain_tables(reference.tables), database_tables(migrated_url)) == []


@pytest.mark.services
def test_the_failure_of_one_process_is_raised_in_the_process_that_started_it(
    migrated_url: str, installation: Installation
) -> None:
    reader = open_log(installation.local_log_path)
    until = reader.end_offsets(reader.partitions())

    parallel = Parallel(installation, 2, worthwhile_records=1)

    with pytest.raises(CuaProjectError, match="a process filling the schema nowhere failed: "):
        parallel.fill(migrated_url, "nowhere", {}, until)


@pytest.mark.services
def test_processes_end_when_they_are_told_to_stop(
    migrated_url: str, installation: Installation
) -> None:
    reader = open_log(installation.local_log_path)
    until = reader.end_offsets(reader.partitions())

    parallel = Parallel(installation, 2, worthwhile_records=1)
    assert parallel.fill(migrated_url, "cua", {}, until, keep_going=lambda: False) == 0

    ProjectionLoop(reader, migrated_url).run_once()
    assert verify(reader, migrated_url).equal
