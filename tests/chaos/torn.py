"""What a power cut and a stranger leave: half a commit in the WAL, records that are no events."""

import contextlib
import json
import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from random import Random
from uuid import uuid4

from producer.errors import UnreachableError
from producer.log.kafka import KafkaLog
from producer.log.local import LocalLog
from producer.log.writer import LogWriter, Record
from schemas.catalogue import TOPIC_NAMES, topic_of
from schemas.installation import Installation

WAL_HEADER, FRAME_HEADER = 32, 24


def shrink_wal(log: Path, timeout_s: float = 2.0) -> None:
    """Copy the WAL into the file and cut it to nothing, if no reader or writer is in its way."""
    with contextlib.suppress(sqlite3.Error), closing(sqlite3.connect(log, timeout_s)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def tear_wal(log: Path, random: Random) -> bool:
    """Begin another commit in the WAL and break off within its second frame.

    A frame that was being written when the power went has the right salts and the wrong checksum.
    Only for a file that nobody has open. False where there is no WAL.
    """
    wal = log.with_name(log.name + "-wal")
    if not wal.exists() or wal.stat().st_size < WAL_HEADER:
        return False
    with wal.open("r+b") as file:
        header = file.read(WAL_HEADER)
        (page_size,) = struct.unpack(">I", header[8:12])
        salts = header[16:24]
        at = WAL_HEADER
        while True:
            file.seek(at)
            frame = file.read(FRAME_HEADER)
            if len(frame) < FRAME_HEADER or frame[8:16] != salts:
                break
            at += FRAME_HEADER + page_size
        file.seek(at)
        for size in (page_size, page_size // 3):
            head = struct.pack(">II", 1 + random.randrange(20), random.randrange(2)) + salts
            file.write(head + random.randbytes(8) + random.randbytes(size))
    return True


def strangers_records(
    acknowledged: dict[tuple[str, str, int], int], random: Random
) -> list[Record]:
    """Halves of events, garbage, and events that claim to be of streams that are being written."""
    stranger = f"rollout/{uuid4()}"
    known = sorted(acknowledged)
    event = {
        "specversion": "1.0",
        "id": str(uuid4()),
        "source": "//stranger/1/torn",
        "type": "cua.environment.creation_started",
        "time": "2026-01-01T00:00:00.000000Z",
        "subject": stranger,
        "datacontenttype": "application/json",
        "dataschema": "urn:cua:cua.environment.creation_started:1",
        "epoch": 1,
        "sequence": 1,
        "data": {},
    }
    whole = json.dumps(event).encode()
    records = [
        Record(topic_of(stranger, "cua."), stranger, whole[: random.randrange(len(whole))]),
        Record(topic_of(stranger, "cua."), stranger, whole),
        Record("cua.training", f"training/{uuid4()}", random.randbytes(300)),
        Record("cua.rollouts", "no stream at all", b"\x00"),
    ]
    for subject, _, epoch in random.sample(known, min(3, len(known))):
        last = acknowledged[subject, _, epoch]
        forged = event | {"subject": subject, "epoch": epoch, "sequence": last + 1}
        records.append(Record(topic_of(subject, "cua."), subject, json.dumps(forged).encode()))
    return records


def append(installation: Installation, records: list[Record]) -> bool:
    """Append them as they are, as anybody can who reaches the log; False when it is away."""
    topics = [installation.topic_prefix + name for name in TOPIC_NAMES]
    log: LogWriter
    with contextlib.suppress(UnreachableError):
        log = (
            KafkaLog(installation, topics)
            if installation.kafka_bootstrap_servers
            else LocalLog(installation.local_log_path)
        )
        with closing(log):
            log.append(records)
        return True
    return False
