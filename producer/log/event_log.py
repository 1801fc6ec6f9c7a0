"""The log as a producer uses it: what other readers can see, wherever it is, and how local records get there.

Without Kafka the local log is the log. With Kafka the local log is the spool in front of it, and a
shipper sends its records on. With a remote blob store the shipper uploads blobs first.
"""

import logging
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Self

from producer.blobs import FolderBlobs, RemoteBlobs, local_folder
from producer.errors import UnreachableError
from producer.log.blob_uploads import BlobUploads, NoLog
from producer.log.local import LocalLog
from producer.log.shipper import KEEP, Shipper
from producer.log.spool import Spool
from producer.log.stream_history import StreamHistory, read_streams_into
from producer.log.writer import LogWriter, TopicPartition
from schemas.catalogue import TOPIC_NAMES
from schemas.installation import Installation

if TYPE_CHECKING:
    from producer.log.kafka import KafkaLog

logger = logging.getLogger(__name__)

POLL_S = 0.02
"""Between reads of the shipping cursor, which another process may move."""
RETRY_S = 1.0


def staging_blobs(installation: Installation) -> FolderBlobs:
    """Where the emitter writes blobs: the store itself, or the folder they are uploaded from."""
    return FolderBlobs(local_folder(installation.blobs_url) or installation.home / "blobs")


