"""Writes that survive a power cut: contents and names are on disk when the call returns."""

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Make the folder's entries durable; without this a synced file can lose its name."""
    _sync(folder)


def sync_files(folder: Path) -> None:
    """Make every file directly in the folder durable, contents and names."""
    for path in folder.iterdir():
        if path.is_file():
            _sync(path)
    sync_folder(folder)


def sync_file(path: Path) -> None:
    """Make a file's contents durable; `sync_folder` does so for its name."""
    _sync(path)


def write_durably(path: Path, text: str) -> None:
    """Replace a file atomically: readers see the old text or the new, also after a crash."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text, encoding="utf-8")
    _sync(temporary)
    temporary.replace(path)
    sync_folder(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
