"""First stage: a record's bytes to its envelope, checked against the record's key."""

from functools import lru_cache
from typing import NamedTuple

from consumers.fold.stream import new_stream
from consumers.log.reader import LogRecord
from schemas.decision import nameless_stream
from schemas.event import Envelope
from schemas.wire import UnreadableError, read_envelope

MAX_PROBLEM_CHARS = 1_000
"""Of a reason, which may quote a key of any length."""


class ParsedRecord(NamedTuple):
    """A record with its envelope."""

    record: LogRecord
    stream: str
    """Subject of the envelope; of an unreadable record its key. Where neither names a stream, that
    of `schemas.decision.nameless_stream`."""
    envelope: Envelope | None
    problem: str
    """Why there is no envelope."""


def parse_record(record: LogRecord) -> ParsedRecord:
    """The envelope of a record whose key, if it has one, is the envelope's subject.

    Never raises: bytes that are no such event give a record without an envelope.
    """
    try:
        envelope = read_envelope(record.value)
        _check_subject(envelope.subject)
    except (UnreadableError, ValueError) as error:
        return unreadable(record, str(error))
    if record.key is not None and record.key != envelope.subject:
        problem = f"key {record.key!r} is not the event's subject {envelope.subject!r}"
        return unreadable(record, problem)
    return ParsedRecord(record, envelope.subject, envelope, "")


def unreadable(record: LogRecord, problem: str) -> ParsedRecord:
    """A record without an envelope; its key may still name its stream."""
    stream = stream_of_key(record.key) or nameless_stream(record.value)
    return ParsedRecord(record, stream, None, problem[:MAX_PROBLEM_CHARS])


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
