"""Records behind a gap cost the batches after them nothing, and are released when it fills."""

import time
from collections.abc import Sequence
from contextlib import closing
from random import Random

from consumers.database.connection import Connection, connect
from consumers.fold.parse import parse_record
from consumers.log.reader import LogRecord
from consumers.projection.schema import ProjectedSchema
from schemas.training import HeartbeatSent
from tests.reference_fold.histories import History
from tests.reference_fold.writers import LoggedEvent, Shape
from tests.support.memory_log import MemoryLog

NUM_WAITING, NUM_BATCHES = 6_000, 100


def heartbeats(number: int) -> list[LoggedEvent]:
    """A training of so many events."""
    one = History("waiting", Random(1), Shape())
    one.run()
    events = [event for event in one.events if event.subject == one.trainer.subject][:1]
    del one.events[:]
    one.trainer.sequence = 1
    for _ in range(number - 1):
        one.trainer.emit(HeartbeatSent())
    return [*events, *one.events]


def cpu_seconds(schema: ProjectedSchema, records: Sequence[LogRecord]) -> float:
    """One batch per record."""
    started = time.process_time()
    for record in records:
        schema.apply([parse_record(record)])
    return time.process_time() - started


def progress(connection: Connection) -> tuple[int, int, int]:
    with connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT sequence, num_waiting, (SELECT count(*) FROM cua.unapplied_record)::int"
            " FROM cua.stream_position"
        )
        (row,) = cursor.fetchall()
    return tuple(row)


def test_a_batch_costs_the_same_while_thousands_wait_and_all_are_released(
    migrated_url: str,
) -> None:
    events = heartbeats(NUM_WAITING + 2 * NUM_BATCHES + 1)
    missing = events.pop(NUM_BATCHES)
    log = MemoryLog(num_partitions=1)
    records = [log.append(event.subject, event.value) for event in events]
    with closing(connect(migrated_url, "test")) as connection:
        schema = ProjectedSchema(connection, "cua", log.log_id)
        schema.load()
        none_wait = cpu_seconds(schema, records[:NUM_BATCHES])
        schema.apply([parse_record(record) for record in records[NUM_BATCHES:-NUM_BATCHES]])
        waiting = len(records) - 2 * NUM_BATCHES
        assert progress(connection) == (NUM_BATCHES, waiting, waiting)

        all_wait = cpu_seconds(schema, records[-NUM_BATCHES:])

        # Sorting or loading what waits with every batch made it a hundred times.
        assert all_wait < 8 * none_wait + 0.2
        schema.load()
        schema.apply([parse_record(log.append(missing.subject, missing.value))])
        assert progress(connection) == (len(events) + 1, 0, 0)
