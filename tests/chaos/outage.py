"""A trainer's emitter at 1,000 events/s while Kafka is away: its memory, and what arrives after it.

Memory is the process's resident set, sampled; growth is counted from the last moment before the
outage, after a warm-up under the same load.
"""

import signal
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.chaos.acknowledged import Reports
from tests.chaos.checks import fold_log, lost_events
from tests.chaos.installation import Stage
from tests.chaos.processes import ChaosError, Emitters, Life
from tests.chaos.run import Show
from tests.support.kafka import KafkaService

RATE = 1_000.0
WARM_UP_S = 20
LIMIT_MIB = 64.0
LIMIT_SECONDS = 600
"""The bound is 64 MiB for ten minutes."""
NOISE_MIB = 8.0
"""Of an allocator that holds a training's payloads twice for a moment; part of the bound of a
shorter outage, which otherwise scales with its length."""
DRAIN_S = 900.0
SEED = 1


class Measured(NamedTuple):
    """Of one outage."""

    seconds: int
    before_mib: float
    grown_mib: float
    """During the outage, at most."""
    drained_mib: float
    """Until everything was shipped, at most."""
    limit_mib: float
    acknowledged: int
    lost: int

    @property
    def is_good(self) -> bool:
        """Within both bounds, and complete."""
        within = self.grown_mib <= self.limit_mib and self.drained_mib <= LIMIT_MIB
        return within and not self.lost

    def sentence(self) -> str:
        """One line."""
        return (
            f"{self.seconds} s without Kafka at {RATE:,.0f} events/s: the emitter's memory was"
            f" {self.before_mib:.0f} MiB, grew by {self.grown_mib:.1f} MiB (at most"
            f" {self.limit_mib:.1f}) and by {self.drained_mib:.1f} MiB until all was shipped;"
            f" {self.acknowledged:,} events acknowledged, {self.lost:,} lost"
        )


def limit_mib(seconds: int) -> float:
    """How much it may grow in an outage of that length."""
    return min(LIMIT_MIB, NOISE_MIB + LIMIT_MIB * seconds / LIMIT_SECONDS)


def measure(folder: Path, seconds: int, show: Show) -> Measured:
    """Run it. ChaosError when the emitter ends or slows down."""
    with ExitStack() as stack:
        kafka = stack.enter_context(KafkaService())
        stage = Stage(folder, kafka.bootstrap_servers, "postgresql://nobody@127.0.0.1:1/none")
        for each in (stage.reports, stage.logs, stage.home):
            each.mkdir()
        reports = Reports(stage.reports)
        events = int(RATE * (WARM_UP_S + seconds + 10))
        emitters = Emitters(
            stage, reports, seed=SEED, shares=[events], more=["--rate", str(RATE), "--claim-once"]
        )
        stack.callback(emitters.kill_all)
        emitters.open_gates(1)
        emitters.start_all()
        life = emitters.lives[0]
        _watch(life, reports, WARM_UP_S)
        before, at = resident_mib(life), reports.read()
        show(f"outage: Kafka is away for {seconds} s, at {at:,} events, {before:.0f} MiB")
        kafka.kill()
        grown = _watch(life, reports, seconds) - before
        emitted = reports.read() - at
        show(f"outage: over; {emitted:,} events in it, {grown:+.1f} MiB")
        if emitted < RATE * seconds * 0.9:
            message = f"only {emitted:,} events were emitted in {seconds} s without Kafka"
            raise ChaosError(message)
        kafka.start()
        drained = _watch(life, reports, DRAIN_S) - before
        if life.process.poll() != 0:
            message = f"the emitter had not shipped everything after {DRAIN_S:.0f} s"
            raise ChaosError(message)
        reports.read()
        lost = lost_events(reports.acknowledged, fold_log(stage.installation).seen)
        return Measured(
            seconds,
            before,
            grown,
            max(grown, drained),
            limit_mib(seconds),
            reports.num_acknowledged,
            len(lost),
        )


def _watch(life: Life, reports: Reports, seconds: float) -> float:
    """The largest resident set in that time, or until the process ends."""
    deadline, most = time.monotonic() + seconds, 0.0
    while time.monotonic() < deadline and life.process.poll() is None:
        most = max(most, resident_mib(life))
        reports.read()
        time.sleep(0.2)
    code = life.process.poll()
    if code not in {None, 0}:
        reason = signal.Signals(-code).name if code and code < 0 else f"exit {code}"
        message = f"the emitter ended: {reason}: {life.last_words()}"
        raise ChaosError(message)
    return most


def resident_mib(life: Life) -> float:
    """Its resident set; 0 when it has ended."""
    try:
        status = Path(f"/proc/{life.process.pid}/status").read_text()
    except OSError:
        return 0.0
    found = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(found[0].split()[1]) / 1024 if found else 0.0
