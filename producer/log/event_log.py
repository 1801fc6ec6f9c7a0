"""The log as a producer uses it: reads what others can see, and ships what they cannot see yet.

Without Kafka, the local log is the log. With Kafka, the local log is the spool in front of it, and
a shipper sends its records on. With a remote blob store, the shipper uploads blobs first.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING, Self
from uuid import UUID

from producer.blobs import RemoteBlobs, staging_blobs
from producer.errors import MismatchError, StopRequestedError, UnreachableError, UsageError
from producer.log.blob_uploads import BlobUploads, NoLog
from producer.log.kafka_contact import LogClosedError, Result, interruptible, reach
from producer.log.kafka_history import KafkaHistory
from producer.log.local import LocalLog
from producer.log.shipper import Shipper
from producer.log.spool import Spool
from producer.log.stream_history import (
    StreamHistory,
    read_histories,
    read_streams_into,
)
from producer.log.topic_checks import TopicWarnings, refuse_compacted
from producer.log.writer import LogWriter, TopicPartition
from schemas.catalogue import TOPIC_NAMES, stream, topic_of
from schemas.home import describe_growth
from schemas.installation import Installation
from schemas.kafka_log import MAX_EVENT_BYTES, MAX_MESSAGE_BYTES, largest_value, raise_limit

if TYPE_CHECKING:
    from producer.log.kafka import KafkaLog

logger = logging.getLogger(__name__)

POLL_S = 0.02
"""Interval between reads of the shipping cursor, which another process may move."""
STOP_S = 1.0
"""Time for a request in flight to finish when closing; then its connection is closed."""
STOPPING_S = 0.1
"""The same time when the process has been asked to stop."""
SAY_AFTER_S = 1.0
"""Waits for the last records that exceed this time are logged."""
STUCK_S = 0.7
"""Kafka acknowledges in milliseconds; after this long without progress it is not responding."""


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
        """Makes appended records durable."""
        self.topic_prefix = installation.topic_prefix
        self._installation = installation
        self.is_shared = installation.kafka_bootstrap_servers is not None
        """Whether it is Kafka, which other homes write to; a local log is copied with its home."""
        self._lock = threading.Lock()
        self._kafka: KafkaLog | None = None
        """Connection for reading; `_sending` is the shipper's own."""
        self._sending: KafkaLog | None = None
        self._ends_at_contact: dict[TopicPartition, int] = {}
        self._limits: Mapping[str, int] = {}
        self._warnings = TopicWarnings(installation.kafka_bootstrap_servers)
        self._is_closed = False
        self._stop = stop
        self._history = KafkaHistory()
        self._shipper: Shipper | None = None
        url, path = installation.blobs_url, local.path
        if installation.blobs_folder is None:
            uploads = BlobUploads(staging_blobs(installation), RemoteBlobs(url))
            if self.is_shared:
                self._shipper = Shipper(path, self._open_for_sending, before=uploads)
            else:
                self._shipper = Shipper(path, lambda: NoLog(url), before=uploads, keep=None)
        elif self.is_shared:
            self._shipper = Shipper(path, self._open_for_sending)

    @classmethod
    def open(cls, installation: Installation, stop: threading.Event | None = None) -> Self:
        """Open or create the local log and start shipping.

        Raises LogBrokenError, UnreachableError if the blob store cannot be used, and
        StopRequestedError if `stop` is set while waiting for the local log's write lock. Once
        `stop` is set, every other wait for Kafka raises StopRequestedError too, and `close` waits
        only if Kafka responds.
        """
        local = LocalLog(
            installation.local_log_path,
            topics=[installation.topic_prefix + name for name in TOPIC_NAMES],
            # With Kafka, streams are read back from there.
            is_indexed=installation.kafka_bootstrap_servers is None,
            stop=stop,
        )
        try:
            return cls(local, installation, stop)
        except BaseException:
            local.close()
            raise

    def _open_for_sending(self) -> "KafkaLog":
        self._sending = self._open_kafka()
        return self._sending

    def _open_kafka(self, stop: threading.Event | None = None) -> "KafkaLog":
        # Importing kafka takes a tenth of a second, and most installations do not use it.
        from producer.log.kafka import KafkaLog

        kafka = KafkaLog(self._installation, stop=stop)
        try:
            self._refuse_grown(kafka.log_id)
        except BaseException:
            kafka.close()
            raise
        limits = kafka.max_message_bytes.items()
        self._limits = {topic: limit for topic, limit in limits if limit < MAX_MESSAGE_BYTES}
        self._warnings.of_sizes(self._limits)
        self._warnings.of_deletion(kafka.settings)
        return kafka

    def _refuse_grown(self, log_id: str) -> None:
        """Raise MismatchError if this home has sent to the log when a topic of it was smaller."""
        with closing(Spool(self.local.path)) as spool:
            for target in spool.targets():
                if (problem := describe_growth(target, log_id)) is not None:
                    raise MismatchError(problem)

    def max_event_bytes(self, topic: str) -> int:
        """Maximum size of a serialised event, the same for all logs; larger ones cannot be shipped.

        A lower limit of a Kafka topic applies once Kafka has been reached.
        """
        limit = self._limits.get(topic)
        return MAX_EVENT_BYTES if limit is None else largest_value(limit)

    def connect(self, timeout_s: float = 0.0, stop: threading.Event | None = None) -> LogWriter:
        """The log that others read, for reading streams back.

        Tries at least once and for up to `timeout_s`. Raises UnreachableError after that,
        UsageError for a compacted topic, and StopRequestedError if `stop` is set while waiting.
        """
        if not self.is_shared:
            return self.local
        return self._reach(self._connect_once, timeout_s, stop)

    def _reach(
        self, attempt: Callable[[], Result], timeout_s: float, stop: threading.Event | None
    ) -> Result:
        shipper = self._shipper
        # The shipper has usually logged the problem by now.
        return reach(
            attempt, timeout_s, stop or self._stop, lambda: bool(shipper and shipper.problem)
        )

    def _connect_once(self) -> "KafkaLog":
        with self._lock:
            if self._is_closed:
                message = "the connection to Kafka was closed with its emitter; open another one"
                raise LogClosedError(message)
            if self._kafka is None:
                open_ = partial(self._open_kafka, self._stop)
                kafka = interruptible(open_, self._stop, lambda late: late.close())
                try:
                    refuse_compacted(kafka.settings, self._installation.kafka_bootstrap_servers)
                except UsageError:
                    kafka.close()
                    raise
                self._ends_at_contact = kafka.ends()
                self._kafka = kafka
            return self._kafka

    def log_id(self, timeout_s: float = 0.0, stop: threading.Event | None = None) -> str:
        """Identity of the log that others read. Raises UnreachableError, StopRequestedError."""
        return self.connect(timeout_s, stop).log_id

    def ends(self) -> dict[TopicPartition, int]:
        """Offset after the last record of every partition, now. Raises UnreachableError."""
        return self.connect().ends()

    def lower_bounds(self) -> dict[TopicPartition, int]:
        """Offsets at or before every event emitted from now on; a missing partition means 0.

        With Kafka these are its end offsets when it was first reached.
        """
        return dict(self._ends_at_contact) if self.is_shared else self.local.ends()

    def read_back(
        self, subject: str, since: Mapping[TopicPartition, int], *, timeout_s: float = 0.0
    ) -> StreamHistory:
        """One stream as others see it now. Raises UnreachableError, MismatchError.

        `since` holds offsets at or before the stream's first record; a missing partition means 0.
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
        return read_histories(self._installation, self.connect(timeout_s), subjects, since)

    def read_on(
        self,
        history: StreamHistory,
        since: Mapping[TopicPartition, int],
        timeout_s: float = 0.0,
        stop: threading.Event | None = None,
    ) -> None:
        """Extend `history` from the offsets `since` on.

        If the log becomes unreachable during the read, the read is repeated. Raises as `connect`
        does, and MismatchError.
        """
        histories, prefix = {history.subject: history}, self.topic_prefix
        self._reach(
            lambda: read_streams_into(histories, self.connect(), since, topic_prefix=prefix),
            *(timeout_s, stop),
        )

    def read_stream(
        self, subject: str, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of a stream's records, including those that do not count.

        On Kafka, for a training's stream, only the training's own records.
        """
        topic = topic_of(subject, self.topic_prefix)
        if not self.is_shared:
            return self.local.read_streams(topic, [subject], since)
        return self._history.read_own(self._connect_once(), topic, subject, since)

    def read_topic(
        self, name: str, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of every record of a topic (`training`), each partition in order."""
        return self.connect().read_topic(self.topic_prefix + name, since)

    def read_training(
        self, name: str, training_id: UUID, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of at least every record of a topic that names the training.

        On Kafka only of those appended since the training began, if its own stream was read before.
        """
        topic = self.topic_prefix + name
        if not self.is_shared:
            return self.local.read_training(topic, training_id, since)
        own = topic_of(stream("training", training_id), self.topic_prefix)
        log = self._connect_once()
        return self._history.read_training(log, topic, own, training_id, since)

    def notify(self) -> None:
        """Wake the shipper: the local log has new records."""
        if (shipper := self._shipper) is not None:
            shipper.notify()

    def wait_shipped(self, timeout_s: float, stop: threading.Event | None = None) -> None:
        """Wait until every record now in the local log is where others read it.

        Flush the emitter first, because what it still buffers is not in the local log. Raises
        UnreachableError after `timeout_s` or at once when shipping has ended, MismatchError if the
        shipper now sends to another log, and StopRequestedError once `stop` is set. The records
        stay in the local log.
        """
        if not self.is_shared:
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
                if shipper is not None and isinstance(shipper.problem, MismatchError):
                    raise shipper.problem
                is_over = time.monotonic() > deadline
                if shipper is None or not shipper.is_alive or is_over:
                    problem = "sending has ended" if shipper is None else shipper.problem
                    message = (
                        f"{end - position} events could not be sent to Kafka within {timeout_s:g} s"
                        f"{f' ({problem})' if problem else ''}. They are kept in {self.local.path}"
                    )
                    raise UnreachableError(message)
                if stop is not None and stop.is_set():
                    raise StopRequestedError
                time.sleep(POLL_S)

    def num_unshipped(self) -> int:
        """Number of records in the local log that are not shipped yet; 0 if nothing is shipped."""
        return self._num_left()[0]

    def _num_left(self) -> tuple[int, int]:
        """Number of records not shipped yet, and how many of them belong to held streams."""
        kafka, shipper = self._kafka, self._shipper
        if shipper is None:
            return 0, 0
        with closing(Spool(self.local.path)) as spool:
            # Before the first contact, use the last known target.
            target = shipper.target_id or (kafka.log_id if kafka else (*spool.targets(), "")[0])
            return spool.num_unshipped(target), spool.num_held(target)

    def close(self, timeout_s: float, *, keep_file: bool = False) -> int:
        """Ship for up to `timeout_s`, then close. Returns the number of unshipped records.

        `keep_file` leaves the local log's file open, because another thread is writing to it.
        Everything else is closed even if the spool can no longer be read (LogBrokenError).
        """
        with ExitStack() as closers:
            if not keep_file:
                closers.callback(self.local.close)
            closers.callback(self._disconnect)
            if (shipper := self._shipper) is None:
                return 0
            closers.callback(self._stop_shipper, shipper)
            return self._ship_remaining(shipper, timeout_s)

    def _ship_remaining(self, shipper: Shipper, timeout_s: float) -> int:
        """Wait until everything is sent. Returns the number of records left after `timeout_s`.

        A process that was asked to stop waits only while records are being sent or acknowledged.
        Logs what stays, and where.
        """
        began = progressed = time.monotonic()
        has_said = False
        before: object = None
        num_left, num_held = self._num_left()
        shipper.notify()
        while num_left:
            now = time.monotonic()
            progress = num_left, None if self._sending is None else self._sending.progress
            if progress != before:
                before, progressed = progress, now
            is_stuck = self._is_stopping() and now - progressed > STUCK_S
            is_over = now - began > timeout_s or is_stuck or not shipper.is_alive
            # Held records cannot be sent now, however long the wait.
            if is_over or num_left == num_held:
                logger.warning(
                    "%d events are not sent yet; %s keeps them. `cua-project ship` sends them, and"
                    " so does `cua-project up` or the next `cua-train` of this home",
                    *(num_left, self.local.path),
                )
                break
            if not has_said and now - began > SAY_AFTER_S:
                has_said = True
                logger.info("sending the last %d events; up to %.0f s", num_left, timeout_s)
            time.sleep(POLL_S)
            num_left, num_held = self._num_left()
        return num_left

    def check_not_held(self, subject: str) -> None:
        """Raise MismatchError if the stream cannot be sent: a record is too large for Kafka."""
        if not self.is_shared:
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
