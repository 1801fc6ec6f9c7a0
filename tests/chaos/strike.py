"""Carries disturbances out on the actors of a run, and undoes those that last a while."""

import signal
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random

import psycopg2

from tests.chaos import torn
from tests.chaos.acknowledged import Reports
from tests.chaos.database import Database, signal_backend
from tests.chaos.installation import Disk, Stage
from tests.chaos.processes import Emitters, Life, Projectors
from tests.chaos.schedule import Disturbance, Kind
from tests.support.kafka import KafkaService

MISSED = "nobody to hit"
ACKNOWLEDGED_S = 1.0
NOTICED_S = 5.0
"""For the first emitter to meet the full disk."""


class Striker:
    """Disturbances of every kind.

    `strike` returns a sentence on whom it hit. What lasts a while ends in `tick`.
    """

    def __init__(
        self,
        stage: Stage,
        disk: Disk,
        reports: Reports,
        emitters: Emitters,
        projectors: Projectors,
        database: Database,
        kafka: KafkaService | None,
    ) -> None:
        self._stage, self._disk, self._reports = stage, disk, reports
        self._emitters, self._projectors = emitters, projectors
        self._database, self._kafka = database, kafka
        self._ends: list[tuple[float, Callable[[], object]]] = []
        self._stopped_backends: list[int] = []
        self._ways: dict[Kind, Callable[[Disturbance], str]] = {
            Kind.KILL_EMITTER: self._emitter,
            Kind.STOP_EMITTER: self._emitter,
            Kind.KILL_SHIPPER: self._shipper,
            Kind.STOP_SHIPPER: self._shipper,
            Kind.KILL_PROJECTOR: self._projector,
            Kind.STOP_PROJECTOR: self._projector,
            Kind.KILL_BACKEND: self._backend,
            Kind.STOP_BACKEND: self._backend,
            Kind.KILL_POSTMASTER: self._postmaster,
            Kind.KILL_KAFKA: self._strike_kafka,
            Kind.STOP_KAFKA: self._strike_kafka,
            Kind.OUTAGE: self._strike_kafka,
            Kind.POWER_LOSS: self._lose_power,
            Kind.TAKE_OVER: self._take_over,
            Kind.FULL_DISK: self._fill_disk,
            Kind.TORN_RECORDS: self._torn_records,
        }
        self.hits: Counter[Kind] = Counter()

    def strike(self, one: Disturbance) -> str:
        """Do it."""
        hit = self._ways[one.kind](one)
        self.hits[one.kind] += hit != MISSED
        return hit

    def _torn_records(self, one: Disturbance) -> str:
        records = torn.strangers_records(self._reports.acknowledged, Random(one.victim))
        with ThreadPoolExecutor(1) as pool:
            appending = pool.submit(torn.append, self._stage.installation, records)
            # It waits for a writer that is stopped in a commit, until that is continued.
            while not appending.done():
                self.tick()
                time.sleep(0.02)
            is_there = appending.result()
        return f"{len(records)} records" if is_there else MISSED

    def _postmaster(self, _: Disturbance) -> str:
        self._kill_postmaster()
        self._database.restart()
        return "restarted"

    def _emitter(self, one: Disturbance) -> str:
        return self._signal(self._an_emitter(one), one)

    def _shipper(self, one: Disturbance) -> str:
        return self._signal(self._emitters.shipper() or self._an_emitter(one), one)

    def _projector(self, one: Disturbance) -> str:
        return self._signal(self._the_projector(one), one)

    def tick(self) -> None:
        """End what has lasted long enough."""
        now = time.monotonic()
        for entry in [entry for entry in self._ends if entry[0] <= now]:
            self._ends.remove(entry)
            entry[1]()

    def end_all(self) -> None:
        """Wait until nothing lasts any more."""
        while self._ends:
            time.sleep(max(0.0, min(at for at, _ in self._ends) - time.monotonic()))
            self.tick()

    def _later(self, seconds: float, end: Callable[[], object]) -> None:
        self._ends.append((time.monotonic() + seconds, end))

    def _an_emitter(self, one: Disturbance) -> Life | None:
        running = sorted(self._emitters.running())
        return self._emitters.lives[running[one.victim % len(running)]] if running else None

    def _the_projector(self, one: Disturbance) -> Life | None:
        """The one with the lease; another one now and then."""
        lives = self._projectors.lives
        try:
            holder = self._database.holder() if one.victim % 4 else None
        except psycopg2.Error:
            holder = None
        chosen = [life for life in lives if life.process.pid == holder] or lives
        return chosen[one.victim % len(chosen)] if chosen else None

    def _signal(self, life: Life | None, one: Disturbance) -> str:
        if life is None:
            return MISSED
        if not one.seconds:
            if one.victim % 2:
                self._await_acknowledgement(life)
            life.process.kill()
            life.process.wait()
            return life.name
        life.process.send_signal(signal.SIGSTOP)
        self._later(one.seconds, lambda: life.process.send_signal(signal.SIGCONT))
        return f"{life.name} for {one.seconds} s"

    def _await_acknowledgement(self, life: Life) -> None:
        """Until the next one: what was acknowledged too early is lost by a kill right after it."""
        path = self._stage.reports / f"{life.name.removeprefix('emitter-')}.jsonl"
        size = path.stat().st_size if path.exists() else None
        deadline = time.monotonic() + ACKNOWLEDGED_S
        while size is not None and time.monotonic() < deadline:
            if path.stat().st_size > size:
                return
            time.sleep(0.0002)

    def _backend(self, one: Disturbance) -> str:
        try:
            found = self._database.backends()
        except psycopg2.Error:
            return MISSED
        if not found:
            return MISSED
        pid = found[one.victim % len(found)]
        if not one.seconds:
            return "crash recovery" if signal_backend(pid, signal.SIGKILL) else MISSED
        if not signal_backend(pid, signal.SIGSTOP):
            return MISSED
        self._stopped_backends.append(pid)
        self._later(one.seconds, lambda: signal_backend(pid, signal.SIGCONT))
        return f"for {one.seconds} s"

    def _kill_postmaster(self) -> None:
        self._database.kill()
        # A stopped backend would not see that its postmaster is gone, and keep the data locked.
        while self._stopped_backends:
            signal_backend(self._stopped_backends.pop(), signal.SIGCONT)

    def _strike_kafka(self, one: Disturbance) -> str:
        kafka = self._kafka
        assert kafka is not None
        if not kafka.is_running:
            return MISSED
        if one.kind is Kind.STOP_KAFKA:
            kafka.send_signal(signal.SIGSTOP)
            self._later(one.seconds, lambda: kafka.send_signal(signal.SIGCONT))
            return f"for {one.seconds} s"
        kafka.kill()
        if one.seconds:
            self._later(one.seconds, self._restart_kafka)
            return f"for {one.seconds} s"
        kafka.start()
        return "restarted"

    def _restart_kafka(self) -> None:
        # After a power cut meanwhile it runs already.
        if self._kafka is not None and not self._kafka.is_running:
            self._kafka.start()

    def _lose_power(self, one: Disturbance) -> str:
        self._emitters.kill_all()
        self._projectors.kill_all()
        self._kill_postmaster()
        if self._kafka is not None:
            self._kafka.kill()
        is_torn = torn.tear_wal(self._stage.installation.local_log_path, Random(one.victim))
        self._database.restart()
        if self._kafka is not None:
            self._kafka.start()
        return "half a commit in the WAL" if is_torn else "no WAL to tear"

    def _take_over(self, one: Disturbance) -> str:
        running = sorted(self._emitters.running())
        if not running:
            return MISSED
        life = self._emitters.replace(running[one.victim % len(running)])
        self._later(one.seconds, lambda: life.process.send_signal(signal.SIGCONT))
        return f"from {life.name}, which wakes after {one.seconds} s"

    def _fill_disk(self, one: Disturbance) -> str:
        emitters = self._emitters
        before = set(emitters.running())
        emitters.disk_is_full = True
        # Else 16 MiB fit into the WAL that is there before anybody notices.
        torn.shrink_wal(self._stage.installation.local_log_path)
        if self._disk.is_mounted:
            self._disk.fill()
        else:
            emitters.forbid_growth()
        deadline = time.monotonic() + NOTICED_S
        while set(emitters.running()) == before and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(one.seconds)
        if self._disk.is_mounted:
            self._disk.make_room()
        emitters.disk_is_full = False
        refused = before - set(emitters.running())
        return f"for {one.seconds} s, {len(refused)} of {len(before)} emitters gave up"
