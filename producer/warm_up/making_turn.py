"""Whose turn it is to make the default policy: one process of a home, the others wait for it.

The maker touches its lock file as it progresses. One that is stopped does not, and is not waited
for: making the policy twice costs minutes and gives the same files.
"""

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from schemas.lock_holders import file_lock_holder, is_held_by_stopped

logger = logging.getLogger(__name__)

POLL_S = 0.5
WARN_AFTER_S = 2.0
STALE_S = 120.0
"""Without progress for so long the maker has stopped; a step takes less than a second."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The right to make the policy."""

    lock_file: Path
    is_alone: bool
    """Whether no other process makes it, not even a stopped one."""

    def beat(self) -> None:
        """Tell the processes that wait that this one makes progress."""
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
    """Wait until no other process makes the policy, `is_made`, or its maker is stopped.

    `on_wait` gets the maker's name twice a second; what it raises propagates.
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
    """Time since the maker's last progress; 0 when the file has just gone."""
    try:
        return time.time() - lock_file.stat().st_mtime
    except FileNotFoundError:
        return 0.0
