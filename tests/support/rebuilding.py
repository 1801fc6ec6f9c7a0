"""What tests of rebuilds do to the tables: project, rebuild, and ask PostgreSQL."""

from consumers.database.connection import connected
from consumers.projection.loop import ProjectionLoop
from consumers.rebuild.rebuild import rebuild
from tests.support.memory_log import MemoryLog, MemoryReader


def project(log: MemoryLog, url: str) -> None:
    """Up to the log's end."""
    ProjectionLoop(MemoryReader(log), url).run_once()


def run(log: MemoryLog, url: str) -> None:
    """Rebuild and swap."""
    assert rebuild(MemoryReader(log), url).swapped


def execute(url: str, statement: str) -> None:
    """A statement in a transaction of its own."""
    with connected(url, "test") as connection, connection, connection.cursor() as cursor:
        cursor.execute(statement)


def one(url: str, query: str) -> object:
    """The first row, or its only value; None when there is none."""
    with connected(url, "test") as connection, connection, connection.cursor() as cursor:
        cursor.execute(query)
        row = cursor.fetchone()
        return None if row is None else row[0] if len(row) == 1 else row
