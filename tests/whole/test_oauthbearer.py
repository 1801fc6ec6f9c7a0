"""Trainer and projector against a Kafka that takes OAUTHBEARER alone."""

import os
from pathlib import Path
from uuid import uuid4

import pytest

from consumers.log.open import open_reader
from producer.emit import Emitter
from schemas.environment import EnvironmentRequested
from schemas.installation import read_installation
from tests.support.forked_command import run_command
from tests.support.kafka import KafkaService
from tests.support.token_server import CLIENT_ID, CLIENT_SECRET, TokenServer

pytestmark = [
    pytest.mark.services,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
SASL = f"""
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=OAUTHBEARER
sasl.mechanism.inter.broker.protocol=OAUTHBEARER
listener.name.plaintext.oauthbearer.sasl.jaas.config={LOGIN} required unsecuredLoginStringClaim_sub="broker";
"""  # noqa: E501  # a line of Kafka's configuration


class OAuthKafka(KafkaService):
    """Clients authenticate with a token; any unsecured one is right."""

    def start(self) -> None:
        text = self._properties.read_text().replace(
            "PLAINTEXT:PLAINTEXT,", "PLAINTEXT:SASL_PLAINTEXT,"
        )
        self._properties.write_text(text + SASL)
        super().start()


def test_events_are_shipped_and_read_with_tokens_and_a_refused_token_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUA_HOME", str(tmp_path))
    with TokenServer() as tokens, OAuthKafka() as service:
        for name, value in {
            "KAFKA_BOOTSTRAP_SERVERS": service.bootstrap_servers,
            "KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
            "KAFKA_SASL_MECHANISM": "OAUTHBEARER",
            "KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL": tokens.url,
            "KAFKA_SASL_OAUTHBEARER_CLIENT_ID": CLIENT_ID,
            "KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET": CLIENT_SECRET,
        }.items():
            monkeypatch.setenv(name, value)
        installation = read_installation(os.environ)
        with Emitter.open(installation) as emitter:
            emitter.log.connect(30)
            stream = emitter.stream(f"environment/{uuid4()}")
            stream.emit(EnvironmentRequested(env_type="a", box_type="b", config={}))
            emitter.flush(30)
            emitter.close(30)
        reader = open_reader(installation)
        try:
            assert sum(reader.end_offsets(reader.partitions()).values()) == 1
        finally:
            reader.close()
        assert tokens.forms
        done = run_command(
            "consumers",
            "tail",
            environ={**os.environ, "KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET": "wr0ng"},
        )
        assert done.returncode == 5
        assert "401 Unauthorized; check KAFKA_SASL_OAUTHBEARER" in done.stderr
        assert "wr0ng" not in done.stderr
