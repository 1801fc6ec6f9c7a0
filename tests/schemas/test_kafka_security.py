"""KAFKA_* variables that cannot work are named before anything connects."""

import pytest

from schemas.installation import read_installation
from schemas.kafka_log import client_settings

PLAIN = {
    "SECURITY_PROTOCOL": "SASL_SSL",
    "SASL_MECHANISM": "PLAIN",
    "SASL_PLAIN_USERNAME": "me",
    "SASL_PLAIN_PASSWORD": "s3cret",
}


def settings(variables: dict[str, str]) -> dict[str, object]:
    environ = {f"KAFKA_{name}": value for name, value in variables.items()}
    return dict(client_settings(read_installation({"HOME": "/h", **environ}).kafka_options))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"SECURITY_PROTOCOL": "TLS"}, "KAFKA_SECURITY_PROTOCOL is 'TLS'; the protocols are PLAI"),
        ({"SASL_MECHANISM": "SCRAM"}, "KAFKA_SASL_MECHANISM is 'SCRAM'; the mechanisms are PLAIN"),
        ({"SECURITY_PROTOCOL": "SSL"}, "KAFKA_SASL_MECHANISM has no effect while KAFKA_SECURITY_"),
        ({"SECURITY_PROTOCOL": ""}, "KAFKA_SASL_MECHANISM has no effect while"),
        ({"SASL_MECHANISM": ""}, "KAFKA_SECURITY_PROTOCOL is SASL_SSL; set KAFKA_SASL_MECHANISM"),
        ({"SASL_PLAIN_PASSWORD": ""}, "is PLAIN; set KAFKA_SASL_PLAIN_PASSWORD too"),
        ({"SSL_CAFILE": "/nowhere/ca.pem"}, "KAFKA_SSL_CAFILE: there is no file /nowhere/ca.pem"),
    ],
)
def test_what_cannot_work_is_named_without_the_secret(changes: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match="KAFKA_") as raised:
        settings({**PLAIN, **changes})
    assert said in str(raised.value)
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("mechanism", ["PLAIN", "scram-sha-256", "SCRAM-SHA-512", "GSSAPI"])
def test_what_can_work_is_passed_on(mechanism: str) -> None:
    found = settings({**PLAIN, "SASL_MECHANISM": mechanism, "SECURITY_PROTOCOL": "sasl_plaintext"})
    assert found == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism.upper(),
        "sasl_plain_username": "me",
        "sasl_plain_password": "s3cret",
    }


def test_tls_with_files_that_exist_is_passed_on() -> None:
    found = settings({"SECURITY_PROTOCOL": "SSL", "SSL_CAFILE": __file__})
    assert found == {"security_protocol": "SSL", "ssl_cafile": __file__}
