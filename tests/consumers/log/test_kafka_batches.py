"""Batches that no client of ours would write are read, or unreadable, within a bound of memory."""

from pathlib import Path
from uuid import uuid4

import lz4.frame
import pytest
from kafka.errors import KafkaError

from consumers.log.open import open_reader
from consumers.log.reader import LogReader, LogRecord, TopicPartition
from producer.log.kafka import KafkaLog
from schemas.home import home_partition
from schemas.installation import Installation
from schemas.kafka_fetching import POLL_BYTES
from tests.support.kafka import KafkaService
from tests.support.kafka_batches import COMPRESS, batch, bomb, produce, record, text, varint
from tests.support.reading import installation_on

pytestmark = pytest.mark.services

GOOD = "rollout/00000000-0000-0000-0000-00000000000a"
HOME = home_partition(GOOD, 12)
GZIP, GZIPPED = COMPRESS["gzip"]
LZ4, _ = COMPRESS["lz4"]


@pytest.fixture
def installation(kafka: KafkaService, tmp_path: Path) -> Installation:
    return installation_on(kafka.bootstrap_servers, tmp_path, f"t{uuid4().hex}.")


@pytest.fixture
def topic(installation: Installation) -> str:
    name = f"{installation.topic_prefix}rollouts"
    KafkaLog(installation, [f"{installation.topic_prefix}training", name]).close()
    return name


def poll_until(reader: LogReader, end: TopicPartition, offset: int) -> list[list[LogRecord]]:
    """The answers until a partition is read to its end."""
    polls = []
    for _ in range(200):
        polls.append(reader.poll(5_000, 0.5))
        assert reader.problem is None
        if reader.positions()[end] == offset:
            return [poll for poll in polls if poll]
    raise AssertionError(reader.positions())


FRAME = lz4.frame.compress(record(b"x" * 99), block_linked=False, content_checksum=True)
STOPPED = {
    "bomb": bomb("zstd", 200 << 20),
    "offset": batch(record(b"x", delta=10**6)),
    "offsets": batch(record(b"x") * 3, 3),
    "header": batch(record(b"x", headers=varint(1) + text(b"\xff") + text(b""))),
    "attributes": batch(record(b"x").replace(b"\x00\x00\x00", b"\x80\x00\x00", 1)),
    "gzip": batch(GZIPPED(record(b"x")) + b"garbage", codec=GZIP),
    "lz4": batch(FRAME[:-1] + bytes([FRAME[-1] ^ 1]), codec=LZ4),
}


@pytest.mark.parametrize("what", STOPPED)
def test_whatever_a_broker_takes_is_passed_by_readers_and_trainers(
    kafka: KafkaService, installation: Installation, topic: str, what: str
) -> None:
    """Each of them ended a process, stopped it for ever, or moved it past records of others."""
    at = TopicPartition(topic, HOME)
    good = batch(record(b"good", GOOD.encode()))
    *_, last = produce(kafka.bootstrap_servers, topic, HOME, [STOPPED[what], good])
    reader = open_reader(installation)
    reader.seek({at: 0})
    records = [item for poll in poll_until(reader, at, last + 1) for item in poll]
    reader.close()
    log = KafkaLog(installation, [topic])
    read = list(log.read_topic(topic, {}))
    log.close()

    assert (records[-1].key, records[-1].value, records[-1].offset) == (GOOD, b"good", last)
    assert [item.offset for item in records[:-1]] in ([0], [0, 2])
    assert all(len(item.value) < 1_000 for item in records)
    assert read[-1] == (GOOD, b"good")
    assert len(read) == len(records)


def test_one_poll_returns_no_more_bytes_than_a_batch_may_have(
    kafka: KafkaService, installation: Installation, topic: str
) -> None:
    """Fourteen batches of 8 MiB are 110 KB in Kafka, and a poll of 5,000 records had them all."""
    at = TopicPartition(topic, HOME)
    size = 8 << 20
    data = batch(GZIPPED(record(bytes(size), GOOD.encode())), codec=GZIP)
    produce(kafka.bootstrap_servers, topic, HOME, [data] * 14)
    reader = open_reader(installation)
    reader.seek({at: 0})
    polls = poll_until(reader, at, 14)
    reader.close()
    assert 4 * size == POLL_BYTES
    assert [len(poll) for poll in polls] == [4, 4, 4, 2]
    assert [item.offset for poll in polls for item in poll] == list(range(14))


def test_a_reader_may_begin_within_a_batch(
    kafka: KafkaService, installation: Installation, topic: str
) -> None:
    at = TopicPartition(topic, HOME)
    records = b"".join(record(bytes([number]), delta=number) for number in range(4))
    good = batch(GZIPPED(records), 4, codec=GZIP)
    produce(kafka.bootstrap_servers, topic, HOME, [good, batch(record(b"x") * 3, 3)])
    reader = open_reader(installation)
    found = []
    for start in range(7):
        reader.seek({at: start})
        polled = [item for poll in poll_until(reader, at, 7) for item in poll]
        found.append([item.offset for item in polled])
    reader.close()
    whole = [0, 1, 2, 3, 4, 6]
    assert found == [[offset for offset in whole if offset >= start] for start in range(7)]


@pytest.mark.parametrize(
    "data",
    [
        batch(record(b"x"), 2**31 - 1),
        batch(record(b"x"), -1),
        batch(record(b"x", longer=3)),
        batch(record(b"x"), crc_error=1),
        batch(GZIPPED(record(b"x", delta=9)), codec=GZIP),
        batch(b"no gzip", codec=GZIP),
        batch(record(b"x"), codec=5),
        batch(record(b"\x00" * 6, b"\x00\x00\x00\x01"), attributes=0x30),
    ],
)
def test_other_lies_are_refused_by_the_broker(kafka: KafkaService, topic: str, data: bytes) -> None:
    with pytest.raises(KafkaError):
        produce(kafka.bootstrap_servers, topic, 0, [data])
