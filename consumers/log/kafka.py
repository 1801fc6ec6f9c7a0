"""Reads the log from Apache Kafka.

No consumer group: positions are the caller's, so nothing is committed here and nothing can be
redelivered or lost by a rebalance.
"""

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from consumers.errors import CuaProjectError, MismatchError, UnreachableError
from consumers.log.kafka_client import (
    ANSWER_TIMEOUT_MS,
    GONE_ERRORS,
    TOPIC_DENIED,
    ConfigResource,
    KafkaClients,
    KafkaError,
    KafkaPartition,
    topic_ids,
)
from consumers.log.kafka_last_records import replaced
from consumers.log.kafka_records import log_records
from consumers.log.reach import CUT_OFF, out_of_reach
from consumers.log.reader import LastRecord, LogRecord, TopicPartition
from schemas.catalogue import TOPIC_NAMES
from schemas.home import describe_growth, name_sizes
from schemas.ids import EPOCH_START
from schemas.installation import Installation
from schemas.kafka_log import kafka_log_id, real_topic_ids
from schemas.kafka_times import offsets_at

logger = logging.getLogger(__name__)

STALL_S = 5.0
"""Silence after which the end offsets are checked; if they are ahead, the consumer is stuck and is
replaced."""
CHECK_TIMEOUT_MS = 5_000
"""For that answer: a broker that is stopped is so noticed within ten seconds."""
SLICE_S = 0.5
"""A poll looks this often whether positions moved without a record."""
MILLISECOND = timedelta(milliseconds=1)

Answer = TypeVar("Answer")


