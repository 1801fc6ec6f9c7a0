"""Which records are shown: filters by stream, type and training.

A record whose envelope cannot be read is shown as what it is.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from uuid import UUID

from consumers.log.reader import LogRecord
from schemas.event import Envelope
from schemas.wire import UnreadableError, read_envelope


@dataclass(frozen=True, slots=True)
class Seen:
    """A record and what could be read of it."""

    record: LogRecord
    envelope: Envelope | None
    """None: unreadable."""
    problem: str | None
    """Why it is unreadable."""


@dataclass(frozen=True, slots=True)
class EventFilter:
    """All that are given must hold; None: no condition."""

    training_id: UUID | None = None
    stream: str | None = None
    """Glob over the subject: `rollout/*`."""
    types: tuple[str, ...] = ()
    """Globs over the type, with or without `cua.`; any of them."""

    def see(self, record: LogRecord) -> Seen | None:
        """The record, read; None when it is not wanted."""
        try:
            envelope = read_envelope(record.value)
        except UnreadableError as error:
            # Its key still names the stream; a training or a type it cannot have.
            wanted = (
                self.training_id is None and not self.types and self._has_stream(record.key or "")
            )
            return Seen(record, None, str(error)) if wanted else None
        if self.training_id is not None and envelope.training_id != self.training_id:
            return None
        if not self._has_stream(envelope.subject) or not self._has_type(envelope.type):
            return None
        return Seen(record, envelope, None)

    def _has_stream(self, subject: str) -> bool:
        return self.stream is None or fnmatchcase(subject, self.stream)

    def _has_type(self, type_: str) -> bool:
        return not self.types or any(
            fnmatchcase(type_, glob) or fnmatchcase(type_, f"cua.{glob}") for glob in self.types
        )
