"""What a server refuses and a user mends is told with what to do, and not as a bug of ours."""

import psycopg2
import pytest

from consumers.database.connection import connected
from consumers.database.forbidden import forbidden

pytestmark = pytest.mark.services

REFUSED = {
    "SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(60)": (
        "canceling statement due to user request; another session cancelled the statement"
    ),
    "SET work_mem = '64kB'; SET temp_file_limit = '64kB'; SELECT max(x) FROM (SELECT md5(i::text)"
    " AS x FROM generate_series(1, 100000) AS i ORDER BY 1) AS sorted": (
        'temporary file size exceeds "temp_file_limit" (64kB); raise the limit that it names'
    ),
    "DO $$ BEGIN RAISE out_of_memory USING MESSAGE = 'out of shared memory'; END $$": (
        "out of shared memory; give the server more memory, or raise max_locks_per_transaction"
    ),
}


@pytest.mark.parametrize("statement", REFUSED)
def test_limits_and_cancellations_of_the_server_are_told_with_what_to_do(
    migrated_url: str, statement: str
) -> None:
    with connected(migrated_url, "test") as connection, connection.cursor() as cursor:
        with pytest.raises(psycopg2.Error) as refused:
            cursor.execute(statement)
        told = forbidden(refused.value)

    assert told is not None
    assert told.startswith(f"the database refuses this: {REFUSED[statement]}")
