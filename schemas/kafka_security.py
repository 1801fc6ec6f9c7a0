"""Security settings of a Kafka client that cannot work, found before anything connects.

kafka-python tries a wrong one for ten seconds and then reports that the server is unreachable.
"""

from collections.abc import Mapping
from pathlib import Path

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER")
WITH_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
FILES = ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_crlfile")


def check_security(settings: Mapping[str, object]) -> None:
    """ValueError, without a secret, for the first setting that is wrong or has no effect."""
    protocol = settings.get("security_protocol", "PLAINTEXT")
    mechanism = settings.get("sasl_mechanism")
    problem = None
    if protocol not in PROTOCOLS:
        problem = f"KAFKA_SECURITY_PROTOCOL is {protocol!r}; the protocols are {_listed(PROTOCOLS)}"
    elif mechanism is not None and mechanism not in MECHANISMS:
        problem = f"KAFKA_SASL_MECHANISM is {mechanism!r}; the mechanisms are {_listed(MECHANISMS)}"
    elif mechanism is not None and not str(protocol).startswith("SASL_"):
        problem = (
            f"KAFKA_SASL_MECHANISM has no effect while KAFKA_SECURITY_PROTOCOL is {protocol}; set"
            " that to SASL_SSL or SASL_PLAINTEXT"
        )
    elif mechanism is None and str(protocol).startswith("SASL_"):
        problem = f"KAFKA_SECURITY_PROTOCOL is {protocol}; set KAFKA_SASL_MECHANISM too"
    elif mechanism in WITH_PASSWORD and (missing := _missing(settings)):
        problem = f"KAFKA_SASL_MECHANISM is {mechanism}; set {_listed(missing)} too"
    elif absent := [name for name in FILES if name in settings and not _is_file(settings[name])]:
        name = absent[0]
        problem = f"KAFKA_{name.upper()}: there is no file {settings[name]}; correct the path"
    if problem is not None:
        raise ValueError(problem)


def _missing(settings: Mapping[str, object]) -> list[str]:
    names = ("sasl_plain_username", "sasl_plain_password")
    return [f"KAFKA_{name.upper()}" for name in names if not settings.get(name)]


def _is_file(path: object) -> bool:
    return Path(str(path)).is_file()


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(names)
