"""Operators' decisions wait for a rebuild, and say so."""

import threading

import pytest

from consumers.database.connection import connected, join_group, session_group
from consumers.errors import LimitExceededError
from consumers.projection.lock_watch import LockWatch
from consumers.projection.operators import Operator
from consumers.rebuild.paused import while_paused
from tests.consumers.projection.test_retry import CALM, project, unknown
from tests.support.logs import logged_events, memory_log

pytestmark = pytest.mark.services


def test_a_retry_beside_a_rebuild_says_to_wait_for_its_end_and_not_to_end_it(
    migrated_url: str,
) -> None:
    project(memory_log(unknown(logged_events("a", shape=CALM), 5)), migrated_url)
    began = threading.Event()
    enough = threading.Event()

    def correct(_: object) -> None:
        began.set()
        enough.wait(60)

    rebuild = threading.Thread(target=while_paused, args=(migrated_url, correct))
    rebuild.start()
    try:
        assert began.wait(30)
        with (
            connected(migrated_url, "parked", {"lock_timeout": "500ms"}) as connection,
            LockWatch(migrated_url, session_group("operator")) as watch,
        ):
            join_group(connection, session_group("operator"))
            operator = Operator(connection, "cua", watch=watch, limit_s=1)
            with pytest.raises(
                LimitExceededError,
                match=r"a rebuild is correcting the tables .*again when it has ended",
            ):
                operator.retry()
    finally:
        enough.set()
        rebuild.join(30)
