"""Finding a training in a long log: both questions go by an index, whatever the server knows."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

import psycopg2
import pytest

from consumers.database.connection import Cursor, connected
from consumers.database.location import libpq_url
from consumers.projection.training_places import (
    COUNTED,
    FOUND,
    SETTINGS,
    Offsets,
    read_training_places,
)
from schemas.ids import training_id
from tests.reference_fold.histories import Shape
from tests.support.logs import logged_events, memory_log
from tests.support.memory_log import MemoryLog
from tests.support.postgres import execute, one
from tests.support.rebuilding import project, run

pytestmark = pytest.mark.services

A, NOBODY = training_id("a"), training_id("nobody")
NUM_BLOCKS = 100_000
OWN_BLOCK = 77_777
# Committed for good at once: VACUUM takes no page for visible before.
FILL = f"""
    SET LOCAL synchronous_commit = on;
    INSERT INTO cua.training_block SELECT 'cua.training', n % 4, n / 4,
        CASE WHEN n = {OWN_BLOCK} THEN '["{A}"]'
        ELSE json_build_array(md5((n / 100)::text)::uuid, md5((n / 700)::text)::uuid) END::jsonb
        FROM generate_series(0, {NUM_BLOCKS - 1}) AS n;
    INSERT INTO cua.projection SELECT 1, '{A}', 1, 'x', 'log' WHERE NOT EXISTS
        (SELECT FROM cua.projection);
    INSERT INTO cua.reader_position (topic, partition, next_offset, num_events, num_duplicates,
        indexed_from) SELECT 'cua.training', n, {NUM_BLOCKS // 4 * 128}, 0, 0, 0
        FROM generate_series(0, 3) AS n
"""
INDEX = "SELECT pg_get_indexdef('cua.ix_training_block_trainings'::regclass)"
TINY = Shape(steps=1, groups=1, group_size=1, turns=1, has_trouble=False)


class Plan(NamedTuple):
    """How PostgreSQL answered."""

    nodes: set[tuple[str, str]]
    """(what, of which table or by which index)."""
    num_pages: int
    """That it looked at."""


def explained(cursor: Cursor, query: str, *parameters: object) -> Plan:
    cursor.execute("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + query, parameters)
    row = cursor.fetchone()
    assert row is not None
    top = row[0][0]["Plan"]
    nodes = {
        (node["Node Type"], node.get("Index Name") or node["Relation Name"])
        for node in walk(top)
        if "Index Name" in node or "Relation Name" in node
    }
    return Plan(nodes, top["Shared Hit Blocks"] + top["Shared Read Blocks"])


def walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from walk(child)


def vacuum(url: str) -> None:
    with closing(psycopg2.connect(libpq_url(url))) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE cua.training_block")


@pytest.mark.parametrize("is_analyzed", [False, True])
def test_neither_question_scans_the_table(is_analyzed: bool, migrated_url: str) -> None:
    execute(migrated_url, FILL)
    if is_analyzed:
        vacuum(migrated_url)
    num_pages = one(migrated_url, "SELECT pg_relation_size('cua.training_block') / 8192")
    assert isinstance(num_pages, int)
    assert num_pages > 1_500
    with connected(migrated_url, "test", SETTINGS) as connection, connection.cursor() as cursor:
        found = explained(cursor, FOUND.format(schema="cua"), [str(A), "*"])
        none = explained(cursor, FOUND.format(schema="cua"), [str(NOBODY), "*"])
        counted = explained(cursor, COUNTED.format(schema="cua"))
    for plan in (found, none):
        assert ("Bitmap Index Scan", "ix_training_block_trainings") in plan.nodes
        assert not {what for what, _ in plan.nodes} & {"Seq Scan", "Index Scan"}
        assert plan.num_pages < 20
    of_blocks = {node for node in counted.nodes if "training_block" in node[1]}
    assert not {what for what, _ in of_blocks} & {"Seq Scan"}
    assert "pk_training_block" in {name for _, name in of_blocks}
    if is_analyzed:
        assert of_blocks == {("Index Only Scan", "pk_training_block")}
        assert counted.num_pages < num_pages / 2

    places = read_training_places(migrated_url, A)
    assert [partition.indexed for partition in places.partitions] == [Offsets(0, 25_000 * 128)] * 4
    block = OWN_BLOCK // 4
    own = [Offsets(block * 128, (block + 1) * 128)]
    assert [partition.found for partition in places.partitions] == [[], own, [], []]
    assert read_training_places(migrated_url, NOBODY).partitions[1].found == []


def test_a_migration_and_a_rebuild_make_the_same_index(migrated_url: str) -> None:
    migrated = one(migrated_url, INDEX)
    assert json.dumps(migrated).count("USING gin (trainings) WITH (fastupdate=off)") == 1
    log: MemoryLog = memory_log(logged_events("a", shape=TINY), MemoryLog())
    project(log, migrated_url)
    run(log, migrated_url)
    assert one(migrated_url, INDEX) == migrated
