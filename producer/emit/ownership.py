"""Taking a stream over, and noticing that somebody else has.

One writer per stream, proven by the log and not by clocks.

A claim is the first event of an epoch. It counts only if it continues the stream's last record
before it in the log and was there first; so whoever claims reads the stream back and looks whose
name it bears.
"""

from collections.abc import Mapping

from producer.emit.emitter import Emitter
from producer.errors import CuaTrainError
from producer.log.stream_history import StreamHistory
from producer.log.writer import TopicPartition
from schemas.event import Fact


class ClaimLostError(CuaTrainError):
    """Another writer holds the stream. Exit 1."""

    def __init__(self, subject: str, source: str, epoch: int) -> None:
        super().__init__(
            f"{subject} is written by {source} (epoch {epoch}), so this process must not. Stop that"
            " one (its name is //host/pid/start), then run the same command again"
        )
        self.subject = subject
        self.source = source
        """The holder: `//host/pid/start`."""
        self.epoch = epoch


def claim(
    emitter: Emitter,
    fact: Fact,
    history: StreamHistory,
    since: Mapping[TopicPartition, int],
    *,
    timeout_s: float = 60.0,
) -> StreamHistory:
    """Open the next epoch of a stream with `fact`, and return once the log says that it is ours.

    The stream with our claim at its end.

    `history`: the stream as just read back (empty for a new one); `since`: as for `read_back`.
    ClaimLostError when another writer was first, or the old one still writes; to try again, call
    `emitter.renew_source(subject)` and read back anew, for what a lost claim's source says is
    refused for ever. UnreachableError when the log did not take it within `timeout_s`.
    """
    subject = fact.subject
    emitter.resume_stream(subject, position=history.position, statuses=history.statuses)
    emitter.emit(fact)
    emitter.wait_shipped(timeout_s)
    after = emitter.read_back(subject, since, timeout_s=timeout_s)
    check_owner(emitter, after)
    return after


def check_owner(emitter: Emitter, history: StreamHistory) -> None:
    """ClaimLostError unless this emitter is the stream's last writer in `history` (read back a moment ago)."""
    if history.position.source != emitter.source:
        raise ClaimLostError(history.subject, history.position.source, history.position.epoch)


class OwnershipMonitor:
    """Looks, now and then, whether a claimed stream is still ours, reading only what was added since the last look. For one thread."""

    def __init__(
        self, emitter: Emitter, history: StreamHistory, ends: Mapping[TopicPartition, int]
    ) -> None:
        """`history`: as `claim` returned it; `ends`.

        The log's, from before that reading (`emitter.lower_bounds()`).
        """
        self._emitter = emitter
        self._history = history
        self._since = dict(ends)

    def check(self) -> None:
        """ClaimLostError when another writer has validly taken the stream over.

        UnreachableError: not known now; look again later.
        """
        ends = self._emitter.log.ends()
        self._emitter.read_into(self._history, self._since)
        # What was asked for before the reading is a bound that nothing unread lies before.
        self._since = ends
        self._history.events.clear()
        check_owner(self._emitter, self._history)
