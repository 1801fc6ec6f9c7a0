"""Who ships the local log's records: one process of a home at a time, even if one is stopped.

    <home>/log/shipper.lock    locked by the shipper while it lives: the next one starts at once
    <home>/log/shipper.lease   who ships, with a count that it raises every second

A shipper that is stopped (Ctrl-Z) keeps the lock but no longer raises the count, so a waiting
process takes the lease after STALE_S. The stopped one notices before its next request. For a moment
two may ship, which is harmless: each sends records from an acknowledged position on, in order, so
the target gets duplicates but never a record before its predecessor, and the cursor never moves
back.
"""

import contextlib
import json
import logging
import os
import secrets
import socket
import threading
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout
from pydantic import TypeAdapter, ValidationError

from schemas.lock_holders import file_lock_holder

logger = logging.getLogger(__name__)

BEAT_S = 1.0
STALE_S = 8.0
"""A holder that does not raise the count for this long is stopped; a busy machine delays a thread
by less."""


class _Lease(NamedTuple):
    """The content of the lease file."""

    holder: str
    """Random id that the holder drew."""
    pid: int
    host: str
    is_locked: bool
    """Whether the holder also has the lock; if so, a free lock means that the holder is dead."""
    beat: int


_FILE = TypeAdapter(_Lease)


class ShipperLease:
    """The right to ship. `acquire`, `is_ours` and `release` are for one thread.

    Never waits for another process. After `acquire`, a thread raises the count until `release`
    (idempotent) or until another process takes the lease. Raises OSError if the files cannot be
    written.
    """

    def __init__(self, folder: Path, *, beat_s: float = BEAT_S, stale_s: float = STALE_S) -> None:
        self._path = folder / "shipper.lease"
        self._lock = FileLock(folder / "shipper.lock", thread_local=False)
        self._beat_s, self._stale_s = beat_s, stale_s
        self._seen: _Lease | None = None
        self._seen_s = time.monotonic()
        self._holder = ""
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def acquire(self) -> bool:
        """Take the lease if its holder is gone, dead or stopped. Returns whether it is ours now."""
        if self.is_ours():
            return True
        self._end_beat()
        is_locked = self._try_lock()
        lease = self._read()
        now_s = time.monotonic()
        if lease != self._seen:
            self._seen, self._seen_s = lease, now_s
        is_over = is_locked and (lease is None or lease.is_locked)
        is_stale = now_s - self._seen_s >= self._stale_s
        if not is_over and not is_stale:
            return False
        if not is_over:
            locked_by = file_lock_holder(Path(self._lock.lock_file))
            logger.warning(
                "%s sends no events any more (is it stopped?); this process sends them now",
                locked_by if lease is None else f"process {lease.pid} on {lease.host}",
            )
        self._holder = secrets.token_hex(8)
        self._write(0, is_locked=is_locked)
        self._over = threading.Event()
        beat = partial(self._beat, self._holder, self._over)
        self._thread = threading.Thread(target=beat, name="cua-shipper-lease", daemon=True)
        self._thread.start()
        return True

    def is_ours(self) -> bool:
        """Whether no other process has taken the lease. Call before each request."""
        lease = self._read()
        return lease is not None and lease.holder == self._holder

    def release(self) -> None:
        """Release the lease, so that the next process can ship at once."""
        self._end_beat()
        if self._holder and self.is_ours():
            self._path.unlink(missing_ok=True)
        self._holder = ""
        self._lock.release(force=True)

    def _end_beat(self) -> None:
        """End the thread that raises the count."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._over.set()
            thread.join()

    def _beat(self, holder: str, over: threading.Event) -> None:
        beat = 0
        while not over.wait(self._beat_s):
            lease = self._read()
            if lease is None or lease.holder != holder:
                return
            beat += 1
            # If the disk is full, no other process can take the lease either.
            with contextlib.suppress(OSError):
                self._write(beat, is_locked=self._try_lock())

    def _try_lock(self) -> bool:
        """Whether we have the lock, newly taken or already held."""
        if self._lock.is_locked:
            return True
        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            return False
        return True

    def _read(self) -> _Lease | None:
        """The lease; None if the file is missing or invalid."""
        try:
            return _FILE.validate_json(self._path.read_bytes())
        except (OSError, ValidationError):
            return None

    def _write(self, beat: int, *, is_locked: bool) -> None:
        lease = _Lease(self._holder, os.getpid(), socket.gethostname(), is_locked, beat)
        making = self._path.with_name(f"{self._path.name}.{lease.holder}")
        try:
            making.write_text(json.dumps(lease._asdict()), encoding="utf-8")
            making.replace(self._path)
        finally:
            making.unlink(missing_ok=True)
