"""Operators' decisions in a log that a test has made, as `cua-project parked drop` appends them."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from consumers.database.connection import Cursor, connected
from consumers.projection import decisions
from consumers.projection.decisions import Decision
from schemas.catalogue import topic_of
from schemas.ids import uuid7
from schemas.wire import encode
from tests.support.memory_log import MemoryLog

BY: Any = {"made_by": "tester", "reason": "a test"}
NOW = datetime(2026, 3, 2, tzinfo=UTC)


def encoded(decision: Decision) -> bytes:
    """The record's value."""
    return encode(
        decision.payload,
        id=uuid7(NOW),
        source="//test/1/decisions",
        time=NOW,
        subject=decision.stream,
        training_id=decision.training_id,
    )


def append(log: MemoryLog, decision: Decision) -> None:
    """To the stream's own partition."""
    log.append(decision.stream, encoded(decision), topic_of(decision.stream, "cua."))


def _decide(log: MemoryLog, url: str, decide: Callable[[Cursor], Decision]) -> Decision:
    with connected(url, "test") as connection, connection, connection.cursor() as cursor:
        decision = decide(cursor)
    append(log, decision)
    return decision


def drop_record(log: MemoryLog, url: str, record_id: str, *, rest: bool = False) -> Decision:
    """Of the tables at this URL."""
    return _decide(
        log, url, lambda cursor: decisions.drop_record(cursor, record_id, rest=rest, **BY)
    )


def drop_gap(log: MemoryLog, url: str, stream: str) -> Decision:
    """Of the tables at this URL."""
    return _decide(log, url, lambda cursor: decisions.drop_gap(cursor, stream, **BY))


def undo_rest(log: MemoryLog, url: str, stream: str) -> Decision:
    """Of the tables at this URL."""
    return _decide(log, url, lambda cursor: decisions.undo_rest(cursor, stream, **BY))
