"""Connections to Apache Kafka. The only module of the producer that imports kafka.

Handles settings, authentication and the cleanup of failed connections. Knows none of our topics.
"""

import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, TypeVar

from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPartition
from kafka.admin import ConfigResource
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.errors import (
    AuthorizationError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    RebalanceInProgressError,
    RecordListTooLargeError,
    TopicAlreadyExistsError,
)
from kafka.net.compat import KafkaNetClient
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.structs import OffsetAndMetadata

from producer.errors import UnreachableError, UsageError
from producer.log.kafka_contact import SlowAnswers, interruptible
from schemas.installation import Installation
from schemas.kafka_fetching import bound
from schemas.kafka_log import FETCH_BYTES, client_settings, server_addresses
from schemas.kafka_token import ClientCredentials

__all__ = [
    "CONNECT_TIMEOUT_S",
    "SIZE_ERRORS",
    "ConfigResource",
    "KafkaClients",
    "KafkaError",
    "KafkaPartition",
    "KafkaTimeoutError",
    "OffsetAndMetadata",
    "RebalanceInProgressError",
    "create_topics",
]

Answer = TypeVar("Answer")

CONNECT_TIMEOUT_S = 10.0
CHECK_S = 3.0
"""Time for one server to accept a connection."""
METADATA_AGE_MS = 10_000
"""How often producers and group members refresh topic metadata, because topics may be deleted or
created."""
PLAIN = {"allow_auto_create_topics": False, "metrics_enabled": False}

SIZE_ERRORS = (MessageSizeTooLargeError, RecordListTooLargeError)
"""The record is larger than the topic or the producer's request allows."""

# The caller reports an outage once; kafka-python would log a line for every attempt.
logging.getLogger("kafka").addHandler(logging.NullHandler())

# kafka-python requires its own class, but ours must not import kafka.
AbstractTokenProvider.register(ClientCredentials)


@cache
def _slow_answers(servers: str) -> SlowAnswers:
    """The instance that all clients of a process share."""
    return SlowAnswers(f"Kafka at {servers}")


def _close(consumer: Any) -> None:
    consumer.close(autocommit=False, timeout_ms=0)


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python has no types
    """Calls a function with the numbers of revoked partitions."""

    def __init__(self, on_revoked: Callable[[Collection[int]], None]) -> None:
        self._on_revoked = on_revoked

    def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        self._on_revoked([at.partition for at in revoked])

    def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        pass


