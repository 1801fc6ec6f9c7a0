"""A list of what is not applied is bounded; a long one is fetched in pages, each a transaction."""

import json

import pytest
from psycopg2.extensions import TRANSACTION_STATUS_IDLE

from consumers.commands.parked import LISTED
from consumers.database.connection import connected
from consumers.projection.operators import Operator
from consumers.projection.unapplied_filter import UnappliedFilter
from consumers.projection.unapplied_records import PART_RECORDS
from tests.support.command import Call, call
from tests.support.postgres import execute
from tests.support.unapplied import list_unapplied

__all__ = ["call"]

pytestmark = pytest.mark.services

NUMBER = 2 * PART_RECORDS + 1
FILL = f"""
    INSERT INTO cua.unapplied_record (log_id, topic, partition, log_offset, state, kind, reason,
        stream, value, appended_at)
    SELECT 'log', 'cua.rollouts', n % 3, n, CASE WHEN n % 10 = 0 THEN 'waiting' ELSE 'parked' END,
        'behind', 'why', 'rollout/' || n % 7, '', now() FROM generate_series(1, {NUMBER}) AS n
"""


def test_every_record_is_listed_in_order_and_no_page_has_them_all(migrated_url: str) -> None:
    execute(migrated_url, FILL)
    with connected(migrated_url, "parked") as connection:
        operator = Operator(connection, "cua")
        pages = list(operator.unapplied_pages(UnappliedFilter()))
        waiting = list_unapplied(operator, "waiting")
        assert connection.get_transaction_status() == TRANSACTION_STATUS_IDLE
    assert [len(page) for page in pages] == [PART_RECORDS, PART_RECORDS, 1]
    assert [(item.partition, item.offset) for page in pages for item in page] == sorted(
        (number % 3, number) for number in range(1, NUMBER + 1)
    )
    assert len(waiting) == NUMBER // 10


def test_a_list_is_bounded_and_says_how_many_more_there_are(call: Call, migrated_url: str) -> None:
    execute(migrated_url, FILL)
    short, some, few = (
        call("parked", "list", *flags)
        for flags in ((), ("--limit", "7"), ("--json", "--state", "waiting", "--limit", "3"))
    )
    assert short.out.count("cua.rollouts/") == LISTED
    assert f"{NUMBER - LISTED:,} more records are not listed; --all lists them" in short.err
    assert some.out.count("cua.rollouts/") == 7
    assert [item["state"] for item in few.json] == ["waiting"] * 3
    assert f"{NUMBER // 10 - 3:,} more records" in few.err
    assert call("parked", "list", "--all").out.count("cua.rollouts/") == NUMBER
    assert "more" not in call("parked", "list", "--all").err


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
    listed = call("parked", "list", "--json", "--all")
    assert len(listed.json) == NUMBER
    assert listed.out == dumps(listed.json) + "\n"
    assert longest < 1_000
