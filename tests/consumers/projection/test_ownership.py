"""What a stream has created is its own: its row committed, in flight, or written long ago."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from consumers.database.connection import Connection, connect
from consumers.fold.parse import ParsedRecord, parse_record
from consumers.projection.schema import PreparedBatch, ProjectedSchema
from tests.reference_fold.histories import Shape, history
from tests.support.memory_log import MemoryLog


@pytest.fixture
def connection(migrated_url: str) -> Iterator[Connection]:
    with closing(connect(migrated_url, "test")) as opened:
        yield opened


def training_with_a_dropped_group() -> list[ParsedRecord]:
    """The training's own events, up to the one that drops its group."""
    shape = Shape(steps=1, groups=1, group_size=1, has_trouble=False)
    events = history("a", 1, shape)
    own = [event for event in events if event.subject.startswith("training/")]
    last = next(at for at, one in enumerate(own) if b'"cua.group.dropped"' in one.value)
    log = MemoryLog(num_partitions=1)
    return [parse_record(log.append(item.subject, item.value)) for item in own[: last + 1]]


def num_unapplied(prepared: PreparedBatch) -> int:
    return sum("unapplied_record" in command.statement for command in prepared.commands)


def test_a_group_is_its_streams_own_while_the_batch_that_made_and_ended_it_is_in_flight(
    connection: Connection,
) -> None:
    *earlier, dropped = training_with_a_dropped_group()
    schema = ProjectedSchema(connection, "cua", "memory")
    schema.load()
    first = schema.fold(earlier, connection)
    second = schema.fold([dropped], connection)

    assert (num_unapplied(first), num_unapplied(second)) == (0, 0)


def test_a_group_is_its_streams_own_long_after_it_has_ended(connection: Connection) -> None:
    *earlier, dropped = training_with_a_dropped_group()
    schema = ProjectedSchema(connection, "cua", "memory")
    schema.load()
    schema.apply(earlier)
    schema = ProjectedSchema(connection, "cua", "memory")
    schema.load()

    assert num_unapplied(schema.fold([dropped], connection)) == 0
