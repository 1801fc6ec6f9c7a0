"""Whether the last writer of a training may still live, wherever it runs.

Every process that holds the lock of a training's folder writes its source there before it claims
the training. So a source that is in the file of a folder whose lock is ours is dead. Nothing else
proves that: containers share host names and process ids, and another CUA_HOME has another lock.

    <run>/writers   one source a line
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


def refuse_living_writer(
    run_name: str, stream: StreamHistory, status: str | None, run_folder: Path, now: datetime
) -> None:
    """CuaTrainError when the training's last event is young and its writer is not proven dead.

    The caller holds the lock of `run_folder`.
    """
    owner = stream.position.source
    if status in ENDED or owner in _writers(run_folder):
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
    """Before the claim: whoever finds this source in the log and gets our lock knows it dead."""
    run_folder.mkdir(parents=True, exist_ok=True)
    path = _path(run_folder)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{source}\n")
    sync_file(path)


def _writers(run_folder: Path) -> frozenset[str]:
    try:
        return frozenset(_path(run_folder).read_text(encoding="utf-8").splitlines())
    except (FileNotFoundError, UnicodeDecodeError):
        return frozenset()


def _path(run_folder: Path) -> Path:
    return run_folder / "writers"
