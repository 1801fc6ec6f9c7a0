"""What compose.yaml and the systemd units start: every line of theirs, run here without Docker.

The words, variables and checks are read from the files; only addresses, ports and folders of the
real machine become those of this test.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.request import urlopen

import jsonschema
import psycopg2
import pytest
import yaml

from consumers.database.location import libpq_url
from producer.log.kafka import KafkaLog
from producer.log.writer import Record
from schemas.catalogue import TOPIC_NAMES, topic_of
from schemas.ids import training_id
from schemas.installation import read_installation
from tests.reference_fold.histories import history
from tests.support.kafka import KAFKA_VERSION, KafkaService
from tests.support.logs import write_local_log
from tests.support.paths import ROOT
from tests.support.ports import free_port
from tests.support.postgres import PostgresServer, execute, one
from tests.support.running_command import Command

COMPOSE, PROJECTOR = ROOT / "compose.yaml", ROOT / "docs" / "compose.projector.yaml"
UNITS = ROOT / "docs" / "systemd"
PROGRAM = "/opt/cua-train/.venv/bin/cua-project"
HOME = "/var/lib/cua-train"
Settings = dict[str, str]


def read(path: Path, replaced: Mapping[str, str] = MappingProxyType({})) -> Any:
    text = path.read_text()
    for old, new in replaced.items():
        assert old in text, f"{path.name} no longer has {old}"
        text = text.replace(old, new)
    return yaml.safe_load(text)


@pytest.mark.parametrize("path", [COMPOSE, PROJECTOR], ids=lambda path: path.name)
def test_a_compose_file_is_one_by_the_specification(path: Path) -> None:
    schema = json.loads((ROOT / "tests/data/compose_spec/compose-spec.json").read_text())
    jsonschema.Draft7Validator(schema).validate(read(path))


def test_the_specification_would_find_a_misspelt_key() -> None:
    schema = json.loads((ROOT / "tests/data/compose_spec/compose-spec.json").read_text())
    content = read(COMPOSE)
    content["services"]["kafka"]["enviroment"] = {}
    with pytest.raises(jsonschema.ValidationError, match="enviroment"):
        jsonschema.Draft7Validator(schema).validate(content)


def test_services_name_what_the_files_together_define() -> None:
    services: dict[str, Any] = {}
    volumes: set[str] = set()
    for content in (read(COMPOSE), read(PROJECTOR)):
        services |= content["services"]
        volumes |= set(content["volumes"])
    for service in services.values():
        assert set(service.get("depends_on", [])) <= services.keys()
        assert {item.partition(":")[0] for item in service.get("volumes", [])} <= volumes
    # With `network_mode: host` the projector meets what the others publish.
    published = {item for name in ("kafka", "postgres") for item in services[name]["ports"]}
    assert published == {"127.0.0.1:9092:9092", "127.0.0.1:5432:5432"}


@pytest.fixture(scope="module")
def compose_kafka() -> Iterator[KafkaService]:
    """The broker with compose.yaml's variables, which its image turns into properties."""
    service = read(COMPOSE)["services"]["kafka"]
    assert service["image"] == f"apache/kafka:{KAFKA_VERSION}"
    properties = "\n".join(
        f"{name.removeprefix('KAFKA_').lower().replace('_', '.')}={value}"
        for name, value in service["environment"].items()
    )
    for old, new in {
        "PLAINTEXT://:9092": "PLAINTEXT://127.0.0.1:{port}",
        "CONTROLLER://:9093": "CONTROLLER://127.0.0.1:{controller_port}",
        "PLAINTEXT://localhost:9092": "PLAINTEXT://localhost:{port}",
        "1@localhost:9093": "1@localhost:{controller_port}",
        "/var/lib/kafka/data": "{data}",
    }.items():
        assert old in properties
        properties = properties.replace(old, new)
    with KafkaService(properties) as running:
        yield running


@pytest.fixture
def compose_postgres(postgres: PostgresServer) -> Iterator[str]:
    """host:port of a server with the role and database that compose.yaml's image makes."""
    variables = read(COMPOSE)["services"]["postgres"]["environment"]
    role, name = variables["POSTGRES_USER"], variables["POSTGRES_DB"]
    password = variables["POSTGRES_PASSWORD"]
    # The image makes its only role a superuser.
    execute(postgres.url(), f"CREATE ROLE {role} SUPERUSER LOGIN PASSWORD '{password}'")
    administrator = psycopg2.connect(libpq_url(postgres.url()))
    administrator.autocommit = True
    cursor = administrator.cursor()
    cursor.execute(f"CREATE DATABASE {name} OWNER {role}")
    yield f"127.0.0.1:{postgres.port}"
    cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")
    cursor.execute(f"DROP ROLE {role}")
    administrator.close()


def write(environ: Settings) -> None:
    """A training's events, in Kafka."""
    installation = read_installation(environ)
    prefix = installation.topic_prefix
    log = KafkaLog(installation, [prefix + topic for topic in TOPIC_NAMES])
    log.append(
        [
            Record(topic_of(event.subject, prefix), event.subject, event.value)
            for event in history("served", 1)
        ]
    )
    log.close()


def await_true(is_so: Callable[[], object], command: "Command") -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, command.said
        assert command.process.poll() is None, command.said
        time.sleep(0.2)


