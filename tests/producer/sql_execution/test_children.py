"""Processes that execute SQL end, or are stopped or killed from outside: what the caller sees."""

import gc
import os
import signal
from dataclasses import asdict
from time import monotonic

import pytest

from producer.sql_execution import Limits, Setup, SqlRefusedError, open_throw_away
from producer.sql_execution.children import CHILDREN, Child, ChildEndedError, Fields
from producer.sql_execution.database import MEGABYTE
from producer.sql_execution.sqlite import SqliteDatabase
from tests.producer.sql_execution.hostile import TAKES_MINUTES

TABLE = Setup("CREATE TABLE t (id INT, name TEXT)")
TWO = Setup("INSERT INTO t VALUES (?, ?)", ((1, "a"), (2, None)))
OWN_MEMORY = 65 * MEGABYTE
"""Of no other test's processes, so that the one that is lent is the one that was given back."""


def child_of(database: SqliteDatabase) -> Child:
    assert database._child is not None
    return database._child


@pytest.mark.parametrize(
    "num_characters", [10, 1_000_000], ids=["small", "more than a socket holds"]
)
def test_a_stopped_process_is_given_up_when_the_time_is_over(num_characters: int) -> None:
    child = Child(OWN_MEMORY)
    assert child.ask({"op": "close"}, 300) == {}
    os.kill(child.pid, signal.SIGSTOP)
    begun_s = monotonic()
    with pytest.raises(ChildEndedError, match=r"no answer within 0\.5 s"):
        child.ask({"op": "execute", "sql": "x" * num_characters}, 0.5)
    assert 0.5 <= monotonic() - begun_s < 60
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)


def test_a_request_larger_than_a_sockets_buffer_is_answered() -> None:
    rows = [[number, "x" * 90] for number in range(20_000)]
    child = Child(OWN_MEMORY)
    setup = [
        {"sql": TABLE.sql, "rows": None},
        {"sql": "INSERT INTO t VALUES (?, ?)", "rows": rows},
    ]
    limits = {"limits": {"memory_bytes": OWN_MEMORY}}
    assert child.ask({"op": "open", "path": None, "setup": setup, **limits}, 300) == {}
    assert child.ask({"op": "table", "sql": "SELECT id FROM t"}, 300)["rows"][-1] == [19_999]
    child.kill()


def test_a_process_that_ends_amid_a_large_request_is_reported_as_ended() -> None:
    child = Child(OWN_MEMORY)
    assert child.ask({"op": "close"}, 300) == {}
    os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(ChildEndedError, match="ended with -9") as raised:
        child.ask({"op": "execute", "sql": "x" * 1_000_000}, 300)
    assert raised.value.reason == "ended"


def test_a_process_killed_from_outside_costs_no_statement_and_no_change() -> None:
    database = open_throw_away([TABLE, TWO])
    database.execute("DELETE FROM t WHERE id = 1")
    os.kill(child_of(database).pid, signal.SIGKILL)
    assert database.execute("SELECT id FROM t").rows == ((2,),)
    os.kill(child_of(database).pid, signal.SIGKILL)
    assert database.table_rows("t", ["id"]) == ((2,),)
    database.close()


def test_a_process_killed_while_nobody_used_it_is_replaced() -> None:
    limits = Limits(memory_bytes=OWN_MEMORY)
    database = open_throw_away([TABLE], limits)
    kept = child_of(database).pid
    database.close()
    os.kill(kept, signal.SIGKILL)
    database = open_throw_away([TABLE, TWO], limits)
    assert child_of(database).pid != kept
    assert len(database.table_rows("t", ["id"])) == 2
    database.close()


def test_a_process_whose_statement_takes_too_much_cpu_time_ends_itself() -> None:
    child = Child(OWN_MEMORY)
    limits = {**asdict(Limits(memory_bytes=OWN_MEMORY)), "time_s": 0.1}
    opening: Fields = {"op": "open", "path": None, "setup": [], "limits": limits}
    assert child.ask(opening, 300) == {}
    with pytest.raises(ChildEndedError) as raised:
        child.ask({"op": "execute", "sql": TAKES_MINUTES}, 300)
    assert raised.value.reason == "cpu time"


def test_a_statement_that_takes_all_its_time_is_asked_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "producer.sql_execution.sqlite")
    database = open_throw_away([TABLE, TWO], Limits(time_s=0.3))
    with pytest.raises(SqlRefusedError, match=r"longer than 0\.3 s"):
        database.execute(TAKES_MINUTES)
    # On a busy machine the answer may be waited for in vain before.
    assert sum("ended with -27" in record.getMessage() for record in caplog.records) <= 1
    database.close()


def test_no_process_and_no_descriptor_is_left_after_many_sessions() -> None:
    limits = Limits(memory_bytes=OWN_MEMORY)
    open_throw_away([TABLE], limits).close()
    CHILDREN.end()
    gc.collect()  # of descriptors of earlier tests, else some are closed meanwhile
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # no Path of a descriptor is kept
    for _ in range(100):
        open_throw_away([TABLE, TWO], limits).close()
    kept = CHILDREN.borrow(OWN_MEMORY)
    kept.kill()
    CHILDREN.end()
    assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208
