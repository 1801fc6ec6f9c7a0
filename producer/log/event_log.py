"""The log as a producer uses it: reading what others can see, and shipping what they cannot yet.

Without Kafka the local log is the log. With Kafka the local log is the spool in front of it, and a
shipper sends its records on. With a remote blob store the shipper uploads blobs first.
"""

import logging
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING, Self
from uuid import UUID

from producer.blobs import FolderBlobs, RemoteBlobs, local_folder
from producer.errors import MismatchError, StopRequestedError, UnreachableError
from producer.log.assigned_partitions import AssignedPartitions
from producer.log.blob_uploads import BlobUploads, NoLog
from producer.log.interruptible import interruptible
from producer.log.kafka_contact import warn_waiting
from producer.log.kafka_history import KafkaHistory
from producer.log.kafka_partitions import split_message
from producer.log.last_records import ship_remaining
from producer.log.local import LocalLog
from producer.log.shipper import KEEP, Shipper
from producer.log.spool import Spool
from producer.log.stream_history import StreamHistory, read_streams_into
from producer.log.training_places import ask_tables
from producer.log.writer import LogWriter, TopicPartition
from schemas.catalogue import TOPIC_NAMES, topic_of
from schemas.installation import Installation
from schemas.kafka_log import MAX_EVENT_BYTES, MAX_MESSAGE_BYTES, largest_value, raise_limit
from schemas.operator_drops import Drops, read_operator_drops

if TYPE_CHECKING:
    from producer.log.kafka import KafkaLog

logger = logging.getLogger(__name__)

POLL_S = 0.02
"""Between reads of the shipping cursor, which another process may move."""
STOP_S = 1.0
"""For a request in flight when closing; then its connection is closed."""
STOPPING_S = 0.1
"""The same once the process was asked to stop."""
RETRY_S = 1.0


def staging_blobs(installation: Installation) -> FolderBlobs:
    """Where the emitter writes blobs: the store itself, or the folder they are uploaded from."""
    return FolderBlobs(local_folder(installation.blobs_url) or installation.home / "blobs")


