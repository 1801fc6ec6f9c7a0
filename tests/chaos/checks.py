"""What must hold at the end, from the log, the tables and the files of acknowledgements alone."""

import hashlib
import json
import zlib
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

import psycopg2
from psycopg2.extras import RealDictCursor

from consumers.log.open import open_reader
from consumers.status import UnappliedCounts, count_unapplied
from schemas.installation import Installation
from tests.chaos.acknowledged import Reports
from tests.chaos.trainings import by_stream, training
from tests.reference_fold.comparison import differences, plain_tables
from tests.reference_fold.reference import TABLES, Reference, StreamFold

Key = tuple[str, str, int]
"""(stream, source, epoch)."""


class Findings(NamedTuple):
    """Everything that was counted. `sentences` say what is wrong; none is the proof."""

    records: int
    acknowledged: int
    lost: int
    twice: int
    applied: int
    planned: int
    parked: int
    fenced: int
    duplicates: int
    waiting: int
    tables_hash: str
    reference_hash: str
    sentences: list[str]


class AppliedStream(StreamFold):
    """A stream of the reference that remembers what was applied, in order."""

    def __init__(self, subject: str) -> None:
        super().__init__(subject)
        self.applied: list[int] = []

    def _apply(self, event: dict[str, Any], tables: dict[str, dict[str, dict[str, Any]]]) -> None:
        super()._apply(event, tables)
        self.applied.append(_fingerprint(event["type"], event["data"]))


class Folded(NamedTuple):
    """The log, folded by the reference."""

    reference: Reference
    seen: dict[Key, set[int]]
    """Sequences in the log."""
    records: int


def fold_log(installation: Installation) -> Folded:
    """Read the whole log once."""
    reference, seen, records = Reference(), dict[Key, set[int]](), 0
    for key, value in read_log(installation):
        records += 1
        if key is not None and key not in reference.streams:
            reference.streams[key] = AppliedStream(key)
        reference.take(key, value)
        try:
            event = json.loads(value)
            place = (event["subject"], event["source"], event["epoch"])
        except (ValueError, KeyError, TypeError):
            continue
        seen.setdefault(place, set()).add(event["sequence"])
    return Folded(reference, seen, records)


def read_log(installation: Installation) -> Iterator[tuple[str | None, bytes]]:
    """Every record, partition by partition or merged, each partition in order."""
    with closing(open_reader(installation)) as reader:
        places = reader.partitions()
        ends = reader.end_offsets(places)
        reader.seek(reader.beginning_offsets(places))
        left = sum(ends.values()) - sum(reader.beginning_offsets(places).values())
        while left > 0:
            for record in reader.poll(5_000, 10.0):
                left -= 1
                yield record.key, record.value


def lost_events(acknowledged: dict[Key, int], seen: dict[Key, set[int]]) -> list[str]:
    """A sentence for every acknowledged event that the log does not have."""
    return [
        f"{stream} {epoch}/{sequence} of {source} was acknowledged and is not in the log"
        for (stream, source, epoch), last in acknowledged.items()
        for sequence in range(1, last + 1)
        if sequence not in seen.get((stream, source, epoch), ())
    ]


def compare_with_plan(
    planned: dict[str, list[int]], applied: dict[str, list[int]]
) -> tuple[int, list[str]]:
    """(events applied twice, a sentence per stream that is not exactly what was planned)."""
    twice, sentences = 0, []
    for subject, expected in planned.items():
        found = applied.get(subject, [])
        if found == expected:
            continue
        again = max(0, len(found) - len(expected))
        twice += again
        at = next(
            (
                n
                for n, (one, other) in enumerate(zip(found, expected, strict=False))
                if one != other
            ),
            min(len(found), len(expected)),
        )
        sentences.append(
            f"{subject}: {len(found)} events applied, expected {len(expected)}; first difference at"
            f" {at}"
        )
    return twice, sentences


def planned_events(seed: int, trainings: dict[int, int]) -> dict[str, list[int]]:
    """Fingerprints by stream of everything that each emitter had to say; emitter -> trainings."""
    return {
        subject: [
            _fingerprint(payload.TYPE, json.loads(payload.__pydantic_serializer__.to_json(payload)))
            for payload in payloads
        ]
        for emitter, number in trainings.items()
        for at in range(number)
        for subject, payloads in by_stream(training(seed, emitter, at)).items()
    }


def _fingerprint(type_: str, data: dict[str, Any]) -> int:
    return zlib.crc32(f"{type_} {json.dumps(data, sort_keys=True)}".encode())


def compare_tables(url: str, reference: Reference) -> tuple[str, str, list[str]]:
    """(hash of the tables, hash of the reference's, differences), table by table."""
    ours, theirs, lines = hashlib.sha256(), hashlib.sha256(), []
    with closing(psycopg2.connect(url.replace("+psycopg2", ""))) as connection:
        for table in TABLES:
            with connection.cursor(cursor_factory=RealDictCursor) as cursor:
                cursor.execute(f'SELECT * FROM cua."{table}"')
                rows = {row["id"]: dict(row) for row in cursor.fetchall()}
            found = plain_tables({table: rows})
            expected = plain_tables({table: reference.tables.pop(table)})
            del rows
            text = _canonical(found)
            ours.update(text)
            if found != expected:
                text = _canonical(expected)
                lines += differences(expected, found)
            theirs.update(text)
    return ours.hexdigest(), theirs.hexdigest(), lines


def _canonical(tables: dict[str, dict[str, dict[str, Any]]]) -> bytes:
    return json.dumps(tables, sort_keys=True, default=str).encode()


def unapplied_counts(url: str) -> UnappliedCounts:
    """What the tables did not apply."""
    with (
        closing(psycopg2.connect(url.replace("+psycopg2", ""))) as connection,
        connection.cursor() as cursor,
    ):
        return count_unapplied(cursor)


def check(installation: Installation, url: str, reports: Reports, seed: int) -> Findings:
    """Everything."""
    reports.read()
    folded = fold_log(installation)
    reference = folded.reference
    lost = lost_events(reports.acknowledged, folded.seen)
    trainings = {emitter: max(known) + 1 for emitter, known in reports.trainings.items()}
    planned = planned_events(seed, trainings)
    applied = {
        name: one.applied
        for name, one in reference.streams.items()
        if isinstance(one, AppliedStream)
    }
    twice, wrong = compare_with_plan(planned, applied)
    in_tables = unapplied_counts(url)
    in_reference = UnappliedCounts(
        parked=reference.count("parked"),
        duplicates=reference.count("duplicates"),
        fenced=reference.count("fenced"),
        gaps=sum(bool(stream.waiting) for stream in reference.streams.values()),
        dropped=0,
        foreign=0,
    )
    sentences = lost + wrong
    if in_tables != in_reference:
        sentences.append(f"the tables hold {in_tables}, the reference {in_reference}")
    ours, theirs, lines = compare_tables(url, reference)
    return Findings(
        records=folded.records,
        acknowledged=reports.num_acknowledged,
        lost=len(lost),
        twice=twice,
        applied=sum(len(applied.get(subject, [])) for subject in planned),
        planned=sum(len(events) for events in planned.values()),
        parked=in_tables.parked,
        fenced=in_tables.fenced,
        duplicates=in_tables.duplicates,
        waiting=in_tables.gaps,
        tables_hash=ours,
        reference_hash=theirs,
        sentences=sentences + lines,
    )
