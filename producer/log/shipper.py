"""Ships the local log's records to another log in order; one shipper per home at a time.

Runs the thread, the retries and their warnings. Knows no Kafka: `connect` provides the target.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from itertools import islice
from pathlib import Path

from producer.errors import CuaTrainError, LogBrokenError, StopRequestedError, UnreachableError
from producer.log.blob_uploads import NoLog
from producer.log.shipper_lease import ShipperLease
from producer.log.spool import KEEP, Spool, SpooledRecords
from producer.log.writer import LogWriter, Record, RecordRefusedError

logger = logging.getLogger(__name__)

READ_BYTES = 4 << 20
READ_RECORDS = 5000
"""Limits of one request, so that memory stays bounded after an outage of any length."""
HELD_RECORDS = 100
"""Number of a held stream's records that are tried at once."""
IDLE_S = 0.05
"""Interval between polls for records of other processes; this process announces its own."""
LOCK_S = 0.2
"""Interval between attempts to become the shipper."""
FIRST_RETRY_S, LAST_RETRY_S = 0.2, 3.0
TIDY_EVERY_S = 600.0
"""Interval between prunings, and between attempts to send what the target refused."""
GATHER_RECORDS, GATHER_S = 500, 0.02
"""After a smaller read, pause this long: at 1,000 events/s, one request replaces ten."""

Target = LogWriter | NoLog


