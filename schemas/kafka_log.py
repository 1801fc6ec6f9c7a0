"""What producer and consumers agree on about Kafka: topic settings, log ids, client settings.

Uses kafka-python's names for settings but does not import it.
"""

import hashlib
from collections.abc import Mapping
from uuid import UUID

from schemas.home import name_sizes
from schemas.kafka_security import check_security
from schemas.kafka_token import ClientCredentials

MAX_MESSAGE_BYTES = 16 << 20
"""Of one record batch, as the topics that we make take it; a large record is a batch of its own."""

MAX_BATCH_BYTES = 2 * MAX_MESSAGE_BYTES
"""Of a batch's records once decompressed: ours hold 256 KiB, or one record. Readers hold a batch of
more as unreadable, so nothing larger is sent."""

FETCH_BYTES = MAX_MESSAGE_BYTES
"""Of one answer of a broker to a reader, but for its first batch; several copies are in memory."""


def largest_value(max_message_bytes: int) -> int:
    """Bytes of the largest value that surely fits into a topic with this `max.message.bytes`.

    Kafka counts the batch: its header, the record's key and header, and the frame of a value that
    LZ4 cannot compress, which is less than half a percent.
    """
    return max_message_bytes - 1024 - max_message_bytes // 200


MAX_EVENT_BYTES = largest_value(MAX_MESSAGE_BYTES)
"""Of one serialised event, on every log: a local log may be shipped to Kafka later."""

MAX_BYTES_SETTING = "max.message.bytes"
TIMES_SETTING = "message.timestamp.type"
TOPIC_SETTINGS: dict[str, str] = {
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
    # The broker's clock, so that append times never decrease within a partition.
    TIMES_SETTING: "LogAppendTime",
    # Keep the compression of the producer.
    "compression.type": "producer",
    MAX_BYTES_SETTING: str(MAX_MESSAGE_BYTES),
}
"""Settings of topics created by us; existing topics are used as they are."""


def raise_limit(servers: str, topic: str, max_message_bytes: int) -> str:
    """What an operator does so that a topic takes records of this size."""
    return (
        f"raise it: kafka-configs.sh --bootstrap-server {servers} --alter --entity-type topics"
        f" --entity-name {topic} --add-config {MAX_BYTES_SETTING}={max_message_bytes}"
    )


RETENTION_SETTINGS = ("retention.ms", "retention.bytes")
NO_LIMIT = "-1"


def is_compacted(settings: Mapping[str, str]) -> bool:
    """Whether a topic of these settings keeps only the newest record of a key, here a stream.

    Also beside deletion by age (`compact,delete`).
    """
    return "compact" in settings.get("cleanup.policy", "")


def limits_of_age(settings: Mapping[str, str]) -> list[str]:
    """Settings of a topic, as `name=value`, that delete its oldest records."""
    if "delete" not in settings.get("cleanup.policy", "delete"):
        return []
    return [
        f"{name}={settings[name]}"
        for name in RETENTION_SETTINGS
        if settings.get(name, NO_LIMIT) != NO_LIMIT
    ]


def keep_for_ever(servers: str, topic: str) -> str:
    """What an operator does so that a topic keeps every record."""
    kept = ",".join(
        f"{name}={TOPIC_SETTINGS[name]}" for name in ("cleanup.policy", *RETENTION_SETTINGS)
    )
    return (
        f"kafka-configs.sh --bootstrap-server {servers} --alter --entity-type topics --entity-name"
        f" {topic} --add-config {kept}"
    )


SETTINGS: tuple[str, ...] = (
    "security_protocol",
    "sasl_mechanism",
    "sasl_plain_username",
    "sasl_plain_password",
    "sasl_kerberos_name",
    "sasl_kerberos_service_name",
    "sasl_kerberos_domain_name",
    "ssl_check_hostname",
    "ssl_cafile",
    "ssl_certfile",
    "ssl_keyfile",
    "ssl_crlfile",
    "ssl_password",
    "ssl_ciphers",
)
"""Security settings accepted as KAFKA_* variables, under kafka-python's names."""

OAUTHBEARER = "sasl_oauthbearer_"
"""Prefix of the settings of a token endpoint, under librdkafka's names."""
OAUTHBEARER_SETTINGS: tuple[str, ...] = tuple(
    OAUTHBEARER + name
    for name in ("token_endpoint_url", "client_id", "client_secret", "scope", "extensions")
)

GUARDED = ("sasl_", "ssl_", "security_")
"""Prefixes of client settings: an unknown one is an error. Other variables (KAFKA_HOME, KAFKA_OPTS)
are Kafka's own and ignored."""


