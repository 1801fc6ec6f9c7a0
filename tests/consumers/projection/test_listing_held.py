"""A long list of held records is fetched in parts, so that its session is never taken for dead."""

import json

import psycopg2
import pytest

from consumers.database.connection import connected
from consumers.database.location import libpq_url
from consumers.projection.held_records import PART_RECORDS, list_held
from tests.support.command import Call, call
from tests.support.postgres import execute

__all__ = ["call"]

pytestmark = pytest.mark.services

NUMBER = 2 * PART_RECORDS + 1
FILL = f"""
    INSERT INTO cua.held_record (log_id, topic, partition, log_offset, held_as, kind, reason,
        stream, value, appended_at)
    SELECT 'log', 'cua.rollouts', n % 3, n, CASE WHEN n % 10 = 0 THEN 'waiting' ELSE 'parked' END,
        'behind', 'why', 'rollout/' || n % 7, '', now() FROM generate_series(1, {NUMBER}) AS n
"""
LAST_QUERY = "SELECT query FROM pg_stat_activity WHERE pid = %s"


def test_every_record_is_listed_in_order_and_no_query_returns_them_all(migrated_url: str) -> None:
    execute(migrated_url, FILL)
    with (
        connected(migrated_url, "parked") as connection,
        psycopg2.connect(libpq_url(migrated_url)) as other,
        other.cursor() as looking,
    ):
        with connection, connection.cursor() as cursor:
            found = list_held(cursor, "cua", None)
            looking.execute(LAST_QUERY, (connection.info.backend_pid,))
            last = looking.fetchone()
            waiting = list_held(cursor, "cua", "waiting")
        # A server that sends all at once has nothing left to be asked for, and waits.
        assert last is not None
        assert last[0].startswith(("FETCH", "CLOSE"))
    assert [(one.partition, one.offset) for one in found] == sorted(
        (number % 3, number) for number in range(1, NUMBER + 1)
    )
    assert len(waiting) == NUMBER // 10


def test_the_array_for_scripts_is_never_in_memory_as_a_whole(
    call: Call, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("parked", "list", "--json").out == "[]\n"
    execute(migrated_url, FILL)
    longest = 0
    dumps = json.dumps

    def measured(value: object) -> str:
        nonlocal longest
        text = dumps(value)
        longest = max(longest, len(text))
        return text

    monkeypatch.setattr(json, "dumps", measured)
    listed = call("parked", "list", "--json")
    assert len(listed.json) == NUMBER
    assert listed.out == dumps(listed.json) + "\n"
    assert longest < 1_000
