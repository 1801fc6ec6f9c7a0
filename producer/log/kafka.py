"""The log on many machines: Apache Kafka.

Creates topics and reads streams back. Knows nothing of the spool and the shipper in front of it.
"""

import contextlib
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from producer.errors import MismatchError, UnreachableError
from producer.log.kafka_client import (
    CONNECT_TIMEOUT_S,
    ConfigResource,
    KafkaClients,
    KafkaError,
    KafkaPartition,
    create_topics,
)
from producer.log.kafka_reading import bounds, read_spans, spans_to_read
from producer.log.kafka_sending import KafkaSender
from producer.log.writer import Coordinates, Record, TopicPartition
from schemas.catalogue import NUM_PARTITIONS, TOPIC_NAMES
from schemas.home import home_partition, is_foreign
from schemas.installation import Installation
from schemas.kafka_log import (
    MAX_BYTES_SETTING,
    MAX_MESSAGE_BYTES,
    TIMES_SETTING,
    TOPIC_SETTINGS,
    kafka_log_id,
    real_topic_ids,
)
from schemas.kafka_times import offsets_at

READ_TIMEOUT_S = 30.0
"""If no record arrives for this long before the end is reached, Kafka is not responding."""


class KafkaLog:
    """LogWriter on Kafka. Connects, and creates missing topics, when constructed.

    `append` returns once all in-sync replicas have acknowledged every record. After
    UnreachableError some records may be in the log. Send all of them again in order through a new
    KafkaLog: readers detect duplicates by their sequence, and a deleted topic is recreated, which
    makes it another log. `append` is for one thread at a time; the reading methods may run
    concurrently. Memory is bounded by the records of one `append`. `close` is idempotent.
    """

    def __init__(
        self,
        installation: Installation,
        topics: Collection[str] | None = None,
        *,
        stop: threading.Event | None = None,
        makes_topics: bool = True,
    ) -> None:
        """Connect. `topics` defaults to the installation's.

        Once `stop` is set, reading raises StopRequestedError. Appending ignores `stop`. Raises
        UnreachableError if no broker responds, UsageError for an unknown setting, and MismatchError
        for a missing topic unless it `makes_topics`.
        """
        self._clients = KafkaClients(installation, stop)
        own = [installation.topic_prefix + name for name in TOPIC_NAMES]
        self._topics = sorted(own if topics is None else topics)
        with self._clients.admin() as admin:
            described = self._describe(admin)
            absent = [topic for topic in self._topics if described[topic]["error_code"]]
            if absent and not makes_topics:
                message = (
                    f"Kafka at {self._clients.servers} has no topic {', '.join(absent)} that this"
                    " user may see; look at KAFKA_BOOTSTRAP_SERVERS and CUA_TOPIC_PREFIX"
                )
                raise MismatchError(message)
            if absent:
                create_topics(admin, absent, NUM_PARTITIONS, TOPIC_SETTINGS)
                described = self._describe(admin)
            cluster_id = str(admin.describe_cluster()["cluster_id"])
            self.settings = self._describe_settings(admin)
            """Maps a topic to its current settings, including the broker's defaults; empty if this
            user may not read them."""
            self.max_message_bytes = {
                topic: int(settings.get(MAX_BYTES_SETTING, MAX_MESSAGE_BYTES))
                for topic, settings in self.settings.items()
            }
            """Maps a topic to its current maximum size of a record batch, bytes."""
        self._sizes = {name: len(topic["partitions"]) for name, topic in described.items()}
        if missing := [topic for topic, size in self._sizes.items() if not size]:
            message = (
                f"Kafka at {self._clients.servers} has no partitions for {', '.join(missing)}. Is"
                " this user allowed to create and describe topics?"
            )
            raise UnreachableError(message)
        ids = {name: str(topic["topic_id"]) for name, topic in described.items()}
        self._log_id = kafka_log_id(cluster_id, ids, self._sizes)
        self._sender = KafkaSender(
            self._clients, self._sizes, self.max_message_bytes, real_topic_ids(ids)
        )

    @property
    def log_id(self) -> str:
        """Of the cluster, the topics and their homes (`kafka_log_id`)."""
        return self._log_id

    def _describe(self, admin: Any) -> dict[str, Any]:
        return {topic["name"]: topic for topic in admin.describe_topics(self._topics)}

    def _describe_settings(self, admin: Any) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {topic: {} for topic in self._topics}
        # Some users may not read a topic's settings; Kafka's refusals must then suffice.
        with contextlib.suppress(KafkaError):
            described = admin.describe_configs(
                [ConfigResource("TOPIC", topic) for topic in self._topics], config_filter="all"
            )
            for topic, settings in described.get("topic", {}).items():
                found[topic] = {name: str(one["value"]) for name, one in settings.items()}
        return found

    def append(self, records: Sequence[Record]) -> list[Coordinates]:
        """Send in order and wait for all acknowledgements.

        Raises UnreachableError, after which all must be sent again, and RecordRefusedError for the
        first record that exceeds its topic's limit. The records before that one are in the log,
        those after it are not.
        """
        return self._sender.append(records)

    @property
    def progress(self) -> tuple[int, int]:
        """(sent, acknowledged) records of the current `append`. Callable from any thread."""
        return self._sender.progress

    def ends(self) -> dict[TopicPartition, int]:
        """Offset after the last record of every partition. Raises UnreachableError."""
        places = [KafkaPartition(*at) for topic in self._sizes for at in self.places(topic)]
        with self._clients.consumer() as consumer:
            timeout_ms = int(CONNECT_TIMEOUT_S * 1000)
            found = self._clients.ask(partial(consumer.end_offsets, places, timeout_ms))
        return {TopicPartition(at.topic, at.partition): int(end) for at, end in found.items()}

    def read_streams(
        self, topic: str, keys: Collection[str], since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of several streams, each in order, from `since` to the end as of the call.

        Makes one pass over their partitions. Raises UnreachableError, MismatchError.
        """
        places = sorted({self.place_of(topic, key) for key in keys})
        for key, value, _ in self._read(places, {key.encode() for key in keys}, since):
            yield key, value

    def read_stream(
        self, topic: str, key: str, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[bytes, int]]:
        """(value, time) of one stream's records, in order, from `since` to the end as of the call.

        The time is Kafka's timestamp in milliseconds since 1970, which is the time of appending if
        `has_append_times`. Raises UnreachableError, MismatchError.
        """
        for _, value, time_ms in self._read([self.place_of(topic, key)], {key.encode()}, since):
            yield value, time_ms

    def read_topic(
        self, topic: str, since: Mapping[TopicPartition, int]
    ) -> Iterator[tuple[str, bytes]]:
        """(key, value) of a topic's records, each partition in order, from `since` to the end.

        Raises UnreachableError, MismatchError.
        """
        for key, value, _ in self._read(self.places(topic), None, since):
            yield key, value

    def place_of(self, topic: str, key: str) -> TopicPartition:
        """The partition that holds a stream's records."""
        return TopicPartition(topic, home_partition(key, self._sizes[topic]))

    def has_append_times(self, topic: str) -> bool:
        """Whether Kafka's clock stamps the topic's records, as far as this user can see."""
        return self.settings[topic].get(TIMES_SETTING) == TOPIC_SETTINGS[TIMES_SETTING]

    def offsets_since(self, topic: str, time_ms: int) -> dict[TopicPartition, int]:
        """Each partition's first offset with this time or a later one; its end if there is none.

        `time_ms` counts from 1970. Raises UnreachableError, also if a partition has no leader.
        """
        places = [KafkaPartition(*at) for at in self.places(topic)]
        timeout_ms = int(CONNECT_TIMEOUT_S * 1000)
        with self._clients.consumer() as consumer:
            ask = partial(offsets_at, consumer, dict.fromkeys(places, time_ms), timeout_ms)
            found = self._clients.ask(ask)
        return {TopicPartition(at.topic, at.partition): offset for at, offset in found.items()}

    def _read(
        self,
        places: Sequence[TopicPartition],
        wanted: Collection[bytes] | None,
        since: Mapping[TopicPartition, int],
    ) -> Iterator[tuple[str, bytes, int]]:
        """(key, value, time) of records with these keys, or of all records if `wanted` is None.

        Only one fetch at a time is held in memory.
        """
        with self._clients.consumer() as consumer:
            found = self._spans(consumer, places, since)
            spans = {KafkaPartition(*at): span for at, span in found.items()}
            yield from self._records(consumer, spans, wanted)

    def _records(
        self, consumer: Any, spans: Mapping[Any, range], wanted: Collection[bytes] | None
    ) -> Iterator[tuple[str, bytes, int]]:
        try:
            for at, records in read_spans(consumer, spans, READ_TIMEOUT_S, self._clients.stop):
                for record in records:
                    if wanted is None or record.key in wanted:
                        key = (record.key or b"").decode(errors="replace")
                        if is_foreign(key, at.topic, at.partition, self._log_id):
                            continue
                        # A tombstone has no value; consumers treat it as empty too.
                        yield key, record.value or b"", record.timestamp or 0
        except TimeoutError as error:
            message = (
                f"Kafka at {self._clients.servers} sent nothing for {READ_TIMEOUT_S:g} s although"
                " its log has more records. Is it overloaded?"
            )
            raise UnreachableError(message) from error

    def places(self, topic: str) -> list[TopicPartition]:
        """The topic's partitions."""
        return [TopicPartition(topic, number) for number in range(self._sizes[topic])]

    def _spans(
        self, consumer: Any, places: Sequence[TopicPartition], since: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, range]:
        partitions = [KafkaPartition(*at) for at in places]
        ask = partial(bounds, consumer, partitions, CONNECT_TIMEOUT_S)
        return spans_to_read(*self._clients.ask(ask), since)

    def close(self) -> None:
        """Release sockets and threads. An `append` in progress fails."""
        self._sender.close()
