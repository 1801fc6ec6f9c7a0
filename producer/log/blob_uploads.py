"""Uploads blobs to a remote store before the events that name them are shipped."""

import logging
import re
from collections.abc import Sequence
from hashlib import sha256

from producer.blobs import FolderBlobs, RemoteBlobs
from producer.errors import NotFoundError
from producer.log.writer import Coordinates, Record

logger = logging.getLogger(__name__)

REF = re.compile(rb"blob:sha256:[0-9a-f]{64}")
KNOWN_REFS = 65536
"""Number of refs remembered as uploaded, about 10 MB. Others are looked up in the store again."""
BYTES_AT_ONCE = 16 << 20
"""Approximate amount of blob data held in memory at a time."""


class BlobUploads:
    """Called with records about to be shipped; returns once the store has every blob they name.

    For one thread. Raises UnreachableError, after which the call can be repeated. A blob that is in
    neither place is lost, which causes one warning and does not stop shipping.
    """

    def __init__(self, staging: FolderBlobs, store: RemoteBlobs) -> None:
        self._staging = staging
        self._store = store
        self._known: set[str] = set()

    def __call__(self, records: Sequence[Record]) -> None:
        """Upload the blobs that these records name."""
        waiting: dict[str, bytes] = {}
        size = 0
        for ref in self._refs(records):
            try:
                content = self._staging.get(ref)
            except NotFoundError as error:
                if not self._store.exists(ref):
                    logger.warning("an event names a missing blob: %s", error)
                self._remember([ref])
                continue
            waiting[ref] = content
            size += len(content)
            if size >= BYTES_AT_ONCE:
                self._upload(waiting)
                waiting, size = {}, 0
        self._upload(waiting)

    def _refs(self, records: Sequence[Record]) -> list[str]:
        found = {
            ref: None
            for record in records
            if b"blob:sha256:" in record.value
            for ref in REF.findall(record.value)
        }
        return [ref.decode() for ref in found if ref.decode() not in self._known]

    def _upload(self, waiting: dict[str, bytes]) -> None:
        self._store.put_many(waiting)
        self._remember(list(waiting))

    def _remember(self, refs: Sequence[str]) -> None:
        if len(self._known) > KNOWN_REFS:
            self._known.clear()
        self._known.update(refs)


class NoLog:
    """The shipper's target when the log is local and only the blobs are remote."""

    def __init__(self, blobs_url: str) -> None:
        self.log_id = f"blobs-{sha256(blobs_url.encode()).hexdigest()[:16]}"
        """Name of the shipping cursor, one per store."""

    def append(self, records: Sequence[Record]) -> list[Coordinates]:  # noqa: ARG002  # see below
        """Do nothing: the records stay in the local log, and their blobs have been uploaded."""
        return []

    def close(self) -> None:
        """Do nothing."""
