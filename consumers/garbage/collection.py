"""One `cua-project gc`: find first, everything, so that a refusal comes before any deletion."""

import logging
from collections.abc import Collection as Names
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from consumers.archive.open import open_with_archive
from consumers.garbage import blobs, spool
from consumers.log.reader import LogReader
from schemas.installation import Installation

logger = logging.getLogger(__name__)


class Amount(NamedTuple):
    """Of one part."""

    num_things: int
    bytes: int


@dataclass(slots=True)
class Found:
    """What can go, or is gone."""

    parts: dict[str, Amount] = field(default_factory=dict)
    unnamed: blobs.UnnamedBlobs | None = None
    shipped: spool.ShippedRecords | None = None

    @property
    def count(self) -> int:
        """Blobs and records."""
        return sum(amount.num_things for amount in self.parts.values())

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(amount.bytes for amount in self.parts.values())

    def report(self) -> dict[str, object]:
        """For scripts."""
        return {
            part: {"count": amount.num_things, "bytes": amount.bytes}
            for part, amount in self.parts.items()
        } | {"bytes": self.size}


class Collection:
    """The parts that were asked for. `close` is idempotent."""

    def __init__(
        self,
        installation: Installation,
        parts: Names[str],
        archive: Path | None = None,
    ) -> None:
        """`archive`: has the beginning of the log."""
        self._archive = archive
        self._installation = installation
        self._parts = parts
        self._reader: LogReader | None = None

    def _log(self) -> LogReader:
        if self._reader is None:
            self._reader = open_with_archive(self._installation, self._archive)
        return self._reader

    def require_own_store(self, *, is_ours: bool) -> None:
        """UsageError: see `blobs.require_own_store`."""
        if "blobs" in self._parts:
            blobs.require_own_store(self._installation, is_ours=is_ours)

    def find(self, *, keep: timedelta) -> Found:
        """What can go. Every refusal is raised here."""
        found = Found()
        if "blobs" in self._parts:
            found.unnamed = blobs.find_unnamed(self._installation, self._log())
            found.parts["blobs"] = Amount(found.unnamed.count, found.unnamed.size)
        if "spool" in self._parts:
            # The local log itself is never pruned.
            if self._log().kind != "local":
                found.shipped = spool.find_shipped(
                    self._installation.local_log_path, self._log().log_id, keep
                )
            shipped = found.shipped
            found.parts["spool"] = Amount(
                *((shipped.num_records, shipped.size) if shipped else (0, 0))
            )
        return found

    def delete(self, found: Found) -> Found:
        """Delete it; what is gone."""
        gone = Found()
        if found.unnamed is not None:
            num_files, num_bytes = blobs.delete_unnamed(
                self._installation,
                self._log(),
                found.unnamed,
                lambda done, of: logger.info("deleted %s of %s blobs", f"{done:,}", f"{of:,}"),
            )
            gone.parts["blobs"] = Amount(num_files, num_bytes)
        if "spool" in found.parts:
            shipped = found.shipped
            count = spool.delete_shipped(shipped) if shipped else 0
            gone.parts["spool"] = Amount(count, shipped.size if shipped else 0)
        return gone

    def close(self) -> None:
        """Release the log."""
        if self._reader is not None:
            self._reader.close()