class KafkaLogReader:
    """LogReader of Kafka. Connects when constructed (UnreachableError). Not thread-safe.

    While the broker is away `poll` returns [] and reconnects by itself; every other method raises
    UnreachableError after ten seconds. Missing topics are an empty log until they are created.
    Whatever reads raises MismatchError once a topic was deleted and made again: that is another
    log, whose offsets mean other records.
    """

    def __init__(self, installation: Installation) -> None:
        assert installation.kafka_bootstrap_servers is not None  # noqa: S101  # the caller's decision
        servers = installation.kafka_bootstrap_servers
        self._clients = KafkaClients(servers, installation.kafka_options)
        self._topics = [installation.topic_prefix + name for name in TOPIC_NAMES]
        self._consumer: Any = None
        self._places: list[TopicPartition] = []
        self._log_id = ""
        self._base_id = ""
        """The same whatever the topics' sizes."""
        self._topic_ids: dict[str, str] = {}
        self._wanted: dict[Any, int] = {}
        self._last_news = time.monotonic()
        self._problem: str | None = None
        self._has_warned = False
        self._describe()

    @property
    def kind(self) -> str:
        """`kafka`."""
        return "kafka"

    @property
    def log_id(self) -> str:
        """Of the cluster, the topics and their homes (`kafka_log_id`); "" until both exist."""
        if not self._log_id:
            self._describe()
        return self._log_id

    @property
    def problem(self) -> str | None:
        """Why `poll` returns nothing, known some ten seconds after the broker went away."""
        return self._problem

    def partitions(self) -> list[TopicPartition]:
        """Every partition of the installation's topics, sorted; empty until both exist.

        While records are polled, partitions that a topic has grown are found within seconds.
        MismatchError when that makes it another log.
        """
        if not self._log_id:
            self._describe()
        elif self._consumer is not None and self._wanted:
            self._find_grown()
        return list(self._places)

    def _find_grown(self) -> None:
        """A topic's partitions are never taken away, so what is missing is not known yet."""
        if self._gone():
            # Asking for an unknown topic's partitions has no time limit.
            return
        try:
            found = {
                TopicPartition(topic, partition)
                for topic in self._topics
                for partition in self._consumer.partitions_for_topic(topic)
            }
        except KafkaError:
            return
        self._places = sorted(found.union(self._places))
        sizes = Counter(at.topic for at in self._places)
        problem = describe_growth(self._log_id, self._base_id + name_sizes(sizes))
        if problem is not None:
            raise MismatchError(problem)

    def _describe(self) -> None:
        with self._clients.admin() as admin:
            topics = admin.describe_topics(self._topics)
            cluster_id = admin.describe_cluster()["cluster_id"]
        denied = [topic["name"] for topic in topics if topic["error_code"] == TOPIC_DENIED]
        if denied:
            raise self._clients.denied("Describe of " + " and ".join(denied))
        missing = [
            topic["name"] for topic in topics if topic["error_code"] or not topic["partitions"]
        ]
        if missing:
            if len(missing) < len(topics) and not self._has_warned:
                self._has_warned = True
                logger.warning(
                    "Kafka at %s has no topic %s, but has others with the prefix; until the topic"
                    " exists, the log counts as empty",
                    *(self._clients.servers, " and ".join(missing)),
                )
            return
        self._places = sorted(
            TopicPartition(topic["name"], at["partition_index"])
            for topic in topics
            for at in topic["partitions"]
        )
        ids = {topic["name"]: str(topic["topic_id"]) for topic in topics}
        self._topic_ids = real_topic_ids(ids)
        sizes = Counter(at.topic for at in self._places)
        self._base_id = kafka_log_id(str(cluster_id), ids, {})
        self._log_id = kafka_log_id(str(cluster_id), ids, sizes)

    def _gone(self) -> list[str]:
        """Topics being read that Kafka no longer has. MismatchError when it has others instead."""
        topics = sorted({at.topic for at in self._wanted} & self._topic_ids.keys())
        now = None if self._consumer is None else topic_ids(self._consumer, topics)
        if now is None:
            return []
        for topic in topics:
            if topic in now and now[topic] != self._topic_ids[topic]:
                message = (
                    f"topic {topic} was deleted and made again while it was read: it is another log"
                    " now. Start the command again to learn whether that can be continued"
                )
                raise MismatchError(message)
        return [topic for topic in topics if topic not in now]

    def _without(self, gone: list[str]) -> str:
        topics = " and ".join(gone)
        return f"Kafka at {self._clients.servers} no longer has the topic {topics}. Was it deleted?"

    def topic_settings(self) -> dict[str, dict[str, str]]:
        """Topic -> its settings in Kafka's names, and `partitions`; topics that exist alone."""
        with self._clients.admin() as admin:
            topics = [
                describe_topic
                for describe_topic in admin.describe_topics(self._topics)
                if not describe_topic["error_code"]
            ]
            resources = [ConfigResource("TOPIC", topic["name"]) for topic in topics]
            found = admin.describe_configs(resources, config_filter="all") if topics else {}
        by_topic: dict[str, Any] = next(iter(found.values()), {})
        return {
            topic["name"]: {
                **{name: str(one["value"]) for name, one in by_topic[topic["name"]].items()},
                "partitions": str(len(topic["partitions"])),
            }
            for topic in topics
        }

    def beginning_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """First offset; above 0 where retention has deleted records."""
        return self._offsets(
            lambda consumer, partitions: consumer.beginning_offsets(
                partitions, timeout_ms=ANSWER_TIMEOUT_MS
            ),
            partitions,
        )

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Offset after the last record that is on all in-sync replicas."""
        return self._offsets(
            lambda consumer, partitions: consumer.end_offsets(
                partitions, timeout_ms=ANSWER_TIMEOUT_MS
            ),
            partitions,
        )

    def offsets_for_time(
        self, partitions: Sequence[TopicPartition], time: datetime
    ) -> dict[TopicPartition, int]:
        """First offset appended at or after `time` (in milliseconds); the end if there is none."""
        since_ms = max(0, math.ceil((time - EPOCH_START) / MILLISECOND))
        return self._offsets(
            lambda consumer, partitions: offsets_at(
                consumer, dict.fromkeys(partitions, since_ms), ANSWER_TIMEOUT_MS
            ),
            partitions,
        )

    def _offsets(
        self,
        question: Callable[[Any, Any], Mapping[Any, int]],
        partitions: Sequence[TopicPartition],
    ) -> dict[TopicPartition, int]:
        partitions = [KafkaPartition(tp.topic, tp.partition) for tp in partitions]
        if not partitions:
            return {}
        found = self._ask(lambda consumer: question(consumer, partitions))
        return {TopicPartition(at.topic, at.partition): int(offset) for at, offset in found.items()}

    def replaced(self, last: Mapping[TopicPartition, LastRecord]) -> dict[TopicPartition, datetime]:
        """Partitions that have another record at the offset before `next_offset`, and its time."""
        # Asked of topics that it has met and of others, kafka-python drops the others: so it meets
        # all of them first.
        self.end_offsets(self.partitions())
        return self._ask(lambda consumer: replaced(consumer, last))

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from these offsets, and no others.

        CuaProjectError when such a record was deleted, MismatchError when the log is too short.
        """
        if (error := self._out_of_reach(positions)) is not None:
            raise error
        self._wanted = {
            KafkaPartition(tp.topic, tp.partition): offset for tp, offset in positions.items()
        }
        self._ask(self._assign)

    def _out_of_reach(self, positions: Mapping[TopicPartition, int]) -> CuaProjectError | None:
        partitions = list(positions)
        ends, beginnings = self.end_offsets(partitions), self.beginning_offsets(partitions)
        return out_of_reach(positions, beginnings, ends)

    def _assign(self, consumer: Any) -> None:  # kafka-python ships no types
        consumer.assign(list(self._wanted))
        for at, offset in self._wanted.items():
            consumer.seek(at, offset)
        self._last_news = time.monotonic()

    def positions(self) -> dict[TopicPartition, int]:
        """The next offsets to read; markers and compacted records are behind them."""
        return {
            TopicPartition(at.topic, at.partition): offset for at, offset in self._wanted.items()
        }

    def poll(self, max_records: int, timeout_s: float) -> list[LogRecord]:
        """Up to `max_records`, each partition in order; waits up to `timeout_s` for the first.

        CuaProjectError when the next was deleted, MismatchError when the log was cut off before it.
        """
        if not self._wanted:
            time.sleep(timeout_s)
            return []
        try:
            if self._consumer is None:
                self._ask(self._assign)
            batches = self._poll(max_records, timeout_s)
        except (KafkaError, UnreachableError) as error:
            # The broker is away; the next poll tries again with a new consumer.
            self._problem = str(error)
            self._drop()
            time.sleep(min(timeout_s, 1.0))
            return []
        if not batches:
            if gone := self._gone():
                self._problem = self._without(gone)
            elif time.monotonic() - self._last_news > STALL_S:
                self._check_stall()
            return []
        self._gone()
        self._last_news = time.monotonic()
        self._problem = None
        records: list[LogRecord] = []
        for at, batch in batches.items():
            self._wanted[at] = batch[-1].offset + 1
            records += log_records(at.topic, at.partition, batch)
        if len(records) < max_records:
            self._skip()
        return records

    def _poll(self, max_records: int, timeout_s: float) -> Any:  # kafka-python ships no types
        """The consumer's batches; none when time is up or positions moved without a record."""
        deadline = time.monotonic() + timeout_s
        while True:
            slice_s = min(max(0.001, deadline - time.monotonic()), SLICE_S)
            try:
                batches = self._consumer.poll(
                    timeout_ms=int(slice_s * 1000), max_records=max_records
                )
            except GONE_ERRORS as error:
                self._gone()
                raise self._lost(error) from error
            if batches or self._skip() or time.monotonic() >= deadline:
                return batches

    def _lost(self, error: Exception) -> CuaProjectError:
        """What to raise when Kafka has not the next record. UnreachableError.

        A log that was cut off may have grown past the offset since.
        """
        problem = self._out_of_reach(self.positions())
        return problem or MismatchError(
            f"Kafka at {self._clients.servers} no longer has the next record ({error}): {CUT_OFF}"
        )

    def _skip(self) -> bool:
        """Advance over offsets that hold no record: transaction markers, compacted records.

        Whether there were any.
        """
        before = dict(self._wanted)
        for at, offset in before.items():
            try:
                position = self._consumer.position(at, timeout_ms=ANSWER_TIMEOUT_MS)
            except KafkaError:
                break
            if position is not None and position > offset:
                self._wanted[at] = position
        if self._wanted == before:
            return False
        self._last_news = time.monotonic()
        return True

    def _check_stall(self) -> None:
        """Replace a consumer that is stuck before the end, a bug of kafka-python."""
        self._last_news = time.monotonic()
        try:
            ends = self._ask(
                lambda consumer: consumer.end_offsets(
                    list(self._wanted), timeout_ms=CHECK_TIMEOUT_MS
                )
            )
        except UnreachableError as error:
            self._problem = str(error)
            return
        self._problem = None
        if any(ends[at] > offset for at, offset in self._wanted.items()):
            self._drop()

    def _ask(self, question: Callable[[Any], Answer]) -> Answer:
        try:
            if self._consumer is None:
                self._consumer = self._clients.consumer()
                if self._wanted:
                    self._assign(self._consumer)
            return question(self._consumer)
        except (KafkaError, KeyError) as error:
            # KeyError: kafka-python's about a partition of which it has no answer.
            try:
                gone = self._gone()
            finally:
                self._drop()
            if gone:
                raise UnreachableError(self._without(gone)) from error
            what = (
                "has no leader of a partition" if isinstance(error, KeyError) else "did not answer"
            )
            raise self._clients.unreachable(error, what) from error

    def _drop(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close(autocommit=False, timeout_ms=0)

    def close(self) -> None:
        """Release sockets and threads. Idempotent."""
        self._wanted = {}
        self._drop()
