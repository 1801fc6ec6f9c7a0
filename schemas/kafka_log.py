"""What both sides must agree on about Kafka.

How topics are made, what identifies a log, which settings come from the environment.

Pure; knows the names of kafka-python's settings but does not import it.
"""

import hashlib
from collections.abc import Mapping

TOPIC_SETTINGS: dict[str, str] = {
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
    # The broker's clock: append time must not fall within a partition, whatever the writers' clocks
    # do.
    "message.timestamp.type": "LogAppendTime",
    # As the producer compressed it.
    "compression.type": "producer",
    "max.message.bytes": str(16 << 20),
}
"""Of topics that we create; existing ones are used as they are."""

MAX_MESSAGE_BYTES = 16 << 20

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
"""Security settings that KAFKA_* variables may give, by kafka-python's names."""

GUARDED = ("sasl_", "ssl_", "security_")
"""A variable that begins like this is meant for us, so an unknown one is an error; others
(KAFKA_HOME, KAFKA_OPTS) are Kafka's own."""


def client_settings(options: tuple[tuple[str, str], ...]) -> dict[str, str | bool]:
    """Settings for any of kafka-python's clients; ValueError names a variable that is not known."""
    settings: dict[str, str | bool] = {}
    for name, value in options:
        if name in SETTINGS:
            settings[name] = value
        elif name.startswith(GUARDED):
            known = ", ".join(f"KAFKA_{known.upper()}" for known in SETTINGS)
            message = (
                f"KAFKA_{name.upper()} is no setting that is passed to Kafka; known are {known}"
            )
            raise ValueError(message)
    if "ssl_check_hostname" in settings:
        settings["ssl_check_hostname"] = str(settings["ssl_check_hostname"]).lower() not in {
            "0",
            "false",
            "no",
            "off",
        }
    return settings


def kafka_log_id(cluster_id: str, topic_ids: Mapping[str, str]) -> str:
    """A log's identity: its cluster and its topics (a topic that was deleted and made again is another log)."""
    topics = "\n".join(f"{topic}={topic_ids[topic]}" for topic in sorted(topic_ids))
    return f"kafka-{cluster_id}-{hashlib.sha256(topics.encode()).hexdigest()[:12]}"


def server_addresses(bootstrap_servers: str) -> list[tuple[str, int]]:
    """`a:9092,[::1]:9093,b` -> (host, port) of each; 9092 where no port is given.

    ValueError for a port that is none.
    """
    addresses: list[tuple[str, int]] = []
    for server in filter(None, (part.strip() for part in bootstrap_servers.split(","))):
        host, colon, port = server.rpartition(":")
        if not colon or server.endswith("]"):
            host, port = server, "9092"
        if not port.isdecimal():
            message = f"expected host:port in KAFKA_BOOTSTRAP_SERVERS, found {server!r}"
            raise ValueError(message)
        addresses.append((host.strip("[]"), int(port)))
    if not addresses:
        message = f"expected host:port in KAFKA_BOOTSTRAP_SERVERS, found {bootstrap_servers!r}"
        raise ValueError(message)
    return addresses