class Shipper:
    """A thread that ships while it holds the lease. Thread-safe.

    An unreachable target is retried forever, in order, from the first unacknowledged record, with
    one warning when the outage begins and one when it ends. Delivery is at least once: a record may
    reach the target twice, but never before its predecessor in the stream. If the local log can no
    longer be read, the thread ends, and `problem` holds the reason. `stop` is idempotent; what is
    left stays in the file for the next process. If the target refuses a record, its stream stays in
    the file from that record on, with a warning, and the other streams continue.
    """

    def __init__(
        self,
        path: Path,
        connect: Callable[[], Target],
        *,
        before: Callable[[list[Record]], None] = lambda _records: None,
        keep: timedelta | None = KEEP,
    ) -> None:
        """Start shipping the local log at `path`.

        `before` is called with records about to be shipped, to upload their blobs; it may raise
        UnreachableError. `keep` is how long shipped records stay in the file; None keeps them
        forever.
        """
        self._path = path
        self._connect = connect
        self._before = before
        self._keep = keep
        self._warned: set[tuple[str, int]] = set()
        """(key, position) of records whose refusal was logged."""
        self._lease = ShipperLease(path.parent)
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._target: Target | None = None
        self.target_id: str | None = None
        """Id of the target; None before the first contact."""
        self.problem: CuaTrainError | None = None
        """Why nothing is being shipped; None if all is well or another process ships."""
        self._retry_s = FIRST_RETRY_S
        self._thread = threading.Thread(target=self._run, name="cua-shipper", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread is running."""
        return self._thread.is_alive()

    def notify(self) -> None:
        """Wake the thread: the local log has new records."""
        self._news.set()

    def stop(self, timeout_s: float) -> bool:
        """Stop after the current request. Returns whether the thread has ended."""
        self._stopping.set()
        self._news.set()
        self._thread.join(timeout_s)
        target = self._target
        if self._thread.is_alive() and target is not None:
            # The thread is waiting for acknowledgements.
            target.close()
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    if not self._lease.acquire():
                        # Another process of this home ships our records too.
                        self._stopping.wait(LOCK_S)
                        continue
                    self._ship()
                    self._drop_target()
                except LogBrokenError as error:
                    # The emitter notices the problem by its own commits.
                    self._report(error)
                    break
                except StopRequestedError:
                    break
                except Exception as error:  # noqa: BLE001  # the thread's boundary
                    self._report(error if isinstance(error, CuaTrainError) else _unexpected(error))
                    self._drop_target()
                    # Not interrupted by notify(), which comes a hundred times a second.
                    self._stopping.wait(self._retry_s)
                    self._retry_s = min(self._retry_s * 2, LAST_RETRY_S)
        finally:
            self._drop_target()
            self._lease.release()

    def _ship(self) -> None:
        """Ship until stopped or replaced. Raises UnreachableError."""
        target = self._target = self._connect()
        self.target_id = target.log_id
        with closing(Spool(self._path, self._stopping)) as spool:
            position = spool.cursor(target.log_id)
            # The topic may accept larger records by now.
            self._send_held(spool, target, position)
            tidied_at = float("-inf")
            # While this process was stopped, another may have replaced it; then it must send
            # nothing more.
            while not self._stopping.is_set() and self._lease.is_ours():
                self._news.clear()
                held = spool.held(target.log_id)
                spooled = spool.read(position, READ_BYTES, READ_RECORDS, held)
                if spooled.records:
                    spooled = self._send(spool, target, spooled)
                if spooled.next_position > position:
                    position = spooled.next_position
                    spool.move(target.log_id, position)
                self._recover()
                if not spooled.records:
                    if time.monotonic() - tidied_at > TIDY_EVERY_S:
                        self._send_held(spool, target, position)
                        if self._keep is not None:
                            spool.tidy(target.log_id, self._keep)
                        tidied_at = time.monotonic()
                    self._news.wait(IDLE_S)
                elif len(spooled.records) < GATHER_RECORDS:
                    self._stopping.wait(GATHER_S)

    def _send(self, spool: Spool, target: Target, spooled: SpooledRecords) -> SpooledRecords:
        """Send records. Returns those sent, which end before the first that the target refuses."""
        self._before(spooled.records)
        try:
            target.append(spooled.records)
        except RecordRefusedError as refused:
            index, at = refused.index, spooled.positions[refused.index]
            self._hold(spool, target, spooled.records[index].key, at, refused)
            sent = spooled.records[:index], spooled.positions[:index]
            return SpooledRecords(*sent, next_position=at)
        return spooled

    def _send_held(self, spool: Spool, target: Target, end: int) -> None:
        """Send held streams up to the cursor `end`, as far as the target accepts them now."""
        for key, position in spool.held(target.log_id).items():
            held = spool.read_held(key, position, end)
            while chunk := list(islice(held, HELD_RECORDS)):
                records = [record for _, record in chunk]
                self._before(records)
                try:
                    target.append(records)
                except RecordRefusedError as refused:
                    self._hold(spool, target, key, chunk[refused.index][0], refused)
                    break
            else:
                spool.release(target.log_id, key)
                logger.warning("%s is sent again", key)

    def _hold(
        self, spool: Spool, target: Target, key: str, position: int, refused: RecordRefusedError
    ) -> None:
        """Hold a stream back from the refused record on."""
        spool.hold(target.log_id, key, position)
        if (key, position) not in self._warned:
            self._warned.add((key, position))
            at = spool.coordinates(position)
            logger.warning(
                "%s: %s. This record (%s/%d, offset %d of the local log) and what follows it in its"
                " stream stay in %s; other streams go on",
                *(key, refused, at.topic, at.partition, at.offset, self._path),
            )

    def _report(self, error: CuaTrainError) -> None:
        is_new = self.problem is None
        self.problem = error
        # `stop` closes the target during a request.
        if is_new and not self._stopping.is_set():
            is_broken = isinstance(error, LogBrokenError)
            kept = "" if is_broken else " Events are kept on this disk and sent when it is back."
            logger.warning("%s%s", error, kept)

    def _recover(self) -> None:
        self._retry_s = FIRST_RETRY_S
        if self.problem is not None:
            self.problem = None
            logger.warning("the log is reachable again; sending the events kept meanwhile")

    def _drop_target(self) -> None:
        target, self._target = self._target, None
        if target is not None:
            target.close()


def _unexpected(error: Exception) -> UnreachableError:
    return UnreachableError(f"sending to the log failed: {type(error).__name__}: {error}; retrying")
