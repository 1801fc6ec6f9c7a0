"""Which records are printed: filters by stream, type and training.

Unreadable records are printed as such, unless a filter needs what cannot be read.
"""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from uuid import UUID

from consumers.log.reader import LogRecord
from schemas.advice import did_you_mean
from schemas.catalogue import PAYLOADS, TOPICS
from schemas.event import Envelope
from schemas.local_index import Places, places_of_streams, places_of_training
from schemas.wire import UnreadableError, read_envelope

TYPE_PREFIX = "cua."
GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class DecodedRecord:
    """A record and its envelope."""

    record: LogRecord
    envelope: Envelope | None
    """None: unreadable."""
    problem: str | None
    """Why it is unreadable."""


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Conditions that must all hold; None: no condition."""

    training_id: UUID | None = None
    stream: str | None = None
    """Glob over the subject: `rollout/*`."""
    types: tuple[str, ...] = ()
    """Globs over the type, with or without `cua.`; any of them."""

    def apply(self, decoded: DecodedRecord) -> bool:
        """Whether the record is printed."""
        envelope = decoded.envelope
        if envelope is None:
            # Its key still names the stream; its training and type are unknown.
            return (
                self.training_id is None
                and not self.types
                and self._has_stream(decoded.record.key or "")
            )
        if self.training_id is not None and envelope.training_id != self.training_id:
            return False
        return self._has_stream(envelope.subject) and (
            not self.types or any(matches_type(envelope.type, glob) for glob in self.types)
        )

    def places(self) -> Places | None:
        """Where the index of a log has every record that may be printed; None: anywhere."""
        if self.stream is not None and not GLOB.search(self.stream):
            return places_of_streams([self.stream])
        return None if self.training_id is None else places_of_training(self.training_id)

    def _has_stream(self, subject: str) -> bool:
        return self.stream is None or fnmatchcase(subject, self.stream)


def decode(record: LogRecord) -> DecodedRecord:
    """The record with its envelope, or with the reason why it has none."""
    try:
        return DecodedRecord(record, read_envelope(record.value), None)
    except UnreadableError as error:
        return DecodedRecord(record, None, str(error))


def matches_type(event_type: str, glob: str) -> bool:
    """Whether a glob, with or without `cua.`, matches a type."""
    return fnmatchcase(event_type, glob) or fnmatchcase(event_type, TYPE_PREFIX + glob)


def unknown_stream_message(glob: str | None) -> str | None:
    """Names the streams that exist if the glob is of another kind; None if it may match one."""
    kind, slash, rest = (glob or "*").partition("/")
    if any(character in kind for character in "*?[") or (kind in TOPICS and slash):
        return None
    suggestion = did_you_mean(
        f"{kind}/{rest or '*'}", [f"{topic}/{rest or '*'}" for topic in TOPICS]
    )
    suggestion = suggestion or f" Streams are {', '.join(TOPICS)}, each /ID"
    return f"no stream matches {glob!r}.{suggestion}"


def unknown_type_message(globs: tuple[str, ...]) -> str | None:
    """Names the first glob that matches no type of this version; None if all match one.

    The log may still have such a type, written by a newer version.
    """
    known = sorted({payload.TYPE for payload in PAYLOADS})
    for glob in globs:
        if not any(matches_type(event_type, glob) for event_type in known):
            short = [event_type.removeprefix(TYPE_PREFIX) for event_type in known]
            suggestion = did_you_mean(glob.removeprefix(TYPE_PREFIX), short)
            return f"no event type matches {glob!r}.{suggestion}".removesuffix(".")
    return None
