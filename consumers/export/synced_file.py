"""A file of an export: durable when it is complete.

The folder that it is in gets its name after that (`consumers.export.export`), so a reader never
finds half a file; one whose writer failed is removed with its folder, and needs no sync.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter
from pathlib import Path


@contextmanager
def synced_file(path: Path) -> Iterator[BufferedWriter]:
    """Open a new file for bytes. Synced on leaving, unless an exception leaves it. OSError."""
    with path.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def write_synced(path: Path, text: str) -> None:
    """A whole file of text; durable on return. OSError."""
    with synced_file(path) as file:
        file.write(text.encode())
