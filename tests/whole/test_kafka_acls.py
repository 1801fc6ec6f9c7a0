"""The permissions that docs/production.md lists are enough, on a Kafka that denies all others."""

import os
import re
import shlex
from uuid import uuid4

import pytest
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
)

import producer.errors
from consumers.errors import UnreachableError
from consumers.log.kafka import KafkaLogReader
from consumers.log.open import open_reader
from producer.emit import Emitter
from schemas.environment import EnvironmentRequested
from schemas.installation import read_installation
from tests.support.kafka import KafkaService
from tests.support.paths import ROOT

pytestmark = [
    pytest.mark.services,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

USERS = ("broker", "trainer", "projector")
DENIED = "denies this user what it needs .*docs/production.md lists the permissions"
LOGIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    ' username="broker" password="broker" ' + " ".join(f'user_{name}="{name}"' for name in USERS)
)
AUTHORIZED = f"""
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.plaintext.plain.sasl.jaas.config={LOGIN};
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:broker;User:ANONYMOUS
"""


class AuthorizingKafka(KafkaService):
    """Each user has its name as password; what is not allowed is denied."""

    def start(self) -> None:
        text = self._properties.read_text().replace(
            "PLAINTEXT:PLAINTEXT,", "PLAINTEXT:SASL_PLAINTEXT,"
        )
        self._properties.write_text(text + AUTHORIZED)
        super().start()


def documented_acls() -> list[ACL]:
    """What the commands of the page give."""
    page = (ROOT / "docs" / "production.md").read_text()
    (block,) = re.findall(r"^```sh acls\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    found = []
    for line in block.splitlines():
        program, *words = shlex.split(line)
        assert (program, words.pop(2)) == ("kafka-acls.sh", "--add")
        given = list(zip(words[::2], words[1::2], strict=True))
        of = dict(given)
        topic = ResourcePattern(
            ResourceType.TOPIC,
            of["--topic"],
            ACLResourcePatternType[of["--resource-pattern-type"].upper()],
        )
        for flag, value in given:
            if flag == "--operation":
                name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", value).upper()
                who, allowed = of["--allow-principal"], ACLPermissionType.ALLOW
                found.append(ACL(who, "*", ACLOperation[name], allowed, topic))
    return found


def allow(service: KafkaService, acls: list[ACL]) -> None:
    admin = KafkaAdminClient(
        bootstrap_servers=service.bootstrap_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="broker",
        sasl_plain_password="broker",  # noqa: S106  # of this test's broker
    )
    try:
        assert admin.create_acls(acls)["failed"] == []
    finally:
        admin.close()


def test_a_trainer_and_a_projector_work_with_what_the_page_allows_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def become(user: str) -> None:
        monkeypatch.setenv("KAFKA_SASL_PLAIN_USERNAME", user)
        monkeypatch.setenv("KAFKA_SASL_PLAIN_PASSWORD", user)

    monkeypatch.setenv("KAFKA_SECURITY_PROTOCOL", "SASL_PLAINTEXT")
    monkeypatch.setenv("KAFKA_SASL_MECHANISM", "PLAIN")
    with AuthorizingKafka() as service:
        monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", service.bootstrap_servers)
        subject = f"environment/{uuid4()}"
        become("trainer")
        with (
            Emitter.open(read_installation(os.environ)) as emitter,
            pytest.raises(producer.errors.UnreachableError, match=DENIED),
        ):
            emitter.log.connect()
        become("projector")
        with pytest.raises(UnreachableError, match=DENIED):
            open_reader(read_installation(os.environ))
        allow(service, documented_acls())
        become("trainer")
        with Emitter.open(read_installation(os.environ)) as emitter:
            emitter.log.connect(30)
            requested = EnvironmentRequested(env_type="a", box_type="b", config={})
            emitter.stream(subject).emit(requested)
            emitter.flush(10)
            emitter.log.wait_shipped(30)
            assert emitter.log.read_back(subject, {}).position.sequence == 1
        become("projector")
        reader = open_reader(read_installation(os.environ))
        assert isinstance(reader, KafkaLogReader)
        reader.seek(dict.fromkeys(reader.partitions(), 0))
        assert [item.key for item in reader.poll(10, 10)] == [subject]
        assert len(reader.topic_settings()) == 2
        reader.close()
