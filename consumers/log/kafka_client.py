"""Connections to Apache Kafka. The only module of the consumers that imports kafka.

Owns settings, authentication and what a failed connection leaves behind; reads no log.
"""

import contextlib
import logging
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer
from kafka import TopicPartition as KafkaPartition
from kafka.admin import ConfigResource
from kafka.errors import (
    AuthorizationError,
    KafkaError,
    LogTruncationError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
)
from kafka.net.compat import KafkaNetClient
from kafka.net.sasl.oauth import AbstractTokenProvider

from consumers.errors import UnreachableError, UsageError
from schemas.kafka_fetching import bound
from schemas.kafka_log import FETCH_BYTES, client_settings, server_addresses
from schemas.kafka_token import ClientCredentials

__all__ = [
    "ANSWER_TIMEOUT_MS",
    "GONE_ERRORS",
    "TOPIC_DENIED",
    "ConfigResource",
    "KafkaClients",
    "KafkaError",
    "KafkaPartition",
    "topic_ids",
]

ANSWER_TIMEOUT_MS = 10_000
METADATA_AGE_MS = 2_000
"""How often a consumer that polls looks the topics' partitions up: they may grow."""
CONNECT_TIMEOUT_S = 3.0
FRESH_MS = 3_000
"""Younger metadata is what the brokers say now, although others may have changed it since."""

GONE_ERRORS = (OffsetOutOfRangeError, NoOffsetForPartitionError, LogTruncationError)
"""The next record is no longer there."""
TOPIC_DENIED = int(TopicAuthorizationFailedError.errno)
"""Error code of a topic that this user may not describe."""

# We report an outage once; kafka-python would log a line per attempt.
logging.getLogger("kafka").addHandler(logging.NullHandler())

# kafka-python wants its own class; ours imports no kafka.
AbstractTokenProvider.register(ClientCredentials)


class KafkaClients:
    """Makes clients of kafka-python for one installation; keeps none."""

    def __init__(self, servers: str, options: tuple[tuple[str, str], ...]) -> None:
        """UsageError for an unknown setting or address."""
        self.servers = servers
        try:
            self._addresses = server_addresses(servers)
            self._settings: dict[str, Any] = {
                "bootstrap_servers": servers.split(","),
                "bootstrap_timeout_ms": ANSWER_TIMEOUT_MS,
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
            yield admin
        except KafkaError as error:
            raise self.unreachable(error, "did not answer") from error
        finally:
            admin.close()

    def consumer(self) -> Any:
        """A consumer without a group, which the caller closes. UnreachableError."""
        consumer = self._client(
            KafkaConsumer,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            allow_auto_create_topics=False,
            metrics_enabled=False,
            fetch_max_bytes=FETCH_BYTES,
            max_partition_fetch_bytes=4 << 20,
            metadata_max_age_ms=METADATA_AGE_MS,
        )
        bound(consumer)
        return consumer

    def _client(self, make: Callable[..., Any], **settings: object) -> Any:
        """A kafka-python client.

        If it cannot connect, stops the thread and the socket that it would leave behind.
        """
        self._check_reachable()
        started: list[KafkaNetClient] = []

        def remember(**configs: object) -> Any:
            started.append(KafkaNetClient(**configs))
            # kafka-python 3.0.12 drops the setting of that name on the way here: a reader would
            # make a deleted topic again, with the broker's number of partitions and retention.
            started[-1].cluster.config["allow_auto_create_topics"] = False
            return started[-1]

        try:
            tokens = self._settings.get("sasl_oauth_token_provider")
            if isinstance(tokens, ClientCredentials):
                tokens.token()  # kafka-python would try for ten seconds, and not say why
            return make(**self._settings, **settings, kafka_client=remember)
        except (KafkaError, OSError, ValueError) as error:
            for client in started:
                client.close()
                client._net.stop()  # close() of the half-made client does nothing
            raise self.unreachable(error, "cannot be reached") from error

    def _check_reachable(self) -> None:
        """UnreachableError at once when no server accepts a connection.

        Kafka-python would try for ten seconds and leave sockets open.
        """
        failure: OSError | None = None
        for address in self._addresses:
            try:
                with socket.create_connection(address, CONNECT_TIMEOUT_S):
                    return
            except OSError as error:
                failure = error
        assert failure is not None  # noqa: S101  # there is at least one address
        raise self.unreachable(failure, "cannot be reached") from failure

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
        return UnreachableError(message, is_refusal=True)


def topic_ids(consumer: Any, topics: Sequence[str]) -> dict[str, str] | None:
    """Topic -> Kafka's id of it, by the newest metadata; None when that is not fresh.

    A topic that does not exist is missing. Asks nothing: a consumer looks every METADATA_AGE_MS.
    """
    cluster = consumer._cluster
    if time.monotonic() * 1000 - cluster._last_successful_refresh_ms > FRESH_MS:
        return None
    found = {topic: cluster.topic_id(topic) for topic in topics}
    return {topic: str(one) for topic, one in found.items() if one is not None}
