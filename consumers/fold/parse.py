"""First stage: a record's bytes to its envelope, checked against the record's key and place."""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from consumers.fold.stream import new_stream
from consumers.log.reader import LogRecord
from schemas.decision import LONE, lone_stream
from schemas.event import DECISION_TYPES, Envelope
from schemas.home import find_home, topic_name
from schemas.wire import UnreadableError, read_envelope

MAX_PROBLEM_CHARS = 1_000
"""Of a reason, which may quote a key of any length."""


class ParsedRecord(NamedTuple):
    """A record with its envelope."""

    record: LogRecord
    stream: str
    """Subject of the envelope; of an unreadable record its key. Where neither names a stream, and
    of a foreign record, `schemas.decision.lone_stream`."""
    envelope: Envelope | None
    problem: str
    """Why there is no envelope, or why it is foreign."""
    is_foreign: bool = False
    """It is not in its stream's home (`schemas.home`), so it is in no stream."""


def parse_record(record: LogRecord, log_id: str | None = None) -> ParsedRecord:
    """The envelope of a record whose key, if it has one, is the envelope's subject.

    `log_id`: of the log that it is in; None: its place is not looked at. Never raises: bytes that
    are no such event give a record without an envelope.
    """
    parsed = _parsed(record)
    return parsed if log_id is None else _placed(parsed, log_id)


def parse_records(records: Iterable[LogRecord], log_id: str) -> list[ParsedRecord]:
    """As `parse_record`, of records of the log with this id."""
    return [parse_record(record, log_id) for record in records]


def _parsed(record: LogRecord) -> ParsedRecord:
    try:
        envelope = read_envelope(record.value)
        _check_subject(envelope.subject)
        _check_lone(envelope)
    except (UnreadableError, ValueError) as error:
        return unreadable(record, str(error))
    if record.key is not None and record.key != envelope.subject:
        problem = f"key {record.key!r} is not the event's subject {envelope.subject!r}"
        return unreadable(record, problem)
    return ParsedRecord(record, envelope.subject, envelope, "")


def _placed(parsed: ParsedRecord, log_id: str) -> ParsedRecord:
    """The same record, or a foreign one. One that names no stream is nowhere foreign."""
    record = parsed.record
    home = find_home(parsed.stream, log_id)
    if home.is_at(record.topic, record.partition):
        return parsed
    lone = _lone(record)
    if parsed.stream == lone:
        return parsed
    problem = (
        f"{record.topic}/{record.partition} is not where {parsed.stream} is: that is partition"
        f" {home.partition} of the topic {home.topic}. Another program chose the place"
    )
    return ParsedRecord(record, lone, parsed.envelope, problem, is_foreign=True)


def unreadable(record: LogRecord, problem: str) -> ParsedRecord:
    """A record without an envelope; its key may still name its stream.

    Not one of a single record: that would be in two partitions, its record's and its home.
    """
    stream = stream_of_key(record.key)
    if stream is None or stream.startswith(LONE):
        stream = _lone(record)
    return ParsedRecord(record, stream, None, problem[:MAX_PROBLEM_CHARS])


def _lone(record: LogRecord) -> str:
    return lone_stream(topic_name(record.topic), record.partition, record.value)


def _check_lone(envelope: Envelope) -> None:
    """ValueError for an event of a single record's stream that is no operator's decision."""
    if envelope.subject.startswith(LONE) and not envelope.type.startswith(DECISION_TYPES):
        message = f"{envelope.subject} is the stream of one record, which only decisions are about"
        raise ValueError(message)


@lru_cache(maxsize=50_000)
def _check_subject(subject: str) -> None:
    """ValueError unless it names a stream. Cached: every event of a stream repeats its subject."""
    new_stream(subject)


def stream_of_key(key: str | None) -> str | None:
    """The stream that a key names; None when it is the name of none."""
    if key is None:
        return None
    try:
        return new_stream(key).subject
    except ValueError:
        return None
