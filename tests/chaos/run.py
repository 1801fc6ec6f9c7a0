"""One run over one log: the actors, the schedule, and what must hold afterwards."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.chaos.acknowledged import Reports
from tests.chaos.checks import Findings, check
from tests.chaos.database import Database
from tests.chaos.installation import Disk, Stage
from tests.chaos.processes import ChaosError, Emitters, Projectors
from tests.chaos.schedule import Disturbance, Kind, draw
from tests.chaos.strike import MISSED, Striker
from tests.support.kafka import KafkaService

EMITTERS, PROJECTORS = 3, 2
AHEAD = 2
"""Disturbances that emitters may run ahead of the last one that has struck."""
LAST_GATE = 0.99
"""Share of the events that is not emitted before the last disturbance."""
STALLED_S = 180.0
FOUND_S = 15.0
TICK_S = 0.02
CATCH_UP_S = 1_800.0

Show = Callable[[str], None]


class Options(NamedTuple):
    """Of one run."""

    seed: int
    kills: int
    events: int
    with_kafka: bool
    folder: Path
    mount: bool = True
    """A small disk for CUA_HOME, where this user may."""


class Outcome(NamedTuple):
    """What a run did and found."""

    hits: Counter[Kind]
    fenced_exits: int
    """Processes that noticed that they had been replaced, and stopped."""
    findings: Findings
    verify: str
    seconds: float


def run(options: Options, show: Show) -> Outcome:
    """Raises ChaosError for a process that failed by itself or a run that stands still."""
    began = time.monotonic()
    with ExitStack() as stack:
        database = Database(options.folder / "postgres")
        stack.callback(database.close)
        kafka = stack.enter_context(KafkaService()) if options.with_kafka else None
        stage = Stage(
            options.folder, kafka.bootstrap_servers if kafka is not None else None, database.url
        )
        for folder in (stage.reports, stage.logs):
            folder.mkdir()
        disk = Disk(stage.home, options.events, mount=options.mount)
        is_good = False
        stack.callback(lambda: disk.close(keep=not is_good))
        reports = Reports(stage.reports)
        shares = [-(-options.events // EMITTERS)] * EMITTERS
        emitters = Emitters(stage, reports, seed=options.seed, shares=shares)
        projectors = Projectors(stage, PROJECTORS)
        stack.callback(projectors.kill_all)
        stack.callback(emitters.kill_all)
        striker = Striker(stage, disk, reports, emitters, projectors, database, kafka)
        schedule = draw(
            options.seed, kills=options.kills, events=options.events, has_kafka=kafka is not None
        )
        _Storm(options, emitters, projectors, reports, striker, show).pass_over(schedule)
        show("everything is emitted; waiting for the projector")
        projectors.tick()
        command(stage, "run", "--once")
        projectors.stop_all(60)
        verified = json.loads(command(stage, "verify", "--json"))
        show("comparing log, tables and acknowledgements")
        findings = check(stage.installation, database.url, reports, options.seed)
        is_good = not findings.sentences and verified["equal"]
        return Outcome(
            striker.hits,
            emitters.num_fenced_exits,
            findings,
            "equal" if verified["equal"] else "different",
            time.monotonic() - began,
        )


class _Storm:
    """The time in which disturbances strike."""

    def __init__(
        self,
        options: Options,
        emitters: Emitters,
        projectors: Projectors,
        reports: Reports,
        striker: Striker,
        show: Show,
    ) -> None:
        self._options, self._emitters, self._projectors = options, emitters, projectors
        self._reports, self._striker, self._show = reports, striker, show
        self._best = 0
        self._moved_at = time.monotonic()

    def pass_over(self, schedule: list[Disturbance]) -> None:
        """Strike all; return once every emitter has finished and nobody is stopped any more."""
        emitters, events = self._emitters, self._options.events
        emitters.open_gates(0)
        emitters.start_all()
        for number, one in enumerate(schedule):
            ahead = schedule[min(number + AHEAD, len(schedule) - 1)].at_event
            # Somewhat beyond, so that batches and shares that differ hold nobody up.
            emitters.open_gates(min(LAST_GATE, ahead / events + 0.005))
            at = self._until(lambda one=one: self._reports.read() >= one.at_event)  # type: ignore[misc]  # bound now
            # A share of what is left, so that writers are at work while it strikes.
            share = at / events
            left = (LAST_GATE - share) / (len(schedule) - number)
            emitters.open_gates(min(LAST_GATE, share + 2 * left))
            began = time.monotonic()
            hit = self._strike(one)
            self._moved_at = time.monotonic()
            self._show(
                f"[{number + 1:3}/{len(schedule)}] at {at:9,}  {one.kind.value:<30} {hit}"
                f" ({time.monotonic() - began:.1f} s)"
            )
        self._striker.end_all()
        emitters.open_gates(1)
        self._until(lambda: len(emitters.finished) == len(emitters.lives))
        self._until(lambda: not emitters.replaced)

    def _strike(self, one: Disturbance) -> str:
        """Again for a while when it found nobody, such as no backend during a recovery."""
        deadline = time.monotonic() + FOUND_S
        while (hit := self._striker.strike(one)) == MISSED and time.monotonic() < deadline:
            self._emitters.tick()
            self._projectors.tick()
            self._striker.tick()
            time.sleep(0.2)
        return hit

    def _until(self, is_over: Callable[[], bool]) -> int:
        """Keep the actors alive until then; events so far. ChaosError when nothing moves."""
        while True:
            self._emitters.tick()
            self._projectors.tick()
            self._striker.tick()
            at = self._reports.read()
            if at > self._best:
                self._best, self._moved_at = at, time.monotonic()
            if is_over():
                return at
            if time.monotonic() - self._moved_at > STALLED_S:
                message = f"nothing was acknowledged for {STALLED_S:.0f} s, at {at:,} events"
                raise ChaosError(message)
            time.sleep(TICK_S)


def command(stage: Stage, *arguments: str) -> str:
    """Stdout of a `cua-project` command. ChaosError when it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "consumers", *arguments],
        env=stage.environment,
        cwd=stage.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=CATCH_UP_S,
    )
    # 4: it found a difference, which is what it was asked for.
    if done.returncode not in {0, 4}:
        message = (
            f"cua-project {' '.join(arguments)} exited {done.returncode}: {done.stderr[-2000:]}"
        )
        raise ChaosError(message)
    return done.stdout
