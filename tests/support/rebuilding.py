"""What tests of rebuilds do to the tables: project and rebuild."""

from collections.abc import Mapping

import pytest

from consumers.log.reader import TopicPartition
from consumers.projection.loop import ProjectionLoop
from consumers.rebuild.rebuild import RebuildReport, rebuild
from tests.support.memory_log import MemoryLog, MemoryReader


def project(log: MemoryLog, url: str) -> None:
    """Up to the log's end."""
    ProjectionLoop(MemoryReader(log), url).run_once()


def run(log: MemoryLog, url: str) -> RebuildReport:
    """Rebuild."""
    return rebuild(MemoryReader(log), url)


class UnreadableReader(MemoryReader):
    """A log whose replay would take long: whatever is refused must be refused before it."""

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        """Nothing may be read."""
        pytest.fail(f"the replay had begun at {positions}")
