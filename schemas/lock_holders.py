"""Who holds a lock of a file, for a person who must continue or end that process.

Reads `/proc`, where there is one. Opens no database: closing one would drop this process's own
POSIX locks on it.
"""

import contextlib
import fcntl
from pathlib import Path

LOCKS = Path("/proc/locks")
SQLITE_WRITE_BYTE = 120
"""Of the `-shm` file of a database in WAL mode: locked by its writer (SQLite's WAL_WRITE_LOCK)."""


def write_lock_holder(database: Path) -> str:
    """Who holds the write lock of a SQLite database in WAL mode."""
    return _described(_write_lock_holder(database))


def file_lock_holder(lock_file: Path) -> str:
    """Who holds a lock file (flock)."""
    return _described(_holder(lock_file, 0))


def is_held(lock_file: Path) -> bool:
    """Whether a process holds a lock file (flock). Leaves the file as it is."""
    try:
        # filelock would truncate it, and with it who holds it.
        with lock_file.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def is_held_by_stopped(lock_file: Path) -> bool:
    """Whether a lock file is held by a process that is stopped; False where that is unknown."""
    return stopped_holder(lock_file) is not None


def stopped_holder(lock_file: Path) -> int | None:
    """The process that holds a lock file (flock), if it is stopped; None also where unknown."""
    return _if_stopped(_holder(lock_file, 0))


def stopped_writer(database: Path) -> int | None:
    """The process with the write lock of a SQLite database in WAL mode, if it is stopped."""
    return _if_stopped(_write_lock_holder(database))


def _if_stopped(pid: int | None) -> int | None:
    return pid if pid is not None and _is_stopped(pid) else None


def _write_lock_holder(database: Path) -> int | None:
    return _holder(database.with_name(f"{database.name}-shm"), SQLITE_WRITE_BYTE)


def _holder(path: Path, byte: int) -> int | None:
    """The process with an exclusive lock over this byte; None when that cannot be known."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        inode = path.stat().st_ino
        for line in LOCKS.read_text(encoding="ascii").splitlines():
            # `1: POSIX  ADVISORY  WRITE 4242 fe:01:131 120 120`; a waiting one has an arrow.
            fields = line.split()
            if fields[1] == "->" or fields[3] != "WRITE":
                continue
            pid, where, first, last = fields[4:8]
            # Not the device: overlay and btrfs show another one here than stat does.
            if int(where.rpartition(":")[2]) != inode or int(first) > byte:
                continue
            if (last == "EOF" or int(last) >= byte) and int(pid) > 0:
                return int(pid)
    return None


def _described(pid: int | None) -> str:
    if pid is None:
        return "another process"
    command = ""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        command = " ".join(filter(None, words))[:80]
    if not _is_stopped(pid):
        return f"process {pid}{f' ({command})' if command else ''}"
    return (
        f"process {pid}{f' ({command})' if command else ''}, which is stopped: continue it (kill"
        f" -CONT {pid}) or end it (kill -9 {pid})"
    )


def _is_stopped(pid: int) -> bool:
    with contextlib.suppress(OSError, IndexError):
        # The command, in parentheses, may contain anything; the state follows it.
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return stat.rpartition(")")[2].split()[0] in {"T", "t"}
    return False
