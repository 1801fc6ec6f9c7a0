"""Blobs that no event names: found, and deleted.

A blob is written before the event that names it, so a young one is kept, and so is whatever a
running trainer of this home may still name.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from consumers.errors import CuaProjectError, UsageError
from consumers.garbage.references import other_targets, read_file, read_log, read_runs
from consumers.garbage.stores import FolderStore, Store, open_store
from consumers.log.reader import LOOK_AT, LogReader, TopicPartition
from consumers.log.waiting import read_waiting
from schemas.installation import Installation, without_secrets
from schemas.lock_holders import is_held

YOUNGEST = timedelta(hours=1)
"""A younger blob is kept: it is written before the event that names it."""

UNKNOWN_EMITTER = timedelta(days=1)
"""How long a process that ships this home's events is taken to have run."""


@dataclass(slots=True)
class UnnamedBlobs:
    """What can go, and how far the log was read to know it."""

    stores: list[Store]
    sizes: list[dict[bytes, int]]
    """Per store: sha256 -> bytes."""
    older_than: float
    positions: dict[TopicPartition, int]
    position: int
    """In the local file."""

    @property
    def count(self) -> int:
        """Files, in all stores."""
        return sum(map(len, self.sizes))

    @property
    def size(self) -> int:
        """Bytes, in all stores."""
        return sum(sum(sizes.values()) for sizes in self.sizes)

    def keep(self, digest: bytes) -> None:
        """Something names it."""
        for sizes in self.sizes:
            sizes.pop(digest, None)


def find_unnamed(installation: Installation, reader: LogReader) -> UnnamedBlobs:
    """Blobs that no event of the log or of this machine's spool names.

    CuaProjectError when events may exist that neither has, and when Kafka has no
    topic of ours; UnreachableError.
    """
    refuse_unseen_events(installation, reader)
    older_than = time.time() - YOUNGEST.total_seconds()
    if started := running_since(installation):
        older_than = min(older_than, started)
    found = UnnamedBlobs(_stores(installation), [], older_than, {}, 1)
    for store in found.stores:
        sizes = {blob.digest: blob.size for blob in store.blobs() if blob.changed_at < older_than}
        found.sizes.append(sizes)
    if found.count:
        if reader.kind != "local" and not reader.partitions():
            message = (
                f"the configured log is empty, so that no event names any of {found.count:,} blobs;"
                f" nothing was deleted. {LOOK_AT}"
            )
            raise CuaProjectError(message)
        read_runs(installation, found.keep)
        # The spool before the log: what is shipped meanwhile is in the one or the other.
        found.position = read_file(installation.local_log_path, 1, found.keep)
        found.positions = read_log(reader, None, found.keep)
    return found


def delete_unnamed(
    installation: Installation,
    reader: LogReader,
    found: UnnamedBlobs,
    report: Callable[[int, int], None],
) -> tuple[int, int]:
    """Delete them, except what was named since they were found; (files, bytes) that are gone.

    `report(done, of)` is called now and then.
    """
    if not found.count:
        return 0, 0
    read_runs(installation, found.keep)
    found.position = read_file(installation.local_log_path, found.position, found.keep)
    found.positions = read_log(reader, found.positions, found.keep)
    num_files = num_bytes = num_done = 0
    total = found.count
    for store, sizes in zip(found.stores, found.sizes, strict=True):
        for digest, size in sizes.items():
            if store.delete(digest, found.older_than):
                num_files, num_bytes = num_files + 1, num_bytes + size
            num_done += 1
            if num_done % 1000 == 0:
                report(num_done, total)
    return num_files, num_bytes


def refuse_unseen_events(installation: Installation, reader: LogReader) -> None:
    """CuaProjectError when some of this home's events can neither be read here nor in the log."""
    path = installation.local_log_path
    if elsewhere := other_targets(path, reader.log_id):
        message = (
            f"this home has shipped events to another log too ({elsewhere[0]}), which may"
            " name blobs that the configured log does not; leave the blobs, or delete only"
            " shipped records with --only spool"
        )
        raise CuaProjectError(message)
    if reader.kind == "local":
        return
    unshipped = read_waiting(path, reader.log_id, datetime.now(UTC)).num_records
    if unshipped and running_since(installation) is not None:
        message = (
            f"{unshipped:,} events of a running trainer of this home are not shipped to Kafka yet;"
            " try again when they are, or delete only shipped records with --only spool"
        )
        raise CuaProjectError(message)


def require_own_store(installation: Installation, *, is_ours: bool) -> None:
    """UsageError for a store outside of CUA_HOME that other installations may write to."""
    folder = installation.blobs_folder
    if folder is not None and folder.resolve().is_relative_to(installation.home.resolve()):
        return
    if not is_ours:
        message = (
            f"the blobs are in {without_secrets(installation.blobs_url)}, outside of CUA_HOME, and"
            " only the events of the configured log are known here; if no other log's events name"
            " blobs there, repeat with --store-is-ours"
        )
        raise UsageError(message)


def running_since(installation: Installation) -> float | None:
    """When the oldest process that emits in this home began, by its locks; None: none runs.

    A blob may wait that long for its event, because the log is locked or its process was stopped.
    """
    began = [_began(path) for path in installation.runs_dir.glob("*/lock") if is_held(path)]
    if is_held(installation.local_log_path.with_name("shipper.lock")):
        # A shipper leaves no record of itself.
        began.append(time.time() - UNKNOWN_EMITTER.total_seconds())
    return min(began, default=None)


def _began(path: Path) -> float:
    """When the holder of a training's lock started; at the latest when it wrote the file."""
    locked_at = path.stat().st_mtime
    try:
        pid = int(json.loads(path.read_text(encoding="utf-8"))["pid"])
        return min(locked_at, Path(f"/proc/{pid}").stat().st_mtime)
    except (OSError, ValueError, KeyError, TypeError):
        return locked_at


def _stores(installation: Installation) -> list[Store]:
    """The configured one and, in front of a remote one, this home's folder."""
    configured = open_store(installation)
    own = installation.home / "blobs"
    folder = installation.blobs_folder
    if own.is_dir() and (folder is None or folder.resolve() != own.resolve()):
        return [configured, FolderStore(own)]
    return [configured]
