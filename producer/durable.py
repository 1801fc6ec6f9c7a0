"""Writes that survive a power cut: contents and names are on disk when the call returns."""

import os
from pathlib import Path


def sync_file(path: Path) -> None:
    """Make a file's contents durable; `sync_folder` does so for its name."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the folder's entries durable; without this a synced file can lose its name."""
    sync_file(folder)


def write_durably(path: Path, text: str) -> None:
    """Replace a file atomically: readers see the old text or the new, also after a crash."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text, encoding="utf-8")
    sync_file(temporary)
    temporary.replace(path)
    sync_folder(path.parent)