class EventLog:
    """One installation's log. Thread-safe.

    Opening starts the shipper where one is needed and waits for nothing. Methods that take
    `timeout_s` may wait for the network; the others wait for the disk at most, but raise
    UnreachableError when a remote log was not connected before. `close` is idempotent.
    """

    def __init__(self, local: LocalLog, installation: Installation) -> None:
        self.local = local
        """Where appended records become durable."""
        self._installation = installation
        self._topic_prefix = installation.topic_prefix
        self._has_kafka = installation.kafka_bootstrap_servers is not None
        self._lock = threading.Lock()
        self._kafka: KafkaLog | None = None
        self._ends_at_contact: dict[TopicPartition, int] = {}
        self._shipper: Shipper | None = None
        has_remote_blobs = local_folder(installation.blobs_url) is None
        if self._has_kafka or has_remote_blobs:
            self._shipper = self._start_shipper(has_remote_blobs=has_remote_blobs)

    @classmethod
    def open(cls, installation: Installation) -> Self:
        """Open or create the local log and start shipping. LogBrokenError, UnreachableError."""
        topics = [installation.topic_prefix + name for name in TOPIC_NAMES]
        return cls(LocalLog(installation.local_log_path, topics=topics), installation)

    def _start_shipper(self, *, has_remote_blobs: bool) -> Shipper:
        url = self._installation.blobs_url
        uploads = None
        if has_remote_blobs:
            uploads = BlobUploads(staging_blobs(self._installation), RemoteBlobs(url))
        return Shipper(
            self.local.path,
            self._open_kafka if self._has_kafka else lambda: NoLog(url),
            before=uploads,
            keep=KEEP if self._has_kafka else None,
        )

    def _open_kafka(self) -> "KafkaLog":
        # Importing kafka takes a tenth of a second, and most installations have none.
        from producer.log.kafka import KafkaLog

        topics = [self._topic_prefix + name for name in TOPIC_NAMES]
        return KafkaLog(self._installation, topics)

    def connect(self, timeout_s: float = 0.0) -> LogWriter:
        """The log that others read, for reading streams back.

        Tries at least once and for up to `timeout_s`, then raises UnreachableError.
        """
        if not self._has_kafka:
            return self.local
        deadline = time.monotonic() + timeout_s
        with self._lock:
            has_warned = False
            while self._kafka is None:
                try:
                    kafka = self._open_kafka()
                    self._ends_at_contact = kafka.ends()
                    self._kafka = kafka
                except UnreachableError as error:
                    if time.monotonic() + RETRY_S > deadline:
                        raise
                    if not has_warned:
                        logger.warning("%s Waiting up to %.0f s for it.", error, timeout_s)
                        has_warned = True
                    time.sleep(RETRY_S)
            return self._kafka

    def log_id(self, timeout_s: float = 0.0) -> str:
        """Identity of the log that others read. UnreachableError."""
        return self.connect(timeout_s).log_id

    def ends(self) -> dict[TopicPartition, int]:
        """Offset after the last record of every partition, now. UnreachableError."""
        return self.connect().ends()

    def lower_bounds(self) -> dict[TopicPartition, int]:
        """Offsets at or before every event emitted from now on; a missing partition means 0.

        Never waits for a network: with Kafka these are its ends at the first contact.
        """
        return dict(self._ends_at_contact) if self._has_kafka else self.local.ends()

    def read_back(
        self, subject: str, since: Mapping[TopicPartition, int], *, timeout_s: float = 0.0
    ) -> StreamHistory:
        """One stream as others see it now. UnreachableError, MismatchError.

        `since`: offsets at or before the stream's first record; a missing partition means 0.
        """
        return self.read_back_many([subject], since, timeout_s=timeout_s)[subject]

    def read_back_many(
        self,
        subjects: Collection[str],
        since: Mapping[TopicPartition, int],
        *,
        timeout_s: float = 0.0,
    ) -> dict[str, StreamHistory]:
        """Several streams in one pass; an empty history for a stream without records."""
        histories = {subject: StreamHistory(subject) for subject in subjects}
        log = self.connect(timeout_s)
        read_streams_into(histories, log, since, topic_prefix=self._topic_prefix)
        return histories

    def read_on(self, history: StreamHistory, since: Mapping[TopicPartition, int]) -> None:
        """Append to `history` what was added since. UnreachableError, MismatchError."""
        log = self.connect()
        read_streams_into({history.subject: history}, log, since, topic_prefix=self._topic_prefix)

    def read_topic(
        self, name: str, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of every record of a topic (`training`), each partition in order."""
        return self.connect().read_topic(self._topic_prefix + name, since)

    def notify(self) -> None:
        """The local log has new records."""
        if self._shipper is not None:
            self._shipper.notify()

    def wait_shipped(self, timeout_s: float) -> None:
        """Return once every record now in the local log is where others read it.

        UnreachableError: not within `timeout_s`; the records stay in the local log.
        """
        if not self._has_kafka:
            return
        deadline = time.monotonic() + timeout_s
        target = self.log_id(timeout_s)
        with closing(Spool(self.local.path)) as spool:
            end = spool.end()
            while (position := spool.cursor(target)) < end:
                if time.monotonic() > deadline:
                    problem = self._shipper.problem if self._shipper else None
                    message = (
                        f"{end - position} events could not be sent to Kafka within {timeout_s:g} s"
                        f"{f' ({problem})' if problem else ''}. They are kept in {self.local.path}"
                    )
                    raise UnreachableError(message)
                time.sleep(POLL_S)

    def num_unshipped(self) -> int:
        """Records that the log behind this one has not acknowledged yet."""
        if self._shipper is None:
            return 0
        with closing(Spool(self.local.path)) as spool:
            known = self._kafka.log_id if self._kafka is not None else self._shipper.target_id
            return spool.end() - (spool.furthest() if known is None else spool.cursor(known))

    def close(self, timeout_s: float) -> int:
        """Ship for up to `timeout_s`, then close; how many records remain unshipped."""
        num_left = self._stop_shipping(timeout_s)
        with self._lock:
            kafka, self._kafka = self._kafka, None
        if kafka is not None:
            kafka.close()
        self.local.close()
        return num_left

    def _stop_shipping(self, timeout_s: float) -> int:
        shipper = self._shipper
        if shipper is None:
            return 0
        deadline = time.monotonic() + timeout_s
        shipper.notify()
        while (
            (num_left := self.num_unshipped()) and time.monotonic() < deadline and shipper.is_alive
        ):
            time.sleep(POLL_S)
        if num_left:
            logger.warning(
                "%d events are not sent yet; they are kept in %s and the next process sends them",
                num_left,
                self.local.path,
            )
        shipper.stop(1.0)
        self._shipper = None
        return num_left
