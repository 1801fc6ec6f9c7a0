"""Hostile SQL: an error text or bounded rows, in time, in bounded memory, with no file made."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from producer.agents import AGENTS
from producer.sql_execution import Limits, Setup, SqlRefusedError, open_throw_away
from producer.sql_execution.children import CHILDREN, MAX_IDLE, Children
from producer.sql_execution.database import MEGABYTE
from producer.sql_execution.sqlite import BUSY, GRACE_S, SqliteDatabase
from tests.producer.sql_execution.hostile import ALLOWED, HOSTILE, TAKES_MINUTES

SETUP = (
    Setup("CREATE TABLE t (id INT, name TEXT)"),
    Setup("INSERT INTO t VALUES (?, ?)", ((1, "a"), (2, "b"), (3, None))),
)
LIMITS = Limits(time_s=3.0)
SHORT = Limits(time_s=0.5)
"""For the statement that takes all of its time."""


def peak_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise AssertionError


@pytest.fixture
def database(sql: str) -> Iterator[SqliteDatabase]:
    database = open_throw_away(SETUP, SHORT if sql == TAKES_MINUTES else LIMITS)
    yield database
    database.close()


@pytest.fixture
def watched_folders() -> Iterator[None]:
    folders = [Path("/tmp"), Path("/var/tmp"), Path.cwd()]  # noqa: S108  # where files would be
    yield
    found = [str(path) for folder in folders for path in folder.glob("*cua-train-hostile*")]
    assert found == []


@pytest.mark.usefixtures("watched_folders")
@pytest.mark.parametrize(("sql", "expected"), HOSTILE, ids=lambda value: str(value)[:40])
def test_hostile_sql_is_answered_in_time_and_in_bounded_memory(
    database: SqliteDatabase, sql: str, expected: str
) -> None:
    child = database._child
    assert child is not None
    begun_s = monotonic()
    if expected == ALLOWED:
        assert len(database.execute(sql).rows) <= LIMITS.num_rows
    else:
        with pytest.raises(SqlRefusedError, match=re.escape(expected)):
            database.execute(sql)
    assert monotonic() - begun_s < BUSY * LIMITS.time_s + GRACE_S
    if child is database._child:
        assert peak_bytes(child.pid) < LIMITS.memory_bytes + 100 * MEGABYTE
    # The session goes on with the table as it was.
    assert len(database.table_rows("t", ["id", "name"])) == 3
    assert database.execute("SELECT count(*) FROM t").rows == ((3,),)


def test_at_least_sixty_attacks_are_tried() -> None:
    assert len(HOSTILE) >= 60


def test_a_child_makes_no_file_even_when_it_is_told_to(tmp_path: Path) -> None:
    """RLIMIT_FSIZE holds below every guard."""
    target = tmp_path / "made.db"
    child = CHILDREN.borrow(64 * MEGABYTE)
    setup = [
        {"sql": f"ATTACH '{target}' AS made", "rows": None},
        {"sql": "CREATE TABLE made.t (x)", "rows": None},
    ]
    limits = {"limits": {"memory_bytes": 64 * MEGABYTE}}
    answer = child.ask({"op": "open", "path": None, "setup": setup, **limits}, 60)
    child.kill()
    assert "failed" in answer
    assert not target.exists() or target.stat().st_size == 0


def test_a_child_ends_when_its_parent_is_killed() -> None:
    child = CHILDREN.borrow(64 * MEGABYTE)
    child._stream.close()
    assert child._process.wait(10) == 0
    child.kill()
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)


def test_sessions_of_the_small_policy_that_end_together_keep_their_processes() -> None:
    """Else every batch of them starts most of its processes again."""
    at_once = AGENTS["dbbench"].demo_preset["max_concurrent_rollouts"]
    assert isinstance(at_once, int)
    assert at_once <= MAX_IDLE
    children = Children()
    try:
        first = [children.borrow(64 * MEGABYTE) for _ in range(20)]
        for child in first:
            children.give_back(child)
        again = [children.borrow(64 * MEGABYTE) for _ in range(20)]
        assert {item.pid for item in again} == {item.pid for item in first}
        for child in again:
            children.give_back(child)
    finally:
        children.end()
