"""What stands behind the local log: Kafka, a remote blob store, both, or nothing.

Decides by the installation's settings alone.
"""

import threading
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from producer.blobs import FolderBlobs, RemoteBlobs, local_folder
from producer.errors import UnreachableError
from producer.log.blob_uploads import BlobUploads, NoLog
from producer.log.local import LocalLog
from producer.log.shipper import KEEP, Shipper, Target
from producer.log.spool import Spool
from producer.log.writer import LogWriter, TopicPartition
from schemas.installation import Installation

if TYPE_CHECKING:
    from producer.log.kafka import KafkaLog

LOOK_S = 0.02
"""Between looks at the cursor, which another process may move."""
RETRY_S = 1.0


def staging_blobs(installation: Installation) -> FolderBlobs:
    """Where the emitter puts blobs.

    The store itself when it is a folder, else a folder that they are uploaded from.
    """
    return FolderBlobs(local_folder(installation.blobs_url) or installation.home / "blobs")


def open_replicator(
    installation: Installation,
    log: LocalLog,
    topics: Collection[str],
    *,
    say: Callable[[str], None],
) -> "LogReplicator | None":
    """Start shipping as the installation asks for; None when nothing is to be shipped anywhere."""
    is_remote = local_folder(installation.blobs_url) is None
    if installation.kafka_bootstrap_servers is None and not is_remote:
        return None
    return LogReplicator(installation, log, topics, is_remote=is_remote, say=say)


class LogReplicator:
    """Ships the local log further, and reads back what lies there. Thread-safe.

    Opening starts a thread and waits for nothing. `close` says what is left; twice is once.
    """

    def __init__(
        self,
        installation: Installation,
        local: LocalLog,
        topics: Collection[str],
        *,
        is_remote: bool,
        say: Callable[[str], None],
    ) -> None:
        self._installation = installation
        self._local = local
        self._topics = list(topics)
        self._say = say
        self._has_kafka = installation.kafka_bootstrap_servers is not None
        self._lock = threading.Lock()
        self._kafka: KafkaLog | None = None
        self._bounds: dict[TopicPartition, int] = {}
        uploads: BlobUploads | None = None
        if is_remote:
            uploads = BlobUploads(
                staging_blobs(installation), RemoteBlobs(installation.blobs_url), say=say
            )
        keep = KEEP if self._has_kafka else None
        self._shipper = Shipper(local.path, self._connect, say=say, before=uploads, keep=keep)

    def _connect(self) -> Target:
        return self._open_kafka() if self._has_kafka else NoLog(self._installation.blobs_url)

    def _open_kafka(self) -> "KafkaLog":
        # kafka takes a tenth of a second to import, and is not needed without a Kafka.
        from producer.log.kafka import KafkaLog

        return KafkaLog(self._installation, self._topics)

    def poke(self) -> None:
        """The local log has something new."""
        self._shipper.poke()

    def log(self, timeout_s: float) -> LogWriter:
        """The log that others read. Tries for `timeout_s`, once at least, saying so.

        Then UnreachableError.
        """
        if not self._has_kafka:
            return self._local
        deadline = time.monotonic() + timeout_s
        with self._lock:
            has_said = False
            while self._kafka is None:
                try:
                    kafka = self._open_kafka()
                    self._bounds = kafka.ends()
                    self._kafka = kafka
                except UnreachableError as error:
                    if time.monotonic() + RETRY_S > deadline:
                        raise
                    if not has_said:
                        self._say(f"{error} Waiting for it.")
                        has_said = True
                    time.sleep(RETRY_S)
            return self._kafka

    def lower_bounds(self) -> dict[TopicPartition, int]:
        """Ends of the log at the last contact of this process; empty before it."""
        return self._local.ends() if not self._has_kafka else dict(self._bounds)

    def wait_shipped(self, timeout_s: float) -> None:
        """Return once everything that is in the local log now was acknowledged by the log behind it; UnreachableError."""
        deadline = time.monotonic() + timeout_s
        if not self._has_kafka:
            # The local log is the log: what is on this disk is where others read it.
            return
        target = self.log(timeout_s).log_id
        spool = Spool(self._local.path)
        try:
            end = spool.end()
            while (position := spool.cursor(target)) < end:
                if time.monotonic() > deadline:
                    why = f": {self._shipper.problem}" if self._shipper.problem else ""
                    message = (
                        f"{end - position} events could not be sent to the log within {timeout_s}"
                        f" s{why}. They stay on this disk"
                    )
                    raise UnreachableError(message)
                time.sleep(LOOK_S)
        finally:
            spool.close()

    def num_left(self) -> int:
        """Records that no log behind this one has acknowledged (those that were pruned were)."""
        spool = Spool(self._local.path)
        try:
            known = self._kafka.log_id if self._kafka is not None else self._shipper.target_id
            return spool.end() - (spool.furthest() if known is None else spool.cursor(known))
        finally:
            spool.close()

    def close(self, timeout_s: float) -> int:
        """Ship for up to `timeout_s`, then stop; how many records are left."""
        deadline = time.monotonic() + timeout_s
        self._shipper.poke()
        while (
            (num_left := self.num_left()) and time.monotonic() < deadline and self._shipper.is_alive
        ):
            time.sleep(LOOK_S)
        if num_left:
            self._say(
                f"{num_left} events were not sent to the log yet; they stay in {self._local.path}"
                " and the next process sends them"
            )
        self._shipper.stop(1.0)
        with self._lock:
            kafka, self._kafka = self._kafka, None
        if kafka is not None:
            kafka.close()
        return num_left
