"""Positions move only from where their projector read them, in the log that the tables are of."""

from collections.abc import Iterator

import pytest

from consumers.database.connection import Connection, connected
from consumers.errors import MismatchError
from consumers.fold.order import PartitionProgress
from consumers.log.reader import TopicPartition
from consumers.projection.positions import (
    ProjectionState,
    SupersededError,
    advance,
    load_positions,
    load_state,
    read_state,
    start_positions,
)
from tests.support.memory_log import BEGAN, MemoryLog, MemoryReader

pytestmark = pytest.mark.services
A, B = TopicPartition("cua.rollouts", 0), TopicPartition("cua.rollouts", 1)


@pytest.fixture
def connection(migrated_url: str) -> Iterator[Connection]:
    with connected(migrated_url, "test") as opened:
        yield opened


@pytest.fixture
def state(connection: Connection) -> ProjectionState:
    with connection, connection.cursor() as cursor:
        load_state(cursor, "cua")
    move(connection, read(connection), {A: (0, 5), B: (0, 7)})
    return read(connection)


def read(connection: Connection) -> ProjectionState:
    with connection, connection.cursor() as cursor:
        return read_state(cursor, "cua")


def move(
    connection: Connection,
    state: ProjectionState,
    moves: dict[TopicPartition, tuple[int, int]],
    log_id: str = "memory",
) -> None:
    """One transaction; `moves` are (from, to)."""
    with connection, connection.cursor() as cursor:
        advance(
            cursor,
            "cua",
            state=state,
            log_id=log_id,
            base={at: base for at, (base, _) in moves.items()},
            partitions={
                (at.topic, at.partition): PartitionProgress(after, BEGAN, after - base)
                for at, (base, after) in moves.items()
            },
        )


def positions(connection: Connection) -> dict[TopicPartition, int]:
    with connection, connection.cursor() as cursor:
        return load_positions(cursor, "cua")


def test_positions_move_from_where_they_were_read(
    connection: Connection, state: ProjectionState
) -> None:
    move(connection, state, {A: (5, 6), B: (7, 9)})
    assert positions(connection) == {A: 6, B: 9}


@pytest.mark.parametrize("stale", [0, 4, 6])
def test_one_stale_position_stops_the_whole_batch(
    connection: Connection, state: ProjectionState, stale: int
) -> None:
    with pytest.raises(SupersededError, match="another projector has moved"):
        move(connection, state, {A: (stale, 8), B: (7, 9)})
    assert positions(connection) == {A: 5, B: 7}


def test_positions_of_another_log_do_not_move(
    connection: Connection, state: ProjectionState
) -> None:
    assert state.log_id == "memory"
    with pytest.raises(SupersededError):
        move(connection, state, {A: (5, 6)}, log_id="other")
    assert positions(connection) == {A: 5, B: 7}


def test_a_log_without_a_projected_partition_is_another_log() -> None:
    log = MemoryLog()
    log.append("one", b"{}", A.topic, A.partition)
    assert start_positions({A: 1}, MemoryReader(log)) == {A: 1}
    with pytest.raises(MismatchError, match=r"cua.rollouts/1, which this log does not have"):
        start_positions({A: 1, B: 1}, MemoryReader(log))
