"""One writer per stream, proven by the log and not by clocks: claiming a stream, noticing its loss.

A claim is the first event of an epoch. It is valid only if it continues the stream's last record
before it in the log and was appended first; so a claimant reads the stream back and checks whose
source the stream now names.
"""

import logging
import threading
from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from producer.emit.emitter import Emitter
from producer.emit.stream import StreamWriter
from producer.errors import MismatchError, TakenOverError, UnreachableError
from producer.log.stream_history import StreamHistory
from producer.log.writer import TopicPartition
from schemas.base import Payload

logger = logging.getLogger(__name__)

SILENT_WAIT_S = 5.0
"""Waits up to this long are not logged."""


class ClaimLostError(TakenOverError):
    """Another writer owns the stream. Exit code 1."""

    def __init__(self, history: StreamHistory) -> None:
        position = history.position
        super().__init__(
            f"{history.subject} is written by {position.source} (epoch {position.epoch}). Stop that"
            " process (its name is //host/pid/start), then run the same command again"
        )
        self.source = position.source
        """Source name of the owner: `//host/pid/start`."""
        self.epoch = position.epoch


def check_owner(emitter: Emitter, history: StreamHistory) -> None:
    """Raise ClaimLostError unless this emitter wrote the last epoch in `history`."""
    if history.position.source != emitter.source:
        raise ClaimLostError(history)


class OwnershipMonitor:
    """Checks whether a claimed stream is still ours. Thread-safe.

    Each check reads only the records added since the last one.
    """

    def __init__(
        self, emitter: Emitter, history: StreamHistory, ends: Mapping[TopicPartition, int]
    ) -> None:
        """`history` was read back after the claim, `ends` are the log's end offsets before that."""
        self._emitter = emitter
        # Whatever anyone appends under the stream's key, a later claim behind it is noticed.
        self._history = history.copy_position()
        self._since = dict(ends)
        self._lock = threading.Lock()

    def check(self) -> None:
        """Raise ClaimLostError after another writer's claim, UnreachableError if unknown."""
        with self._lock:
            # Get the ends first: a record appended between the calls is then read twice instead of
            # never.
            ends = self._emitter.log.ends()
            self._emitter.log.read_on(self._history, self._since)
            self._since = ends
            check_owner(self._emitter, self._history)


class Claim(NamedTuple):
    """A stream that this emitter owns."""

    stream: StreamWriter
    monitor: OwnershipMonitor


def claim(
    emitter: Emitter,
    first: Payload,
    history: StreamHistory,
    since: Mapping[TopicPartition, int],
    *,
    training_id: UUID | None = None,
    timeout_s: float = 60.0,
    stop: threading.Event | None = None,
) -> Claim:
    """Open the next epoch of a stream with `first`; returns once the log confirms that it is ours.

    `history` is the stream as just read back (empty for a new one); `since` holds offsets at or
    before all of its records that are not in `history`. Raises ClaimLostError if another writer was
    first or is still writing. This emitter's source may stay refused, so retry with another emitter
    and a newly read history. Raises UnreachableError if the log does not confirm the claim within
    `timeout_s` (if infinite, it waits as long as the log is unreachable), StopRequestedError if
    `stop` is set while waiting, and MismatchError if Kafka refuses the stream's records.
    """
    if history.is_dropped:
        message = (
            f"{history.subject} cannot be continued: an operator gave up the rest of it"
            " (cua-project parked drop --rest), so nothing more of it would reach the tables. Take"
            " that back, or begin a new training"
        )
        raise MismatchError(message)
    ends = emitter.log.lower_bounds()
    stream = emitter.stream(history.subject, history, training_id=training_id)
    stream.emit(first)
    # No timeout: a stopped process that holds the local log's lock is named and waited for.
    emitter.flush()
    _wait_shipped(emitter, history.subject, timeout_s, stop)
    emitter.log.check_not_held(history.subject)
    after = history.copy()
    emitter.log.read_on(after, since, timeout_s, stop)
    try:
        check_owner(emitter, after)
    except ClaimLostError:
        stream.close()  # anything emitted on it from now on would be fenced
        raise
    return Claim(stream, OwnershipMonitor(emitter, after, ends))


def _wait_shipped(
    emitter: Emitter, subject: str, timeout_s: float, stop: threading.Event | None
) -> None:
    """Wait until the claim is in the log, and log what is being waited for."""
    try:
        emitter.log.wait_shipped(min(timeout_s, SILENT_WAIT_S), stop)
    except UnreachableError as error:
        if timeout_s <= SILENT_WAIT_S:
            raise
        logger.warning("waiting until the log confirms that %s is ours: %s", subject, error)
        emitter.log.wait_shipped(timeout_s - SILENT_WAIT_S, stop)
