"""A trainer finds its own records in Kafka by asking the tables; checked on real servers."""

import logging
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from uuid import uuid4

import pytest

from consumers.log.kafka import KafkaLogReader
from consumers.projection.loop import ProjectionLoop
from producer.log import kafka_history
from producer.log.kafka import KafkaLog
from producer.log.kafka_history import KafkaHistory, ask_tables
from producer.log.project_command import NoAnswerError
from producer.log.writer import Record
from schemas import ids
from schemas.catalogue import stream, topic_of
from schemas.installation import Installation
from tests.reference_fold.histories import LoggedEvent, Shape
from tests.support.kafka import KafkaService
from tests.support.logs import logged_events
from tests.support.postgres import execute

pytestmark = pytest.mark.services
CALM = Shape(steps=1, groups=1, group_size=2, turns=2, has_trouble=False)
PADDING = kafka_history.ASK_ABOVE + 5_000
A = ids.training_id("a")
OWN = stream("training", A)


@pytest.fixture(scope="module")
def installation(kafka: KafkaService, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    home = tmp_path_factory.mktemp("home")
    prefix = f"places{uuid4().hex[:8]}."
    return Installation(home, prefix, kafka.bootstrap_servers, (), str(home / "blobs"))


@pytest.fixture(scope="module")
def log(installation: Installation) -> Iterator[KafkaLog]:
    """One training beside another that is told again and again, in the same partition."""
    prefix = installation.topic_prefix
    topics = [f"{prefix}training", f"{prefix}rollouts"]
    with closing(KafkaLog(installation, topics)) as opened:
        place = opened.place_of(topics[0], OWN)
        busy = next(
            name
            for name in (f"busy-{number}" for number in count())
            if opened.place_of(topics[0], stream("training", ids.training_id(name))) == place
        )
        append(opened, prefix, logged_events("a", shape=CALM))
        events = logged_events(busy, shape=CALM)
        append(opened, prefix, events)
        first = next(event for event in events if event.subject.startswith("training/"))
        append(opened, prefix, [first] * PADDING)
        append(opened, prefix, logged_events("b", shape=CALM))
        yield opened


def append(log: KafkaLog, prefix: str, events: list[LoggedEvent]) -> None:
    log.append(
        [Record(topic_of(event.subject, prefix), event.subject, event.value) for event in events]
    )


@pytest.fixture
def tables(
    installation: Installation,
    log: KafkaLog,
    migrated_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """The tables of this log, as the environment names them for `cua-project`."""
    assert log.log_id
    with closing(KafkaLogReader(installation)) as reader:
        ProjectionLoop(reader, migrated_url).run_once()
    monkeypatch.setenv("DATABASE_URL", migrated_url)
    monkeypatch.setenv("CUA_HOME", str(installation.home))
    return migrated_url


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Our own lines; kafka-python has many."""
    return [record.message for record in caplog.records if record.name.startswith("producer.")]


def own_values(log: KafkaLog, prefix: str, subject: str) -> list[tuple[str, bytes]]:
    topic = f"{prefix}training"
    return [item for item in log.read_topic(topic, {}) if item[0] == subject]


def test_what_is_found_by_the_tables_is_what_the_whole_log_has(
    installation: Installation,
    log: KafkaLog,
    tables: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert tables
    prefix, topic = installation.topic_prefix, f"{installation.topic_prefix}training"
    with caplog.at_level(logging.INFO):
        history = KafkaHistory(tmp_path / "known")
        found = history.read_own(log, topic, OWN, {})
        whole = list(log.read_topic(topic, {}))
        narrow = list(history.read_training(log, topic, A, {}))
        new = KafkaHistory(tmp_path / "known")
        nobody = f"training/{ids.training_id('nobody')}"
        assert new.read_own(log, topic, nobody, {}) == []
    assert said(caplog) == []
    assert found == own_values(log, prefix, OWN) != []
    needle = str(A).encode()
    assert [item for item in narrow if needle in item[1]] == [
        item for item in whole if needle in item[1]
    ]
    assert len(narrow) < 5_000 < PADDING < len(whole)


def test_tables_that_lag_are_read_on_behind(
    installation: Installation, log: KafkaLog, tables: str, tmp_path: Path
) -> None:
    assert tables
    name = f"late-{uuid4()}"
    append(log, installation.topic_prefix, logged_events(name, shape=CALM))
    own, topic = stream("training", ids.training_id(name)), f"{installation.topic_prefix}training"
    found = KafkaHistory(tmp_path / "known").read_own(log, topic, own, {})
    assert found == own_values(log, installation.topic_prefix, own) != []


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("UPDATE cua.projection SET log_id = 'another'", "the log another"),
        ("DELETE FROM cua.training_block WHERE block = 3", "is not whole"),
        ("DROP TABLE cua.training_block", "training_block"),
        ("ALTER TABLE cua.reader_position DROP indexed_from", "indexed_from"),
        ("UPDATE cua.reader_position SET next_offset = 1000000", "is not whole"),
        ("DELETE FROM cua.reader_position", ""),
        (
            "DELETE FROM cua.stream_position WHERE stream LIKE 'training/%'; UPDATE"
            " cua.reader_position SET indexed_from = next_offset; TRUNCATE cua.training_block",
            "",
        ),
    ],
)
def test_wrong_tables_cost_time_and_never_a_record(
    damage: str,
    reason: str,
    installation: Installation,
    log: KafkaLog,
    tables: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    execute(tables, damage)
    topic = f"{installation.topic_prefix}training"
    with caplog.at_level(logging.INFO):
        found = KafkaHistory(tmp_path / "known").read_own(log, topic, OWN, {})
    assert found == own_values(log, installation.topic_prefix, OWN)
    assert len(said(caplog)) == bool(reason)
    assert all(reason in line for line in said(caplog))


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgresql://nobody@127.0.0.1:1/none", "cannot connect to PostgreSQL"),
        ("mysql://x", "only PostgreSQL"),
    ],
)
def test_a_database_that_is_away_or_none_is_a_reason(
    url: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    with pytest.raises(NoAnswerError, match=reason):
        ask_tables(A, "log")


def test_without_a_database_none_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "POSTGRES_HOST", "POSTGRES_PORT", "POSTGRES_DB"):
        monkeypatch.delenv(name, raising=False)
    # Of another home, which is not asked.
    monkeypatch.setenv("CUA_HOME", str(tmp_path / "other"))
    (tmp_path / "other" / "database").mkdir(parents=True)
    began = time.monotonic()
    with pytest.raises(NoAnswerError, match="no database yet"):
        ask_tables(A, "log", home=tmp_path / "home")
    assert not (tmp_path / "home" / "database").exists()
    assert time.monotonic() - began < 15