@contextmanager
def service(words: Sequence[str], environ: Settings, stops_within_s: float) -> Iterator[Command]:
    """A process that is stopped as its manager would: SIGTERM, and exit 0 in time."""
    command = Command(words, {"PATH": os.environ["PATH"], **environ})
    try:
        yield command
        command.process.terminate()
        assert command.wait(stops_within_s) == 0
        for line in command.said.splitlines():
            json.loads(line)
    finally:
        command.process.kill()
        command.wait(10)


@pytest.mark.services
def test_the_projectors_container_projects_and_is_healthy(
    compose_kafka: KafkaService, compose_postgres: str, tmp_path: Path
) -> None:
    port = str(free_port())
    replaced = {
        "localhost:9092": compose_kafka.bootstrap_servers,
        "localhost:5432": compose_postgres,
        "9321": port,
        HOME: str(tmp_path / "home"),
    }
    projector = read(PROJECTOR, replaced)["services"]["projector"]
    program, *words = projector["command"]
    assert program == "cua-project"
    environ: Settings = projector["environment"]
    write(environ)
    with service(words, environ, int(projector["stop_grace_period"].removesuffix("s"))) as command:
        url = environ["DATABASE_URL"]
        count = "SELECT count(*) FROM cua.training WHERE run_name = 'served'"
        await_true(lambda: "caught up" in command.said, command)
        assert one(url, count) == 1
        kind, python, *arguments = projector["healthcheck"]["test"]
        assert (kind, python) == ("CMD", "python")
        checked = subprocess.run(
            [sys.executable, *arguments],
            timeout=int(projector["healthcheck"]["timeout"].removesuffix("s")),
            check=False,
        )
        assert checked.returncode == 0
    assert subprocess.run([sys.executable, *arguments], capture_output=True, check=False).returncode


@pytest.mark.services
def test_compose_yamls_postgres_is_what_the_defaults_name(
    compose_postgres: str, tmp_path: Path
) -> None:
    host, _, port = compose_postgres.partition(":")
    environ = {"POSTGRES_HOST": host, "POSTGRES_PORT": port, "CUA_HOME": str(tmp_path)}
    command = Command(["migrate"], {"PATH": os.environ["PATH"], **environ})
    assert command.wait(60) == 0, command.said


def unit(name: str, replaced: Mapping[str, str]) -> dict[str, list[str]]:
    """The section [Service] of a unit: name -> values."""
    text = (UNITS / name).read_text()
    for old, new in replaced.items():
        assert old in text, f"{name} no longer has {old}"
        text = text.replace(old, new)
    section = text.partition("[Service]\n")[2].partition("\n[")[0]
    found: dict[str, list[str]] = {}
    for line in section.splitlines():
        if line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def words_of(line: str) -> list[str]:
    program, *words = shlex.split(line.removeprefix("-"))
    assert program == PROGRAM
    return words


@pytest.mark.services
def test_the_projectors_unit_projects_with_the_variables_that_it_names(
    compose_kafka: KafkaService, migrated_url: str, tmp_path: Path
) -> None:
    port = str(free_port())
    settings = unit("cua-projector.service", {"9321": port})
    named = re.search(
        r"^# (CUA_HOME, .*?);", (UNITS / "cua-projector.service").read_text(), re.MULTILINE
    )
    assert named is not None
    values = {
        "CUA_HOME": str(tmp_path / "home"),
        "KAFKA_BOOTSTRAP_SERVERS": compose_kafka.bootstrap_servers,
        "DATABASE_URL": migrated_url,
        "CUA_BLOBS": (tmp_path / "blobs").as_uri(),
    }
    assert named[1].split(", ") == [*values]
    (start,), (limit_s,) = settings["ExecStart"], settings["TimeoutStopSec"]
    write(values)
    with service(words_of(start), values, int(limit_s)) as command:
        await_true(lambda: one(migrated_url, "SELECT count(*) FROM cua.training"), command)
        with urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10) as answer:
            assert answer.status == 200
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            assert b"cua_projector_healthy 1.0" in answer.read()


@pytest.mark.services
def test_the_unit_of_one_machine_shows_a_training_and_stops_its_database(tmp_path: Path) -> None:
    port = str(free_port())
    settings = unit("cua-up.service", {"8321": port, HOME: str(tmp_path / "home")})
    environ = dict(setting.split("=", 1) for setting in settings["Environment"])
    assert settings["StateDirectory"] == [HOME.removeprefix("/var/lib/")]
    installation = read_installation(environ)
    write_local_log(installation.local_log_path, history("served", 1))
    (start,), (limit_s,), (after,) = (
        settings[name] for name in ("ExecStart", "TimeoutStopSec", "ExecStopPost")
    )
    assert settings["KillMode"] == ["process"]

    def shown() -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
                return f"/training/{training_id('served')}".encode() in answer.read()
        except OSError:
            return False

    with service(words_of(start), environ, int(limit_s)) as command:
        await_true(shown, command)
    stop = Command(words_of(after), {"PATH": os.environ["PATH"], **environ})
    assert stop.wait(30) == 0, stop.said
    assert not list(installation.database_dir.rglob("postmaster.pid"))
