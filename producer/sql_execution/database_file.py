"""A database's file as it lies on the disk: whether it is all of the database, and still the same.

Files are read as they are (`immutable`), without locks, so that a read-only disk will do. What a
writer that is at work, or was killed, left beside the file would be overlooked, and what it writes
meanwhile would be read in parts.
"""

from pathlib import Path
from typing import Final, NamedTuple

JOURNAL_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")
"""First bytes of a rollback journal in force: https://sqlite.org/fileformat2.html#rollbackjournal."""


class FileState(NamedTuple):
    """Two equal states are one content."""

    device: int
    inode: int
    """Another file in its place has another."""
    size_bytes: int
    modified_ns: int
    changed_ns: int
    """Of the content or the status; unlike `modified_ns`, no program can set it back."""


def file_state(path: Path) -> FileState:
    """The state of a file. OSError."""
    status = path.stat()
    return FileState(
        status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    )


def unfinished(path: Path) -> str | None:
    """The companion file that belongs to the database; None: there is none. OSError."""
    wal = path.with_name(path.name + "-wal")
    if wal.is_file() and wal.stat().st_size:
        return (
            f"the database has changes in {wal.name}; close what has it open, or run"
            " `PRAGMA wal_checkpoint(TRUNCATE)`"
        )
    journal = path.with_name(path.name + "-journal")
    if journal.is_file() and _is_in_force(journal):
        return (
            f"the database has a transaction that did not end in {journal.name}; close what has it"
            " open, or read it once with sqlite3, which undoes the transaction"
        )
    return None


def _is_in_force(journal: Path) -> bool:
    with journal.open("rb") as file:
        return file.read(len(JOURNAL_MAGIC)) == JOURNAL_MAGIC
