"""Makes a built-in policy, or finds the one that was made before.

Its folder's name contains a hash of its recipe, so another recipe makes another policy.
"""

import contextlib
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from producer.agents.built_policy import OnProgress, OnStep, OnWait
from producer.policy.torch_policy.state import sync_files
from schemas.lock_holders import file_lock_holder, is_held_by_stopped

logger = logging.getLogger(__name__)

POLL_S = 0.5
WARN_AFTER_S = 2.0
STALE_S = 120.0
"""After this long without progress the maker counts as stopped; a step takes less than a second."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Permission to make the policy."""

    lock_file: Path
    is_alone: bool
    """Whether no other process is making it, not even a stopped one."""

    def beat(self) -> None:
        """Show waiting processes that this one makes progress."""
        if self.is_alone:
            os.utime(self.lock_file)


@contextmanager
def making_turn(
    lock_file: Path,
    is_made: Callable[[], bool],
    *,
    stale_s: float = STALE_S,
    on_wait: Callable[[str], None] = lambda _holder: None,
) -> Iterator[Turn]:
    """Wait until no other process makes the policy, `is_made` is true, or the maker is stopped.

    `on_wait` is called twice a second with the maker's name. Its exceptions propagate.
    """
    lock = FileLock(lock_file)
    began = time.monotonic()
    has_warned = False
    while True:
        try:
            lock.acquire(blocking=False)
        except Timeout:
            pass
        else:
            break
        if is_made() or _silent_s(lock_file) > stale_s or is_held_by_stopped(lock_file):
            break
        holder = file_lock_holder(lock_file)
        if not has_warned and time.monotonic() - began > WARN_AFTER_S:
            has_warned = True
            logger.info("waiting for %s, which makes the default policy", holder)
        on_wait(holder)
        time.sleep(POLL_S)
    try:
        if lock.is_locked:
            os.utime(lock_file)
        elif not is_made():
            logger.warning(
                "%s has not finished the default policy; this process makes its own",
                file_lock_holder(lock_file),
            )
        yield Turn(lock_file, lock.is_locked)
    finally:
        lock.release()


def _silent_s(lock_file: Path) -> float:
    """Seconds since the maker's last progress; 0 if the file has just disappeared."""
    try:
        return time.time() - lock_file.stat().st_mtime
    except FileNotFoundError:
        return 0.0


class Seen(NamedTuple):
    """Progress of a warm-up in another process."""

    done: int
    """Optimiser steps done."""
    total: int
    loss: float | None
    """None while demonstrations are being generated."""


class MakingProgress:
    """A file with the progress, only for display: failures to read or write it are ignored."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, done: int, total: int, loss: float | None) -> None:
        """Write the progress atomically, for processes that wait."""
        temporary = self._path.with_name(f"{self._path.name}.part")
        with contextlib.suppress(OSError):
            temporary.write_text(json.dumps([done, total, loss]), encoding="utf-8")
            temporary.replace(self._path)

    def read(self) -> Seen | None:
        """The last progress written; None if there is none."""
        try:
            done, total, loss = json.loads(self._path.read_text(encoding="utf-8"))
            return Seen(int(done), int(total), None if loss is None else float(loss))
        except (OSError, ValueError, TypeError):
            return None

    def clear(self) -> None:
        """Remove the file when the policy is no longer being made."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)


def ensure_made(
    folder: Path,
    num_steps: int,
    make: Callable[[Path, OnStep], None],
    on_progress: OnProgress,
    on_wait: OnWait,
) -> Path:
    """Return `folder`, which `make` fills in `num_steps` optimiser steps if it does not exist.

    The folder appears complete or not at all. Other processes that need it wait, unless the one
    that makes it shows no progress because it is stopped; then they make their own copy. An
    exception from `on_progress` aborts the making, one from `on_wait` the waiting.
    """
    if folder.is_dir():
        return folder
    policies_dir = folder.parent
    policies_dir.mkdir(parents=True, exist_ok=True)
    shared = MakingProgress(policies_dir / f".{folder.name}.progress")

    def wait(holder: str) -> None:
        if (seen := shared.read()) is not None:
            on_wait(holder, *seen)

    lock_file = policies_dir / f".{folder.name}.lock"
    with making_turn(lock_file, folder.is_dir, on_wait=wait) as turn:
        if folder.is_dir():
            return folder
        # Leave a stopped process's folder alone: the process may continue.
        if turn.is_alone:
            for abandoned in policies_dir.glob(f".making-{folder.name}-*"):
                logger.debug("removing %s, left by a process that was killed", abandoned)
                shutil.rmtree(abandoned, ignore_errors=True)
        kind = "making" if turn.is_alone else "copying"
        making = Path(tempfile.mkdtemp(dir=policies_dir, prefix=f".{kind}-{folder.name}-"))

        def on_step(done: int, loss: float | None) -> None:
            turn.beat()
            if turn.is_alone:
                shared.write(done, num_steps, loss)
            on_progress(folder.name, done, num_steps, loss)

        try:
            make(making, on_step)
            making.chmod(0o755)
            sync_files(making)
            _give_name(making, folder)
            sync_files(policies_dir)
        finally:
            shutil.rmtree(making, ignore_errors=True)
            if turn.is_alone:
                shared.clear()
    return folder


def _give_name(making: Path, folder: Path) -> None:
    try:
        making.rename(folder)
    except OSError:
        # Two processes made it, each thinking the other had stopped. Both results are the same.
        if not folder.is_dir():
            raise
