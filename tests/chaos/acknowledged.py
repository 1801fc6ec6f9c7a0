"""What emitters had acknowledged, in synced files of their own, and how the driver reads them.

A line per batch. Acknowledgements come in order, so the last of a stream stands for all before it.
"""

import json
import os
from pathlib import Path
from typing import NamedTuple


class Report(NamedTuple):
    """One line of an emitter's file."""

    source: str
    """The writer as its events name it."""
    training: int
    """The training it is at."""
    at: int
    """How many of all its events its emitter has behind it."""
    streams: dict[str, tuple[int, int]]
    """Stream -> (epoch, sequence) of the last event acknowledged."""
    begins: bool = False
    """The training begins, or goes on in this process."""


class ReportFile:
    """For the emitter: a line is on disk when `write` returns."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, report: Report) -> None:
        """Append a line and sync it."""
        os.write(self._descriptor, json.dumps(report).encode() + b"\n")
        os.fdatasync(self._descriptor)


class Reports:
    """For the driver: reads on in every file of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        self.acknowledged: dict[tuple[str, str, int], int] = {}
        """(stream, source, epoch) -> last sequence."""
        self.at: dict[int, int] = {}
        """Emitter -> events behind it."""
        self.trainings: dict[int, dict[int, int]] = {}
        """Emitter -> training that it has begun -> its events before that."""

    def path(self, emitter: int, life: int) -> Path:
        """The file of an emitter's process."""
        return self._folder / f"{emitter}-{life}.jsonl"

    def read(self) -> int:
        """Read what is new; how many events all emitters have behind them."""
        for path in sorted(self._folder.glob("*.jsonl")):
            emitter = int(path.name.partition("-")[0])
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                for line in file:
                    if not line.endswith(b"\n"):
                        break  # cut short by a kill, or not yet whole
                    self._read[path] = self._read.get(path, 0) + len(line)
                    self._take(emitter, Report(*json.loads(line)))
        return sum(self.at.values())

    def _take(self, emitter: int, report: Report) -> None:
        self.at[emitter] = max(self.at.get(emitter, 0), report.at)
        if report.begins:
            self.trainings.setdefault(emitter, {}).setdefault(report.training, report.at)
        for subject, (epoch, sequence) in report.streams.items():
            key = (subject, report.source, epoch)
            self.acknowledged[key] = max(self.acknowledged.get(key, 0), sequence)

    @property
    def num_acknowledged(self) -> int:
        """Events that were acknowledged to any writer."""
        return sum(self.acknowledged.values())