class KafkaClients:
    """Creates kafka-python clients for one installation and keeps none. Thread-safe."""

    def __init__(self, installation: Installation, stop: threading.Event | None = None) -> None:
        """Check the installation's settings for Kafka.

        Raises UsageError for an unknown setting or address, and ValueError if Kafka is not
        configured. Once `stop` is set, creating a consumer and requests through `ask` raise
        StopRequestedError.
        """
        servers = installation.kafka_bootstrap_servers
        if servers is None:
            message = "this installation has no Kafka"
            raise ValueError(message)
        self.servers = servers
        self.stop = stop
        self._slow = _slow_answers(servers)
        try:
            self._addresses = server_addresses(servers)
            self._settings: dict[str, Any] = {
                "bootstrap_servers": servers.split(","),
                "bootstrap_timeout_ms": int(CONNECT_TIMEOUT_S * 1000),
                "reconnect_backoff_max_ms": 1000,
                **client_settings(installation.kafka_options),
            }
        except ValueError as error:
            raise UsageError(str(error)) from error

    @contextlib.contextmanager
    def admin(self) -> Iterator[Any]:
        """Yield an admin client.

        Raises UnreachableError also for errors that Kafka itself reports.
        """
        admin = self._client(KafkaAdminClient)
        try:
            with self._slow.waiting():
                yield admin
        except KafkaError as error:
            raise self.unreachable(error, "did not answer") from error
        finally:
            admin.close()

    @contextlib.contextmanager
    def consumer(self, max_partition_fetch_bytes: int = 4 << 20) -> Iterator[Any]:
        """Yield a consumer. One that stayed open would keep reconnecting during an outage."""
        consumer = self._consumer(
            group_id=None,
            auto_offset_reset="none",
            fetch_max_bytes=FETCH_BYTES,
            max_partition_fetch_bytes=max_partition_fetch_bytes,
        )
        bound(consumer)
        try:
            yield consumer
        except KafkaError as error:
            raise self.unreachable(error, "did not answer") from error
        finally:
            _close(consumer)

    def group_consumer(
        self, topic: str, on_revoked: Callable[[Collection[int]], None], **settings: object
    ) -> Any:
        """A member of a consumer group, which the caller commits and closes.

        A joining member takes over some partitions of the others, which keep the rest. `on_revoked`
        is called in `poll` with the partitions that this member is about to lose. Raises
        UnreachableError.
        """
        assignors = [CooperativeStickyAssignor]
        # A topic that was just created may be missing when partitions are assigned. With
        # kafka-python's default of five minutes, a new member could wait that long for a partition.
        consumer = self._consumer(
            auto_offset_reset="earliest",
            partition_assignment_strategy=assignors,
            metadata_max_age_ms=METADATA_AGE_MS,
            **settings,
        )
        consumer.subscribe([topic], listener=_Listener(on_revoked))
        return consumer

    def _consumer(self, **settings: object) -> Any:
        make = partial(self._client, KafkaConsumer, enable_auto_commit=False, **PLAIN, **settings)
        return interruptible(make, self.stop, _close)

    def ask(self, question: Callable[[], Answer]) -> Answer:
        """Return a consumer's answer to a question. Raises KafkaError, UnreachableError."""
        try:
            with self._slow.waiting():
                return interruptible(question, self.stop)
        except KeyError as error:
            # kafka-python raises this for a partition about which it has no answer.
            what = "has no leader of a partition, or no longer has its topic"
            raise self.unreachable(error, what) from error

    def producer(self, **settings: object) -> Any:
        """An idempotent producer, which the caller closes. Raises UnreachableError."""
        return self._client(
            KafkaProducer,
            enable_idempotence=True,
            acks="all",
            metadata_max_age_ms=METADATA_AGE_MS,
            **PLAIN,
            **settings,
        )

    def _client(self, make: Callable[..., Any], **settings: object) -> Any:
        """Create a kafka-python client. Raises UnreachableError."""
        self._check_connects()
        started: list[KafkaNetClient] = []

        def remember(**configs: object) -> Any:
            started.append(KafkaNetClient(**configs))
            # kafka-python 3.0.12 drops the setting of that name on the way here. Without it, a
            # producer would recreate a deleted topic with the broker's default partitions and
            # retention.
            started[-1].cluster.config["allow_auto_create_topics"] = False
            return started[-1]

        try:
            tokens = self._settings.get("sasl_oauth_token_provider")
            if isinstance(tokens, ClientCredentials):
                tokens.token()  # kafka-python would retry for ten seconds without saying why
            with self._slow.waiting():
                return make(**self._settings, **settings, kafka_client=remember)
        except (KafkaError, OSError, ValueError) as error:
            # A client that could not connect leaves a thread and a socket behind, and its close()
            # does nothing.
            for client in started:
                client.close()
                client._net.stop()
            raise self.unreachable(error, "cannot be reached") from error

    def _check_connects(self) -> None:
        """Raise UnreachableError at once if no server accepts a connection.

        kafka-python would retry for ten seconds and leave sockets open.
        """
        failure = OSError()
        for address in self._addresses:
            try:
                with socket.create_connection(address, CHECK_S):
                    return
            except OSError as error:
                failure = error
        raise self.unreachable(failure, "cannot be reached") from failure

    def unreachable(self, error: BaseException, what: str) -> UnreachableError:
        """Build the error to raise: what Kafka did, why, and what to check."""
        if isinstance(error, AuthorizationError):
            return UnreachableError(
                f"Kafka at {self.servers} denies this user what it needs ({type(error).__name__});"
                " docs/production.md lists the permissions"
            )
        return UnreachableError(
            f"Kafka at {self.servers} {what}: {error}. Is it running, and is"
            " KAFKA_BOOTSTRAP_SERVERS right?"
        )


def create_topics(
    admin: Any, topics: Sequence[str], num_partitions: int, settings: Mapping[str, str]
) -> None:
    """Create these topics with the broker's default replication. Others may do so concurrently."""
    wanted = {
        "num_partitions": num_partitions,
        "replication_factor": -1,
        "configs": dict(settings),
    }
    for topic in topics:
        with contextlib.suppress(TopicAlreadyExistsError):
            admin.create_topics({topic: wanted})
    admin.wait_for_topics(list(topics))


def keep_joining(consumer: Any) -> None:
    """Let a group member's join continue if it takes longer than a poll. Call before each `poll`.

    kafka-python 3.0.12 forgets a join that began because the topic's partitions changed and that
    was not finished when `poll` returned: no later poll takes its result, and no heartbeat is sent.
    Such a member would never get a partition.
    """
    if consumer._coordinator.rejoining:
        consumer._coordinator.request_rejoin()


def close_producer(producer: Any) -> None:
    """Close a producer at once, dropping unacknowledged records.

    kafka-python's `close` flushes first. If that exceeds its limit, it raises with its threads
    still running, and raises again from `__del__`.
    """
    producer._sender.force_close()
    with contextlib.suppress(KafkaError):
        producer.close(timeout=0)
    producer._closed = True


def topic_ids(producer: Any, topics: Collection[str]) -> dict[str, str]:
    """Map topics to Kafka's ids, from the producer's latest metadata. Unknown topics are missing.

    Makes no request: a producer refreshes every METADATA_AGE_MS and after an error.
    """
    found = {topic: producer._metadata.topic_id(topic) for topic in topics}
    return {topic: str(one) for topic, one in found.items() if one is not None}


def topic_sizes(producer: Any, topics: Collection[str]) -> dict[str, int]:
    """Map topics to their numbers of partitions, as `topic_ids` does."""
    found = {topic: producer._metadata.partitions_for_topic(topic) for topic in topics}
    return {topic: len(numbers) for topic, numbers in found.items() if numbers}
