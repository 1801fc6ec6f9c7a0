"""A process to disturb: emits its trainings and writes down what was acknowledged.

Started again after its death, it reads back what the log has of the training it was at and goes on
there in the next epoch, as a resumed trainer does. Exits 0 when it is done, 1 when its log broke, 7
when another process has taken its training over, 8 when it must be started again.
"""

import argparse
import sys
import threading
import time
from collections import deque
from pathlib import Path

from producer.emit import Acknowledgement, Emitter
from producer.emit.ownership import ClaimLostError, OwnershipMonitor, claim
from producer.errors import CuaTrainError, LogBrokenError, UnreachableError
from producer.log.stream_history import StreamHistory
from schemas.catalogue import stream_owner
from schemas.event import StreamPoint
from tests.chaos.acknowledged import Report, ReportFile
from tests.chaos.begun import Begun, Offsets
from tests.chaos.trainings import Planned, by_stream, training

BATCH = 100
IN_FLIGHT = 3
"""Batches emitted before the first of them is waited for."""
PATIENCE_S = 300.0
DONE, BROKEN, REPLACED, AGAIN = 0, 1, 7, 8


class Replaced(Exception):  # noqa: N818  # not an error of this process
    """Another process has taken the training over."""


class EmittingProcess:
    """One life of an emitter."""

    def __init__(self, emitter: Emitter, options: argparse.Namespace) -> None:
        self._emitter = emitter
        self._options = options
        self._report = ReportFile(options.report)
        self._begun = Begun(options.report.parent, options.emitter)
        self._at = options.at
        self._pending: deque[tuple[Acknowledgement, Report]] = deque()
        self._monitor: OwnershipMonitor | None = None
        self._is_replaced = False
        self._due = time.monotonic()
        threading.Thread(target=self._watch, daemon=True).start()

    def run(self) -> int:
        """Emit training after training; the exit code."""
        number = self._options.training
        while self._at < self._options.events:
            planned = training(self._options.seed, self._options.emitter, number)
            is_continued = self._begun.is_begun(number)
            if not self._owns_for_good:
                self._begun.note(number, self._emitter.log.connect(PATIENCE_S).ends())
            self._report.write(Report(self._emitter.source, number, self._at, {}, begins=True))
            since = self._begun.bound(number)
            if not self._run_training(number, planned, since, is_continued=is_continued):
                return AGAIN
            number += 1
        self._settle(0)
        return DONE

    def _run_training(
        self, number: int, planned: list[Planned], since: Offsets, *, is_continued: bool
    ) -> bool:
        """Emit what the log does not have of it yet; whether that is all of it then."""
        subjects = list(by_stream(planned))
        histories = self._read_back(subjects, since) if is_continued else {}
        counts = {subject: len(one.events) for subject, one in histories.items()}
        left: list[Planned] = []
        for one in planned:
            counts[one.subject] = counts.get(one.subject, 0) - 1
            if counts[one.subject] < 0:
                left.append(one)
        self._at += len(planned) - len(left)
        self._emit(number, left, histories, since, owner=planned[0].subject)
        # Also of a training that this process began: a predecessor that wakes up before it notices
        # that it was replaced may continue it, and open streams in a later epoch.
        if not left or (self._options.claim_once and not is_continued):
            return True
        self._settle(0)
        after = self._read_back(subjects, since)
        return sum(len(item.events) for item in after.values()) == len(planned)

    def _emit(
        self,
        number: int,
        left: list[Planned],
        histories: dict[str, StreamHistory],
        since: Offsets,
        owner: str,
    ) -> None:
        """In batches; the training's own stream is claimed first."""
        first = next((item for item in left if item.subject == owner), None)
        training_id = stream_owner(owner)
        if first is not None and not self._owns_for_good:
            history = histories.get(owner) or StreamHistory(owner)
            claimed = claim(self._emitter, first.payload, history, since, timeout_s=PATIENCE_S)
            self._monitor = claimed.monitor
            left.remove(first)
            self._at += 1
        streams = {
            subject: self._emitter.stream(
                subject,
                None if subject == owner and first else _existing(histories.get(subject)),
                training_id=training_id,
            )
            for subject in dict.fromkeys(item.subject for item in left)
        }
        for start in range(0, len(left), BATCH):
            batch = left[start : start + BATCH]
            self._wait_for_turn(len(batch))
            for item in batch:
                acknowledgement = streams[item.subject].emit(item.payload)
            self._at += len(batch)
            points = {item.subject: _pair(streams[item.subject].point) for item in batch}
            report = Report(self._emitter.source, number, self._at, points)
            self._pending.append((acknowledgement, report))
            # Every other one is waited for at once: an acknowledgement too early is then seen.
            self._settle(IN_FLIGHT if start // BATCH % 2 else 0)
        # Whoever continues begins at the training begun last, so this one must be whole by then.
        self._settle(0)
        for stream in streams.values():
            stream.close()

    @property
    def _owns_for_good(self) -> bool:
        """Whether one claim is enough, as for a trainer's rollouts: the log may be away then."""
        return self._options.claim_once and self._monitor is not None

    def _wait_for_turn(self, size: int) -> None:
        """Until the driver lets us go on, at the pace asked for."""
        while self._at >= int(self._options.gate.read_text() or 0):
            self._settle(0)
            time.sleep(0.01)
        if self._options.rate:
            self._due = max(self._due, time.monotonic() - 1.0) + size / self._options.rate
            time.sleep(max(0.0, self._due - time.monotonic()))

    def _settle(self, in_flight: int) -> None:
        """Wait for acknowledgements until so many batches are left, and write them down."""
        while len(self._pending) > in_flight:
            acknowledgement, report = self._pending.popleft()
            acknowledgement.wait(PATIENCE_S)
            self._report.write(report)
        if self._is_replaced:
            raise Replaced

    def _read_back(self, subjects: list[str], since: Offsets) -> dict[str, StreamHistory]:
        deadline = time.monotonic() + PATIENCE_S
        self._emitter.flush(PATIENCE_S)
        while True:
            try:
                self._emitter.log.wait_shipped(PATIENCE_S)
                return self._emitter.log.read_back_many(subjects, since, timeout_s=PATIENCE_S)
            except UnreachableError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def _watch(self) -> None:
        while True:
            time.sleep(self._options.watch_every)
            try:
                if self._monitor is not None:
                    self._monitor.check()
            except ClaimLostError:
                self._is_replaced = True
            except CuaTrainError:
                continue  # the log is away, or broken: the emitter tells


def _pair(point: StreamPoint) -> tuple[int, int]:
    return point.epoch, point.sequence


def _existing(history: StreamHistory | None) -> StreamHistory | None:
    return history if history is not None and history.exists else None


def main() -> int:
    """The command line; the environment describes the installation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--emitter", type=int, required=True)
    parser.add_argument("--events", type=int, required=True, help="to emit in all its lives")
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("--gate", type=Path, required=True, help="a file: how far it may go now")
    parser.add_argument("--training", type=int, default=0, help="where it goes on")
    parser.add_argument("--at", type=int, default=0, help="events before that training")
    parser.add_argument("--rate", type=float, default=0.0, help="events per second")
    parser.add_argument("--claim-once", action="store_true")
    parser.add_argument("--watch-every", type=float, default=2.0, help="seconds")
    try:
        with Emitter.open() as emitter:
            code = EmittingProcess(emitter, parser.parse_args()).run()
            # Longer than the 30 s of `with`: a killed Kafka on a busy machine takes as long to come
            # back, and nobody else would send what the last process leaves in the spool.
            emitter.close(PATIENCE_S)
            return code
    except (Replaced, ClaimLostError) as error:
        sys.stderr.write(f"replaced: {error}\n")
        return REPLACED
    except LogBrokenError as error:
        sys.stderr.write(f"{error}\n")
        return BROKEN
    except UnreachableError as error:
        sys.stderr.write(f"{error}\n")
        return AGAIN


if __name__ == "__main__":
    sys.exit(main())
