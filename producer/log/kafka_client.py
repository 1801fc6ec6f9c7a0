"""Connections to Apache Kafka. The only module of the producer that imports kafka.

Owns settings, authentication and what a failed connection leaves behind; knows no topic of ours.
"""

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, TypeVar

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPartition
from kafka.admin import ConfigResource
from kafka.errors import (
    AuthorizationError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
    TopicAlreadyExistsError,
)
from kafka.net.compat import KafkaNetClient
from kafka.net.sasl.oauth import AbstractTokenProvider

from producer.errors import UnreachableError, UsageError
from producer.log.interruptible import interruptible
from schemas.kafka_fetching import bound
from schemas.kafka_log import FETCH_BYTES, client_settings, server_addresses
from schemas.kafka_token import ClientCredentials

logger = logging.getLogger(__name__)

SAY_AFTER_S = 5.0
SAY_AGAIN_S = 60.0


class SlowAnswers:
    """Waits for one server. Thread-safe: several may wait, and one message a minute is enough."""

    def __init__(self, server: str) -> None:
        """`server`: as it is called in messages."""
        self._server = server
        self._lock = threading.Lock()
        self._said_at = -SAY_AGAIN_S

    @contextmanager
    def waiting(self, after_s: float = SAY_AFTER_S) -> Iterator[None]:
        """Says so when the block takes longer than `after_s`."""
        timer = threading.Timer(after_s, self._say, (after_s,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _say(self, seconds: float) -> None:
        with self._lock:
            if time.monotonic() - self._said_at < SAY_AGAIN_S:
                return
            self._said_at = time.monotonic()
        logger.warning(
            "waiting for %s: it takes connections but has not answered for %.0f s",
            self._server,
            seconds,
        )


__all__ = [
    "CONNECT_TIMEOUT_S",
    "SIZE_ERRORS",
    "ConfigResource",
    "KafkaClients",
    "KafkaError",
    "KafkaPartition",
    "KafkaTimeoutError",
    "TopicAlreadyExistsError",
    "topic_ids",
]

CONNECT_TIMEOUT_S = 10.0
METADATA_AGE_MS = 10_000
"""How often a producer looks its topics up: they may have been deleted and made again."""

SIZE_ERRORS = (MessageSizeTooLargeError, RecordListTooLargeError)
"""A record is larger than the topic, or the producer's request, may be."""

# The caller reports an outage once; kafka-python would print a line for every attempt.
logging.getLogger("kafka").addHandler(logging.NullHandler())

# kafka-python wants its own class; ours imports no kafka.
AbstractTokenProvider.register(ClientCredentials)


Answer = TypeVar("Answer")


TIMEOUT_S = 3.0


def check_connects(addresses: Sequence[tuple[str, int]], timeout_s: float = TIMEOUT_S) -> None:
    """Return once one of these addresses takes a connection, which is closed again.

    Raises the last address's OSError when none does within `timeout_s` each. ValueError without any
    address.
    """
    failure: OSError | None = None
    for address in addresses:
        try:
            with socket.create_connection(address, timeout_s):
                return
        except OSError as error:
            failure = error
    if failure is None:
        message = "no address to connect to"
        raise ValueError(message)
    raise failure


@cache
def _waits_for(servers: str) -> SlowAnswers:
    """One for all clients of a process."""
    return SlowAnswers(f"Kafka at {servers}")


def _close(consumer: Any) -> None:
    consumer.close(autocommit=False, timeout_ms=0)


class KafkaClients:
    """Makes clients of kafka-python for one installation; keeps none. Thread-safe."""

    def __init__(
        self,
        servers: str,
        options: tuple[tuple[str, str], ...],
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        stop: threading.Event | None = None,
    ) -> None:
        """UsageError for an unknown setting or address.

        `stop`: once it is set, making a consumer, and what is asked with `ask`, ends in
        StopRequestedError.
        """
        self.servers = servers
        self.stop = stop
        self._waits = _waits_for(servers)
        try:
            self._addresses = server_addresses(servers)
            self._settings: dict[str, Any] = {
                "bootstrap_servers": servers.split(","),
                "bootstrap_timeout_ms": int(connect_timeout_s * 1000),
                "reconnect_backoff_max_ms": 1000,
                **client_settings(options),
            }
        except ValueError as error:
            raise UsageError(str(error)) from error

    @contextlib.contextmanager
    def admin(self) -> Iterator[Any]:
        """An administrator's client for one block. UnreachableError for what Kafka answers too."""
        admin = self._client(KafkaAdminClient)
        try:
            with self._waits.waiting():
                yield admin
        except KafkaError as error:
            raise self.unreachable(error, "did not answer") from error
        finally:
            admin.close()

    @contextlib.contextmanager
    def consumer(self, max_partition_fetch_bytes: int = 4 << 20) -> Iterator[Any]:
        """A consumer for one block; one kept open would keep reconnecting through an outage."""
        make = partial(
            self._client,
            KafkaConsumer,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            allow_auto_create_topics=False,
            metrics_enabled=False,
            fetch_max_bytes=FETCH_BYTES,
            max_partition_fetch_bytes=max_partition_fetch_bytes,
        )
        consumer = interruptible(make, self.stop, _close)
        bound(consumer)
        try:
            yield consumer
        except KafkaError as error:
            raise self.unreachable(error, "did not answer") from error
        finally:
            _close(consumer)

    def ask(self, question: Callable[[], Answer]) -> Answer:
        """The answer to a question that a consumer puts to Kafka. KafkaError, UnreachableError."""
        try:
            with self._waits.waiting():
                return interruptible(question, self.stop)
        except KeyError as error:
            # kafka-python's, about a partition that its metadata no longer has.
            raise self.unreachable(error, "no longer has the topic of a partition") from error

    def producer(self, **settings: object) -> Any:
        """An idempotent producer that the caller closes. UnreachableError."""
        return self._client(
            KafkaProducer,
            enable_idempotence=True,
            acks="all",
            allow_auto_create_topics=False,
            metadata_max_age_ms=METADATA_AGE_MS,
            metrics_enabled=False,
            **settings,
        )

    def _client(self, make: Callable[..., Any], **settings: object) -> Any:
        """A client of kafka-python. UnreachableError."""
        self._check_connects()
        started: list[KafkaNetClient] = []

        def remember(**configs: object) -> Any:
            started.append(KafkaNetClient(**configs))
            # kafka-python 3.0.12 drops the setting of that name on the way here: a producer would
            # make a deleted topic again, with the broker's number of partitions and retention.
            started[-1].cluster.config["allow_auto_create_topics"] = False
            return started[-1]

        try:
            tokens = self._settings.get("sasl_oauth_token_provider")
            if isinstance(tokens, ClientCredentials):
                tokens.token()  # kafka-python would try for ten seconds, and not say why
            with self._waits.waiting():
                return make(**self._settings, **settings, kafka_client=remember)
        except (KafkaError, OSError, ValueError) as error:
            # A client that could not connect leaves a thread and a socket behind, and its close()
            # does nothing.
            for client in started:
                client.close()
                client._net.stop()
            raise self.unreachable(error, "cannot be reached") from error

    def _check_connects(self) -> None:
        """Raise UnreachableError at once when no server takes a connection.

        kafka-python would try for ten seconds and leave sockets open.
        """
        try:
            check_connects(self._addresses)
        except OSError as error:
            raise self.unreachable(error, "cannot be reached") from error

    def unreachable(self, error: BaseException, what: str) -> UnreachableError:
        """The error to raise: what Kafka did, why, and what to look at."""
        if isinstance(error, AuthorizationError):
            return self.denied(type(error).__name__)
        message = (
            f"Kafka at {self.servers} {what}: {error}. Is it running, and is"
            " KAFKA_BOOTSTRAP_SERVERS right?"
        )
        return UnreachableError(message)

    def denied(self, what: str) -> UnreachableError:
        """The error of a user who lacks a permission."""
        message = (
            f"Kafka at {self.servers} denies this user what it needs ({what}); docs/production.md"
            " lists the permissions"
        )
        return UnreachableError(message)


def close_producer(producer: Any) -> None:
    """Close it at once; what is not acknowledged is dropped.

    kafka-python's `close` flushes first. When that takes longer than its limit it raises, with its
    threads still running, and once more from `__del__`.
    """
    producer._sender.force_close()
    with contextlib.suppress(KafkaError):
        producer.close(timeout=0)
    producer._closed = True


def topic_ids(producer: Any, topics: Collection[str]) -> dict[str, str]:
    """Topic -> Kafka's id of it, by the producer's newest metadata; one that it lacks is missing.

    Asks nothing: a producer looks every METADATA_AGE_MS, and after an error.
    """
    found = {topic: producer._metadata.topic_id(topic) for topic in topics}
    return {topic: str(one) for topic, one in found.items() if one is not None}
