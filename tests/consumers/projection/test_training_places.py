"""Where a training's records are: true at every position, whole or refused, and rebuilt equal."""

from uuid import UUID

import pytest

from consumers.database.connection import connected
from consumers.database.migrate import migrate
from consumers.errors import MismatchError
from consumers.projection import training_places
from consumers.projection.adoption import adopt_log
from consumers.projection.training_places import Offsets, TrainingPlaces, read_training_places
from consumers.tables import PROJECTION_VERSION, SCHEMA
from schemas.ids import training_id
from tests.reference_fold.histories import Shape
from tests.support.logs import logged_events, memory_log
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.postgres import execute, one
from tests.support.rebuilding import project, run

pytestmark = pytest.mark.services
CALM = Shape(steps=1, groups=1, group_size=1, turns=2, has_trouble=False)
A, B = training_id("a"), training_id("b")
BEFORE_BLOCKS = "0004"
"""The last revision without the table of blocks."""
BLOCKS = (
    "SELECT json_agg(json_build_array(topic, partition, block, trainings) ORDER BY topic,"
    " partition, block)::text FROM cua.training_block"
)


def places(url: str, of: UUID | None = A) -> TrainingPlaces:
    return read_training_places(url, of)


def append(log: MemoryLog, name: str) -> None:
    memory_log(logged_events(name, shape=CALM), log)


def fill(log: MemoryLog, to: int) -> None:
    """Records that are no event and name nobody, up to this offset of the training topic."""
    first = log.append(None, b"", "cua.training").offset
    for _ in range(first + 1, to):
        log.append(None, b"", "cua.training")


def found(url: str, of: UUID | None = A) -> list[Offsets]:
    (partition,) = (
        partition for partition in places(url, of).partitions if partition.topic == "cua.training"
    )
    return partition.found


def test_blocks_of_128_offsets_that_name_a_training_up_to_the_position(migrated_url: str) -> None:
    log = MemoryLog(num_partitions=1)
    append(log, "a")
    project(log, migrated_url)
    size = log.records[-1].offset + 1 if log.records[-1].topic == "cua.training" else None
    end = sum(record.topic == "cua.training" for record in log.records)
    assert size in {None, end}
    assert found(migrated_url) == [Offsets(0, end)]
    assert found(migrated_url, B) == []
    fill(log, 514)
    append(log, "b")
    end = sum(record.topic == "cua.training" for record in log.records)
    assert found(migrated_url, B) == []
    project(log, migrated_url)
    assert found(migrated_url) == [Offsets(0, 128)]
    assert found(migrated_url, B) == [Offsets(512, end)]
    known = places(migrated_url)
    last = max(log.records, key=lambda record: (record.key == f"training/{A}", record.appended_at))
    assert f'"epoch":{known.epoch},"sequence":{known.sequence},'.encode() in last.value
    assert places(migrated_url, training_id("c"))[1:3] == (0, 0)


def test_a_rebuild_and_any_batches_give_the_same_index(migrated_url: str) -> None:
    log = MemoryLog()
    for name in ("a", "b", "c"):
        append(log, name)
        log.append(f"training/{A}", f"no event of {A} and {B}".encode(), "cua.training")
        project(log, migrated_url)
    live = one(migrated_url, BLOCKS)
    assert str(A) in str(live)
    run(log, migrated_url)
    assert one(migrated_url, BLOCKS) == live


def test_they_are_the_live_tables() -> None:
    assert training_places.SCHEMA == SCHEMA


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM cua.training_block WHERE block = 0 AND topic = 'cua.training'",
        "TRUNCATE cua.training_block",
        "DELETE FROM cua.training_block WHERE block = 1",
    ],
)
def test_an_index_that_is_not_whole_is_refused(migrated_url: str, damage: str) -> None:
    log = MemoryLog(num_partitions=1)
    append(log, "a")
    fill(log, 260)
    project(log, migrated_url)
    execute(migrated_url, damage)
    with pytest.raises(MismatchError, match=r"is not whole: .*`cua-project rebuild`"):
        places(migrated_url, B)


@pytest.mark.parametrize("table", ["training", "stream_position"])
def test_an_index_without_a_training_that_has_rows_is_refused(
    migrated_url: str, table: str
) -> None:
    """Whichever of the two the damage left."""
    log = MemoryLog(num_partitions=1)
    append(log, "a")
    project(log, migrated_url)
    execute(
        migrated_url, f"DELETE FROM cua.{table}; UPDATE cua.training_block SET trainings = '[]'"
    )
    with pytest.raises(MismatchError, match="names no block for training"):
        places(migrated_url)


def test_another_log_is_indexed_from_its_beginning(migrated_url: str) -> None:
    log, other = MemoryLog(num_partitions=1), MemoryLog("other", num_partitions=1)
    fill(other, 200)
    for each in (log, other):
        append(each, "a")
    project(log, migrated_url)
    with connected(migrated_url, "adopt") as connection:
        adopt_log(connection, "cua", MemoryReader(other), lambda: None)
    assert places(migrated_url).partitions == []
    project(other, migrated_url)
    assert places(migrated_url).log_id == "other"
    end = sum(record.topic == "cua.training" for record in other.records)
    assert found(migrated_url) == [Offsets(128, end)]


def test_what_was_read_before_the_migration_is_not_claimed(migrated_url: str) -> None:
    log = MemoryLog(num_partitions=1)
    append(log, "a")
    project(log, migrated_url)
    read = {
        (partition.topic, partition.indexed.stop) for partition in places(migrated_url).partitions
    }
    migrate(migrated_url, BEFORE_BLOCKS)
    migrate(migrated_url)
    # Later migrations ask for a rebuild, which would fill the blocks.
    execute(migrated_url, f"UPDATE cua.projection SET version = {PROJECTION_VERSION}")
    assert {
        (partition.topic, partition.indexed.start) for partition in places(migrated_url).partitions
    } == read
    assert found(migrated_url) == []
    append(log, "b")
    project(log, migrated_url)
    (start, stop), *others = found(migrated_url, B)
    assert not others
    assert ("cua.training", start) in read
    assert stop == sum(record.topic == "cua.training" for record in log.records)
    assert found(migrated_url) == []
    run(log, migrated_url)
    assert found(migrated_url) == found(migrated_url, B) == [Offsets(0, stop)]
