"""Whatever bytes a record has, it is applied or set aside, and no other stream notices."""

import json
import os
from typing import NamedTuple

from consumers.fold.fold import Fold, FoldedBatch
from consumers.fold.parse import ParsedRecord, parse_record
from consumers.fold.stream import Stream
from consumers.log.reader import LogRecord
from consumers.projection.write import copy_commands, row_commands, stream_commands
from consumers.tail.event_filter import decode
from consumers.tail.formats import json_line, parse_format
from consumers.tail.text import format_line
from tests.support.fuzzed_log import FuzzedLog, fuzzed_log
from tests.support.memory_log import BEGAN

SEED = int(os.environ.get("CUA_TEST_SEED", "20261122"))
"""Printed when a test fails; CUA_TEST_SEED=<n> runs another."""
NUM_CASES = 3_000


class Folded(NamedTuple):
    streams: dict[str, Stream]
    batches: list[FoldedBatch]


def folded(log: FuzzedLog, size: int) -> Folded:
    """In batches, whose streams are kept as the projector does."""
    streams: dict[str, Stream] = {}
    batches = []
    parsed: list[ParsedRecord] = [
        parse_record(LogRecord("t", 0, offset, one.key, one.value, BEGAN))
        for offset, one in enumerate(log.records)
    ]
    for start in range(0, len(parsed), size):
        fold = Fold(streams, log_id="log")
        batches.append(fold.take_all(parsed[start : start + size]))
    return Folded(streams, batches)


def test_every_mutated_record_is_applied_or_set_aside_and_the_other_streams_go_on() -> None:
    log = fuzzed_log(SEED, NUM_CASES)
    print(f"seed {SEED}: {log.num_cases} cases, {len(log.records)} records")  # noqa: T201  # replays a failure

    found = folded(log, 1_000)

    progress = [partition for batch in found.batches for partition in batch.partitions.values()]
    taken = sum(item.num_events + item.num_duplicates for item in progress)
    unapplied = sum(len(batch.unapplied) - len(batch.released) for batch in found.batches)
    assert taken + unapplied == len(log.records)
    for subject, last in log.untouched.items():
        stream = found.streams[subject]
        assert (str(stream.position.point), stream.parked_since) == (last, None), subject
        assert not stream.waiting
    assert log.num_cases >= NUM_CASES


def test_whatever_is_set_aside_or_remembered_of_a_stream_can_be_written() -> None:
    for batch in folded(fuzzed_log(SEED + 1, NUM_CASES), 50).batches:
        copy_commands(
            "cua", "unapplied_record", (unapplied.row() for unapplied in batch.unapplied.values())
        )
        stream_commands("cua", batch.streams.values())
        for unapplied in batch.unapplied.values():
            assert len(unapplied.reason) <= 1_000
        row_commands("cua", batch.rows)


def test_every_mutated_record_is_printed() -> None:
    whole = parse_format("%t %p %o %k %v %T %s %d %e %q %i\\n")
    for offset, one in enumerate(fuzzed_log(SEED + 2, 1_000).records):
        decoded = decode(LogRecord("t", 0, offset, one.key, one.value, BEGAN))
        line = format_line(decoded, width=None)
        assert line.isprintable(), line
        assert format_line(decoded, colour=True, width=80)
        json.loads(json_line(decoded))
        assert whole(decoded, 0)
