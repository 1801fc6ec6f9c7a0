"""Whatever bytes a record holds, PostgreSQL's answer to it stops nothing but its own stream."""

import os
from collections import Counter
from contextlib import closing
from random import Random

from consumers.database.connection import connect, connected
from consumers.fold.parse import parse_record
from consumers.projection.operators import Operator
from consumers.projection.pipeline import Pipeline
from consumers.projection.schema import ProjectedSchema
from consumers.rebuild.rebuild import rebuild
from tests.reference_fold.comparison import database_tables, differences, plain_tables
from tests.reference_fold.reference import fold
from tests.support.fuzzed_log import FuzzedLog, fuzzed_log
from tests.support.memory_log import MemoryLog, MemoryReader
from tests.support.unapplied import list_unapplied

SEED = int(os.environ.get("CUA_TEST_SEED", "20261122"))
"""Printed when a test fails; CUA_TEST_SEED=<n> runs another."""
NUM_CASES = 2_500


def logged(fuzzed: FuzzedLog) -> MemoryLog:
    """The same log with offsets; a record without a stream lies in any partition."""
    log = MemoryLog(num_partitions=4)
    for record in fuzzed.records:
        log.append(record.key, record.value, f"cua.{record.topic_name}")
    return log


def project(url: str, log: MemoryLog, random: Random) -> None:
    """In batches of many sizes, with a commit in flight while the next batch is folded."""
    with closing(connect(url, "test")) as connection, closing(connect(url, "test")) as lookups:
        lookups.autocommit = True
        schema = ProjectedSchema(connection, "cua", log.log_id)
        schema.load()
        left = log.records
        with Pipeline(schema, lookups) as pipeline:
            while left:
                size = random.choice([1, 3, 40, 700, 2_000])
                pipeline.send([parse_record(record, log.log_id) for record in left[:size]])
                left = left[size:]
            pipeline.settle()


def test_mutated_records_are_applied_or_set_aside_in_postgresql_and_the_rest_equals_the_reference(
    migrated_url: str,
) -> None:
    fuzzed = fuzzed_log(SEED, NUM_CASES)
    print(f"seed {SEED}: {fuzzed.num_cases} cases, {len(fuzzed.records)} records")  # noqa: T201  # replays a failure
    log = logged(fuzzed)

    project(migrated_url, log, Random(SEED))

    with connected(migrated_url, "test") as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum(num_events + num_duplicates), sum(next_offset) FROM cua.reader_position"
        )
        taken, position = cursor.fetchone() or (0, 0)
        cursor.execute("SELECT kind, count(*) FROM cua.unapplied_record GROUP BY kind")
        unapplied = Counter(dict(cursor.fetchall()))
        cursor.execute(
            "SELECT stream, epoch || '/' || sequence, parked_since, num_waiting FROM"
            " cua.stream_position WHERE stream = ANY(%s)",
            (list(fuzzed.untouched),),
        )
        found = {name: rest for name, *rest in cursor.fetchall()}
    assert position == len(log.records)
    assert taken + unapplied.total() == len(log.records)
    assert found == {name: [last, None, 0] for name, last in fuzzed.untouched.items()}
    with connected(migrated_url, "test") as connection:
        operator = Operator(connection, "cua")
        assert len(list_unapplied(operator)) == unapplied.total()
        operator.retry()
        assert len(list_unapplied(operator)) == unapplied.total()
    report = rebuild(MemoryReader(log), migrated_url)
    assert (report.equal, report.changed) == (True, 0)
    assert whole_streams_equal(fuzzed, log, migrated_url) == []


def whole_streams_equal(fuzzed: FuzzedLog, log: MemoryLog, url: str) -> list[str]:
    """How the rows of the streams without a mutated record differ from the reference fold's."""
    whole = [record for record in log.records if record.key in fuzzed.untouched]
    expected = plain_tables(fold((record.key, record.value) for record in whole).tables)
    found = database_tables(url)
    for table, rows in found.items():
        found[table] = {key: row for key, row in rows.items() if key in expected[table]}
    # These are stated by every training; their times are not of one stream.
    for table in ("task", "validator", "entry"):
        expected[table] = found[table] = {}
    return differences(expected, found)
