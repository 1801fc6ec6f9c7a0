"""Whether the last writer of a training may still live, wherever it runs.

Every process that holds the lock of a training's folder writes its source there before it claims
the training. So a source that is in the file of a folder whose lock is ours is dead. Nothing else
proves that: containers share host names and process ids, another CUA_HOME has another lock, and so
has the copy of a home, whose file names the sources of the original. So each line names the file
that it was written to.

    <run>/writers   source and file (device:inode) a line, with a tab between them
"""

from datetime import datetime, timedelta
from pathlib import Path

from producer.durable import sync_file
from producer.errors import CuaTrainError
from producer.log.stream_history import StreamHistory

TAKEOVER_AFTER_S = 60.0
"""A heartbeat younger than this means that the training still runs."""
ENDED = frozenset({"completed", "failed", "cancelled"})
"""Its writer said that it ends."""


def refuse_active_writer(
    run_name: str,
    stream: StreamHistory,
    status: str | None,
    run_folder: Path,
    now: datetime,
    *,
    is_log_shared: bool,
) -> None:
    """CuaTrainError when the training's last event is young and its writer is not proven dead.

    The caller holds the lock of `run_folder`. A log that is not shared was copied with its home:
    no process writes to the copy, whatever runs in the original.
    """
    owner = stream.position.source
    if status in ENDED or owner in _writers(run_folder, of_copied=not is_log_shared):
        return
    # The other host's clock may be ahead of ours.
    age = max(now - stream.events[-1].envelope.time, timedelta(0))
    if age < timedelta(seconds=TAKEOVER_AFTER_S):
        host = owner.split("/")[2] if owner.startswith("//") else owner
        message = (
            f"training {run_name!r} was alive on {host} {age.total_seconds():.0f} s ago ({owner},"
            " //host/pid/start, of another CUA_HOME or folder)"
        )
        ways = (
            "stop it there",
            f"wait {TAKEOVER_AFTER_S:.0f} s after its last heartbeat",
            "pass --takeover",
        )
        raise CuaTrainError(message, ways=ways)


def add_writer(run_folder: Path, source: str) -> None:
    """Before the claim: who reads this source in the log and gets our lock knows that it ended."""
    run_folder.mkdir(parents=True, exist_ok=True)
    path = _path(run_folder)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{source}\t{file_identity(path)}\n")
    sync_file(path)


def _writers(run_folder: Path, *, of_copied: bool) -> frozenset[str]:
    """Those that were written to this file; `of_copied`: or to one that it is a copy of."""
    path = _path(run_folder)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        identity = file_identity(path)
    except (FileNotFoundError, UnicodeDecodeError):
        return frozenset()
    named = (line.partition("\t") for line in lines)
    return frozenset(source for source, _, file in named if of_copied or file == identity)


def file_identity(path: Path) -> str:
    """Which file or folder it is; a copy is another one. FileNotFoundError."""
    status = path.stat()
    return f"{status.st_dev}:{status.st_ino}"


def _path(run_folder: Path) -> Path:
    return run_folder / "writers"