class EventLog:
    """The log of one installation. Thread-safe.

    Opening starts the shipper where one is needed and waits for no network; nor do `lower_bounds`,
    `notify` and `num_unshipped`. With Kafka everything else may wait for it, and raises
    UnreachableError when it does not answer. `close` is idempotent.
    """

    def __init__(
        self, local: LocalLog, installation: Installation, stop: threading.Event | None = None
    ) -> None:
        self.local = local
        """Where appended records become durable."""
        self.topic_prefix = installation.topic_prefix
        self._installation = installation
        self._has_kafka = installation.kafka_bootstrap_servers is not None
        self._lock = threading.Lock()
        self._kafka: KafkaLog | None = None
        """To read from; `_sending` is the shipper's own."""
        self._sending: KafkaLog | None = None
        self._ends_at_contact: dict[TopicPartition, int] = {}
        self._assigned = AssignedPartitions()
        self._limits: Mapping[str, int] = {}
        self._limits_lock = threading.Lock()  # both openings of Kafka may learn them at once
        self._is_closed = False
        self._stop = stop
        ask = partial(ask_tables, home=installation.home)
        self._history = KafkaHistory(local.path.with_name("known-trainings.json"), stop, ask)
        self._shipper: Shipper | None = None
        has_remote_blobs = local_folder(installation.blobs_url) is None
        if self._has_kafka or has_remote_blobs:
            self._shipper = self._start_shipper(has_remote_blobs=has_remote_blobs)

    @classmethod
    def open(cls, installation: Installation, stop: threading.Event | None = None) -> Self:
        """Open or create the local log and start shipping.

        Raises LogBrokenError, UnreachableError for a blob store that cannot be used, and
        StopRequestedError once `stop` is set while it waits for the local log's write lock. Then
        whatever else waits for Kafka raises it too, and `close` waits for a Kafka that answers.
        """
        topics = [installation.topic_prefix + name for name in TOPIC_NAMES]
        # With Kafka streams are read back from there.
        is_indexed = installation.kafka_bootstrap_servers is None
        path = installation.local_log_path
        local = LocalLog(path, topics=topics, is_indexed=is_indexed, stop=stop)
        try:
            return cls(local, installation, stop)
        except BaseException:
            local.close()
            raise

    def _start_shipper(self, *, has_remote_blobs: bool) -> Shipper:
        url, path = self._installation.blobs_url, self.local.path
        uploads = None
        if has_remote_blobs:
            uploads = BlobUploads(staging_blobs(self._installation), RemoteBlobs(url))
        if self._has_kafka:
            return Shipper(path, self._open_for_sending, before=uploads, keep=KEEP)
        return Shipper(path, lambda: NoLog(url), before=uploads, keep=None)

    def _open_for_sending(self) -> "KafkaLog":
        self._sending = self._open_kafka()
        return self._sending

    def _open_kafka(self, stop: threading.Event | None = None) -> "KafkaLog":
        # Importing kafka takes a tenth of a second, and most installations have none.
        from producer.log.kafka import KafkaLog

        topics = [self.topic_prefix + name for name in TOPIC_NAMES]
        kafka = KafkaLog(self._installation, topics, assigned=self._assigned, stop=stop)
        self._learn_limits(kafka.max_message_bytes)
        return kafka

    def _learn_limits(self, limits: Mapping[str, int]) -> None:
        small = {topic: limit for topic, limit in limits.items() if limit < MAX_MESSAGE_BYTES}
        with self._limits_lock:
            known, self._limits = self._limits, small
        for topic, limit in small.items():
            if known.get(topic) != limit:
                servers = self._installation.kafka_bootstrap_servers or ""
                logger.warning(
                    "topic %s takes records of up to %s bytes; larger events are refused. To change"
                    " that, %s",
                    *(topic, f"{limit:,}", raise_limit(servers, topic, MAX_MESSAGE_BYTES)),
                )

    @property
    def is_shared(self) -> bool:
        """Whether other homes write to it; a local log is copied with its home."""
        return self._has_kafka

    def max_event_bytes(self, topic: str) -> int:
        """Of a serialised event: a larger one could never be shipped. The same on every log.

        A topic of Kafka's that takes less counts once Kafka was reached.
        """
        limit = self._limits.get(topic)
        return MAX_EVENT_BYTES if limit is None else largest_value(limit)

    def connect(self, timeout_s: float = 0.0, stop: threading.Event | None = None) -> LogWriter:
        """The log that others read, for reading streams back.

        Tries at least once and for up to `timeout_s`, then raises UnreachableError.
        StopRequestedError once `stop` is set while it waits.
        """
        if not self._has_kafka:
            return self.local
        stop = stop or self._stop
        deadline = time.monotonic() + timeout_s
        has_warned = False
        while True:
            try:
                return self._connect_once()
            except UnreachableError as error:
                if self._is_closed or time.monotonic() + RETRY_S > deadline:
                    raise
                if not has_warned:
                    has_warned = True
                    # The shipper has usually said by now what is wrong.
                    is_known = self._shipper is not None and self._shipper.problem is not None
                    warn_waiting(None if is_known else error, timeout_s)
            # Without the lock: `close` and callers with a shorter timeout must not wait for this.
            if stop is None:
                time.sleep(RETRY_S)
            elif stop.wait(RETRY_S):
                raise StopRequestedError

    def _connect_once(self) -> "KafkaLog":
        from producer.log.kafka import KafkaLog

        with self._lock:
            if self._is_closed:
                message = "the connection to Kafka was closed with its emitter; open another one"
                raise UnreachableError(message)
            if self._kafka is None:
                open_ = partial(self._open_kafka, self._stop)
                kafka = interruptible(open_, self._stop, KafkaLog.close)
                self._ends_at_contact = kafka.ends()
                self._kafka = kafka
            return self._kafka

    def log_id(self, timeout_s: float = 0.0, stop: threading.Event | None = None) -> str:
        """Identity of the log that others read. UnreachableError, StopRequestedError."""
        return self.connect(timeout_s, stop).log_id

    def ends(self) -> dict[TopicPartition, int]:
        """Offset after the last record of every partition, now. UnreachableError."""
        return self.connect().ends()

    def lower_bounds(self) -> dict[TopicPartition, int]:
        """Offsets at or before every event emitted from now on; a missing partition means 0.

        With Kafka these are its ends when it was first reached.
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
        drops = self.operator_drops()
        histories = {subject: StreamHistory(subject, drops=drops) for subject in subjects}
        log = self.connect(timeout_s)
        read_streams_into(histories, log, since, topic_prefix=self.topic_prefix)
        return histories

    def operator_drops(self) -> Drops:
        """What operators gave up (`cua-project parked drop`) in this home. MismatchError."""
        path = self._installation.operator_drops_path
        try:
            return read_operator_drops(path)
        except (ValueError, OSError) as error:
            message = f"what operators gave up cannot be read from {path}: {error}"
            raise MismatchError(message) from error

    def read_on(self, history: StreamHistory, since: Mapping[TopicPartition, int]) -> None:
        """Extend `history` from the offsets `since` on. UnreachableError, MismatchError."""
        log = self.connect()
        read_streams_into({history.subject: history}, log, since, topic_prefix=self.topic_prefix)

    def read_stream(
        self, subject: str, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of a stream's records, those that do not count included.

        Of a training's on Kafka those of the training.
        """
        topic = topic_of(subject, self.topic_prefix)
        if not self._has_kafka:
            return self.local.read_streams(topic, [subject], since)
        return iter(self._history.read_own(self._connect_once(), topic, subject, since))

    def check_whole(self, subjects: Collection[str]) -> None:
        """MismatchError when one of these streams, read just now, lies in two partitions."""
        misplaced = self._kafka.misplaced if self._kafka else {}
        for subject in subjects:
            if subject in misplaced:
                raise MismatchError(split_message(misplaced[subject]))

    def read_topic(
        self, name: str, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of every record of a topic (`training`), each partition in order."""
        return self.connect().read_topic(self.topic_prefix + name, since)

    def read_training(
        self, name: str, training_id: UUID, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of at least every record of a topic that names the training."""
        topic = self.topic_prefix + name
        if not self._has_kafka:
            return self.local.read_training(topic, training_id, since)
        return self._history.read_training(self._connect_once(), topic, training_id, since)

    def agrees(self, history: StreamHistory) -> bool:
        """Whether a training's stream, read just now, is all of it; after False, read again."""
        return self._history.agrees(history)

    def notify(self) -> None:
        """Wake the shipper: the local log has new records."""
        if (shipper := self._shipper) is not None:
            shipper.notify()

    def wait_shipped(self, timeout_s: float, stop: threading.Event | None = None) -> None:
        """Return once every record now in the local log is where others read it.

        Flush the emitter first: what it still buffers is not in the local log. Raises
        UnreachableError after `timeout_s`, or at once when shipping has ended, and MismatchError
        when it goes to another log by now; the records stay in the local log. StopRequestedError
        once `stop` is set.
        """
        if not self._has_kafka:
            return
        stop = stop or self._stop
        deadline = time.monotonic() + timeout_s
        target = self.log_id(timeout_s, stop)
        with closing(Spool(self.local.path)) as spool:
            end = spool.end()
            while (position := spool.cursor(target)) < end:
                shipper = self._shipper
                if shipper is not None and shipper.target_id not in {None, target}:
                    message = (
                        "Kafka's topics were deleted and made again while this process ran (the"
                        f" log was {target}, it is {shipper.target_id} now). Events are kept on"
                        " this disk and sent there; run the same command again"
                    )
                    raise MismatchError(message)
                is_shipping = shipper is not None and shipper.is_alive
                if not is_shipping or time.monotonic() > deadline:
                    problem = shipper.problem if shipper is not None else "sending has ended"
                    message = (
                        f"{end - position} events could not be sent to Kafka within {timeout_s:g} s"
                        f"{f' ({problem})' if problem else ''}. They are kept in {self.local.path}"
                    )
                    raise UnreachableError(message)
                if stop is not None and stop.is_set():
                    raise StopRequestedError
                time.sleep(POLL_S)

    def num_unshipped(self) -> int:
        """Records of the local log that are not shipped yet; 0 where nothing is shipped."""
        if self._shipper is None:
            return 0
        with closing(Spool(self.local.path)) as spool:
            return spool.num_unshipped(self._target(spool))

    def _num_held(self) -> int:
        """Those of them whose stream waits for a larger limit of its topic."""
        with closing(Spool(self.local.path)) as spool:
            return spool.num_held(self._target(spool))

    def _target(self, spool: Spool) -> str:
        """Where records are shipped to; before the first contact, the target of last time."""
        kafka, shipper = self._kafka, self._shipper
        known = shipper.target_id if shipper is not None else None
        if known is None and kafka is not None:
            known = kafka.log_id
        return known or next(iter(spool.targets()), "")

    def close(self, timeout_s: float, *, keep_file: bool = False) -> int:
        """Ship for up to `timeout_s`, then close; how many records remain unshipped.

        `keep_file`: leave the local log's file open, because another thread is writing to it.
        Everything else is closed even when the spool can no longer be read (LogBrokenError).
        """
        with ExitStack() as closers:
            if not keep_file:
                closers.callback(self.local.close)
            closers.callback(self._disconnect)
            if (shipper := self._shipper) is None:
                return 0
            closers.callback(self._stop_shipper, shipper)
            return ship_remaining(
                shipper,
                self.local.path,
                timeout_s,
                num_unshipped=self.num_unshipped,
                progress=lambda: self._sending.progress if self._sending is not None else None,
                num_held=self._num_held,
                is_stopping=self._is_stopping,
            )

    def check_not_held(self, subject: str) -> None:
        """MismatchError when a stream cannot be sent: one of its records is too large for Kafka."""
        if not self._has_kafka:
            return
        with closing(Spool(self.local.path)) as spool:
            position = spool.held(self.log_id()).get(subject)
            if position is not None:
                at = spool.coordinates(position)
                message = (
                    f"{subject} cannot be continued: a record of it ({at.topic}/{at.partition},"
                    f" offset {at.offset} of {self.local.path}) is larger than topic {at.topic}"
                    f" takes; {raise_limit('SERVERS', at.topic, MAX_MESSAGE_BYTES)}"
                )
                raise MismatchError(message)

    def _is_stopping(self) -> bool:
        return self._stop is not None and self._stop.is_set()

    def _stop_shipper(self, shipper: Shipper) -> None:
        shipper.stop(STOPPING_S if self._is_stopping() else STOP_S)
        self._shipper = None

    def _disconnect(self) -> None:
        with self._lock:
            self._is_closed = True
            kafka, self._kafka = self._kafka, None
        if kafka is not None:
            kafka.close()
