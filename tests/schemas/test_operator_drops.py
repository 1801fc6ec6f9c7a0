"""What operators gave up is one rule for everybody who reads a stream."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from schemas.event import StreamPoint
from schemas.operator_drops import (
    Decision,
    Drop,
    Drops,
    encode_decision,
    read_decisions,
    read_operator_drops,
    value_hash,
)

STREAM = "rollout/8a2d8f1c-2f1a-5c55-9c5c-0a4a1a1f3c11"
RECORD = Drop("record", STREAM, value_hash(b"bad"), None)
REST = Drop("rest", STREAM, value_hash(b"worse"), None)
GAP = Drop("gap", STREAM, value_hash(b"after"), StreamPoint(2, 17))
NAMELESS = Drop("record", None, value_hash(b"noise"), None)


def decided(drop: Drop, *, is_undone: bool = False) -> Decision:
    return Decision(drop, is_undone, datetime(2026, 3, 1, tzinfo=UTC), "ops", 'a "reason"\n')


def test_a_drop_is_of_one_stream_and_one_value() -> None:
    drops = Drops([RECORD, REST, NAMELESS])
    assert drops.scope(STREAM, b"bad") == "record"
    assert drops.scope(STREAM, b"worse") == "rest"
    assert drops.scope(STREAM, b"other") is None
    assert drops.scope("rollout/other", b"bad") is None
    assert drops.scope(None, b"noise") == "record"
    assert drops.scope(None, b"bad") is None


def test_a_gap_is_given_up_from_one_position_to_one_record() -> None:
    drops = Drops([GAP])
    assert drops.gives_up_gap(STREAM, b"after", StreamPoint(2, 17))
    assert not drops.gives_up_gap(STREAM, b"after", StreamPoint(2, 18))
    assert not drops.gives_up_gap(STREAM, b"later", StreamPoint(2, 17))
    assert drops.scope(STREAM, b"after") is None


def test_decisions_survive_the_file(tmp_path: Path) -> None:
    path = tmp_path / "drops"
    decisions = [decided(drop) for drop in (RECORD, REST, GAP, NAMELESS)]
    path.write_bytes(b"".join(map(encode_decision, decisions)))
    assert read_decisions(path) == decisions


def test_an_undone_decision_counts_no_longer_and_a_repeated_one_again(tmp_path: Path) -> None:
    path = tmp_path / "drops"
    lines = [decided(REST), decided(REST, is_undone=True)]
    path.write_bytes(b"".join(map(encode_decision, lines)))
    assert read_operator_drops(path).scope(STREAM, b"worse") is None
    lines.append(decided(REST))
    path.write_bytes(b"".join(map(encode_decision, lines)))
    assert read_operator_drops(path).scope(STREAM, b"worse") == "rest"


def test_no_file_gives_up_nothing(tmp_path: Path) -> None:
    assert not read_operator_drops(tmp_path / "none")


def test_a_line_that_was_cut_off_while_written_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "drops"
    path.write_bytes(encode_decision(decided(RECORD)) + encode_decision(decided(REST))[:-9])
    assert [decision.drop for decision in read_decisions(path)] == [RECORD]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"{}",
        b"null",
        encode_decision(decided(GAP)).replace(b'"2/17"', b"null").strip(),
        encode_decision(decided(RECORD)).replace(b'"record"', b'"some"').strip(),
        encode_decision(decided(RECORD)).replace(b'"record"', b'["rest"]').strip(),
        b"\xff\xfe",
    ],
)
def test_a_garbled_line_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "drops"
    path.write_bytes(encode_decision(decided(RECORD)) + line + b"\n")
    with pytest.raises(ValueError, match="drops line 2 is no decision"):
        read_operator_drops(path)