def client_settings(
    options: tuple[tuple[str, str], ...],
) -> dict[str, str | bool | ClientCredentials]:
    """Settings for kafka-python's clients. ValueError for an unknown, wrong or missing variable."""
    settings: dict[str, str | bool | ClientCredentials] = {}
    oauthbearer: dict[str, str] = {}
    for name, value in options:
        if name in SETTINGS:
            settings[name] = value
        elif name in OAUTHBEARER_SETTINGS:
            oauthbearer[name.removeprefix(OAUTHBEARER)] = value
        elif name.startswith(GUARDED):
            known = ", ".join(
                f"KAFKA_{known.upper()}" for known in (*SETTINGS, *OAUTHBEARER_SETTINGS)
            )
            message = (
                f"KAFKA_{name.upper()} is not a supported Kafka setting; supported are {known}"
            )
            raise ValueError(message)
    for name in ("security_protocol", "sasl_mechanism"):
        if name in settings:
            settings[name] = str(settings[name]).upper()
    is_oauthbearer = settings.get("sasl_mechanism") == "OAUTHBEARER"
    if is_oauthbearer:
        settings["sasl_oauth_token_provider"] = _token_provider(oauthbearer)
    elif oauthbearer:
        message = (
            "KAFKA_SASL_OAUTHBEARER_* is set, but KAFKA_SASL_MECHANISM is not OAUTHBEARER; set it,"
            " or unset them"
        )
        raise ValueError(message)
    if "ssl_check_hostname" in settings:
        settings["ssl_check_hostname"] = str(settings["ssl_check_hostname"]).lower() not in {
            "0",
            "false",
            "no",
            "off",
        }
    check_security(settings)
    return settings


def _token_provider(settings: Mapping[str, str]) -> ClientCredentials:
    """ValueError when a variable is missing or garbled; its text has no secret."""
    needed = ("token_endpoint_url", "client_id", "client_secret")
    prefix = f"KAFKA_{OAUTHBEARER.upper()}"
    if missing := [prefix + name.upper() for name in needed if not settings.get(name)]:
        message = f"KAFKA_SASL_MECHANISM is OAUTHBEARER; set {', '.join(missing)} too"
        raise ValueError(message)
    extensions: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in settings.get("extensions", "").split(","))):
        name, equals, value = pair.partition("=")
        if not (name and equals):
            message = f"{prefix}EXTENSIONS is not name=value,name=value"
            raise ValueError(message)
        extensions[name] = value
    try:
        return ClientCredentials(
            settings["token_endpoint_url"],
            settings["client_id"],
            settings["client_secret"],
            scope=settings.get("scope"),
            extensions=extensions,
        )
    except ValueError as error:
        message = f"{prefix}TOKEN_ENDPOINT_URL: {error}"
        raise ValueError(message) from None


NO_TOPIC_IDS = frozenset({"None", str(UUID(int=0))})
"""What brokers older than 2.8 say a topic's id is."""


def real_topic_ids(topic_ids: Mapping[str, str]) -> dict[str, str]:
    """Topic -> id of every topic that has one; a topic that is made again has another."""
    return {topic: one for topic, one in topic_ids.items() if one not in NO_TOPIC_IDS}


def kafka_log_id(
    cluster_id: str, topic_ids: Mapping[str, str], partitions: Mapping[str, int]
) -> str:
    """Identity of a log: cluster, topic ids and, below 12, numbers of partitions.

    A topic deleted and recreated is another log, and so is a small one that has grown.
    """
    topics = "\n".join(f"{topic}={topic_ids[topic]}" for topic in sorted(topic_ids))
    digest = hashlib.sha256(topics.encode()).hexdigest()[:12]
    return f"kafka-{cluster_id}-{digest}{name_sizes(partitions)}"


def server_addresses(bootstrap_servers: str) -> list[tuple[str, int]]:
    """`a:9092,[::1]:9093,b` -> (host, port) of each; the default port is 9092.

    ValueError for an invalid port or an empty list.
    """
    addresses: list[tuple[str, int]] = []
    for server in filter(None, (part.strip() for part in bootstrap_servers.split(","))):
        host, colon, port = server.rpartition(":")
        if not colon or server.endswith("]"):
            host, port = server, "9092"
        if not port.isdecimal():
            message = f"KAFKA_BOOTSTRAP_SERVERS: {server!r} is not host:port"
            raise ValueError(message)
        addresses.append((host.strip("[]"), int(port)))
    if not addresses:
        message = f"KAFKA_BOOTSTRAP_SERVERS: {bootstrap_servers!r} contains no host:port"
        raise ValueError(message)
    return addresses
