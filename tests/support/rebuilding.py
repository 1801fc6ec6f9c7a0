"""What tests of rebuilds do to the tables: project and rebuild."""

from consumers.projection.loop import ProjectionLoop
from consumers.rebuild.rebuild import rebuild
from tests.support.memory_log import MemoryLog, MemoryReader


def project(log: MemoryLog, url: str) -> None:
    """Up to the log's end."""
    ProjectionLoop(MemoryReader(log), url).run_once()


def run(log: MemoryLog, url: str) -> None:
    """Rebuild and swap."""
    assert rebuild(MemoryReader(log), url).swapped
