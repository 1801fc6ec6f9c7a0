"""Throughput of 1 to 8 workers on phones of 300 ms, and a training whose workers are killed.

`python -m tests.bench.workers [--kills 20]`. Needs Java and Maven, as tests with Kafka do. Every
kill hits a worker that has begun a rollout and not ended it. Afterwards rollouts are counted in the
log, and the tables are verified; exit 1 if a rollout is lost, doubled, failed or scored 0 (without
noise the scripted policy solves every task), or if the tables differ.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from consumers.embedded_postgres.postgres import stop_running
from consumers.log.open import open_reader
from schemas.catalogue import TOPICS
from schemas.installation import Installation, read_installation
from tests.chaos.checks import read_log
from tests.support.kafka import KafkaService
from tests.support.paths import ROOT

ACT_S = 0.3
COUNTS = (1, 2, 4, 8)
ROLLOUTS_EACH = 16
"""Of a step, for each worker."""
SEED = 1
PAUSE_S: Final = (1.0, 4.0)
"""Between two kills, before the wait for a worker with a rollout."""
ENDS: Final = frozenset(f"cua.rollout.{end}" for end in ("finished", "failed", "cancelled"))
TASKS = {"source_type": "demo_training"}


def variables(folder: Path, kafka: KafkaService, prefix: str, host: str) -> dict[str, str]:
    """Of the processes of one host; their tables are in an embedded database."""
    return {
        **{name: value for name, value in os.environ.items() if name != "DATABASE_URL"},
        "PYTHONPATH": str(ROOT),
        "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "CUA_TOPIC_PREFIX": prefix,
        "CUA_BLOBS": str(folder / "blobs"),
        "CUA_HOME": str(folder / prefix / host),
    }


def start_worker(environ: dict[str, str]) -> "subprocess.Popen[bytes]":
    """One that runs one rollout at a time."""
    words = ["-m", "tests.support.slow_worker", str(ACT_S), "worker", "--quiet"]
    return subprocess.Popen(
        [sys.executable, *words, "--max-concurrent-rollouts", "1"], env=environ, cwd=ROOT
    )


@contextmanager
def workers(
    folder: Path, kafka: KafkaService, prefix: str, number: int
) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """So many of them; killed at the end."""
    started = [
        start_worker(variables(folder, kafka, prefix, f"worker-{at}")) for at in range(number)
    ]
    try:
        yield started
    finally:
        for one in started:
            one.kill()
            one.wait()


def train(
    folder: Path, kafka: KafkaService, prefix: str, *, rollouts: int, steps: int, under_way: int
) -> subprocess.CompletedProcess[bytes]:
    """A training of the scripted policy whose rollouts are run by workers."""
    settings: dict[str, object] = {
        "training-name": "bench",
        "model-name": "oracle",
        "oracle-noise": 0,
        "rollouts-by": "workers",
        "num-steps": steps,
        "groups-per-batch": rollouts // 4,
        "group-size": 4,
        "max-concurrent-rollouts": under_way,
        "eval-every": 0,
        "eval-episodes": 1,
        "save-every": 0,
        "tasks": json.dumps(TASKS),
    }
    words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    return subprocess.run(
        [sys.executable, "-m", "producer", "run", "--skip-baseline", "--no-monitor", *words],
        env=variables(folder, kafka, prefix, "trainer"),
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def recorded(folder: Path, kafka: KafkaService, prefix: str) -> list[dict[str, Any]]:
    """Every event."""
    installation = read_installation(variables(folder, kafka, prefix, "trainer"))
    return [json.loads(value) for _, value in read_log(installation)]


def turns_per_second(events: list[dict[str, Any]]) -> float:
    """Between the first and the last tenth of the turns, when every worker is busy."""
    times = sorted(
        datetime.fromisoformat(event["time"]).timestamp()
        for event in events
        if event["type"] == "cua.rollout.turn_taken"
    )
    inner = times[len(times) // 10 : -len(times) // 10]
    return (len(inner) - 1) / (inner[-1] - inner[0])


def measure_throughput(folder: Path, kafka: KafkaService) -> None:
    """Prints a line for each number of workers."""
    alone = 0.0
    for number in COUNTS:
        prefix = f"n{number}-"
        with workers(folder, kafka, prefix, number):
            rollouts = ROLLOUTS_EACH * number
            train(folder, kafka, prefix, rollouts=rollouts, steps=1, under_way=3 * number)
        rate = turns_per_second(recorded(folder, kafka, prefix))
        alone = alone or rate
        print(  # noqa: T201  # the command's output
            f"{number} workers: {rate:6.2f} turns/s, {rate / alone:5.2f} times one worker's,"
            f" {rate / alone / number:.0%} of linear",
            flush=True,
        )


class BegunRollouts:
    """The rollouts that each process has begun and not ended, as the log has it.

    For one thread. `close` is idempotent.
    """

    def __init__(self, installation: Installation) -> None:
        self._reader = open_reader(installation)
        self._topic = installation.topic_prefix + TOPICS["rollout"]
        self._is_reading = False
        self._pid_of: dict[str, int] = {}
        """By the rollout's stream, the newest last."""
        self.close = self._reader.close

    def newest_of(self, pids: Collection[int]) -> tuple[int, str] | None:
        """One of these processes and the stream of its rollout; None while they have none."""
        if not self._is_reading:
            places = [at for at in self._reader.partitions() if at.topic == self._topic]
            if not places:
                return None
            self._reader.seek(self._reader.beginning_offsets(places))
            self._is_reading = True
        while records := self._reader.poll(5_000, 0.05):
            for record in records:
                self._read(json.loads(record.value))
        theirs = [(pid, subject) for subject, pid in self._pid_of.items() if pid in pids]
        return theirs[-1] if theirs else None

    def _read(self, event: dict[str, Any]) -> None:
        subject = event["subject"]
        if event["type"] == "cua.rollout.started":
            self._pid_of[subject] = int(event["source"].split("/")[3])
        elif event["type"] in ENDS:
            self._pid_of.pop(subject, None)


def kill_workers(folder: Path, kafka: KafkaService, kills: int) -> bool:
    """Four workers; one that has a rollout is killed every few seconds, and another one comes.

    Returns whether everything is as if none had been killed.
    """
    prefix, draws, is_over = "kills-", random.Random(SEED), threading.Event()
    trainer = variables(folder, kafka, prefix, "trainer")
    killed: list[str] = []
    """Streams of the rollouts that were under way."""

    def kill(running: list["subprocess.Popen[bytes]"]) -> None:
        with closing(BegunRollouts(read_installation(trainer))) as begun:
            while len(killed) < kills and not is_over.wait(draws.uniform(*PAUSE_S)):
                while (found := begun.newest_of([one.pid for one in running])) is None:
                    if is_over.wait(0.05):
                        return
                pid, subject = found
                at = next(at for at, one in enumerate(running) if one.pid == pid)
                running[at].send_signal(signal.SIGKILL)
                running[at].wait()
                killed.append(subject)
                running[at] = start_worker(variables(folder, kafka, prefix, f"again-{len(killed)}"))

    steps, rollouts = 6, 16
    with workers(folder, kafka, prefix, 4) as running, ExitStack() as stack:
        killer = threading.Thread(target=kill, args=(running,))
        killer.start()
        stack.callback(killer.join)
        stack.callback(is_over.set)
        while True:
            train(folder, kafka, prefix, rollouts=rollouts, steps=steps, under_way=8)
            if len(killed) >= kills or not killer.is_alive():
                break
            steps += 6
    counts = count_rollouts(recorded(folder, kafka, prefix), killed)
    planned = steps * rollouts + steps // 6
    verified = verify(trainer)
    print(f"{len(killed)} workers killed, {planned} rollouts planned: {counts}; verify {verified}")  # noqa: T201  # the command's output
    is_whole = counts.places == counts.finished == planned
    wrong = counts.doubled + counts.failed + counts.zero
    return len(killed) == kills and is_whole and wrong == 0 and verified == 0


class Counts(NamedTuple):
    """What became of the rollouts."""

    places: int
    """(step or evaluation, group, place in it): rollouts that were planned and created."""
    cancelled: int
    """Attempts that were cancelled with their worker."""
    killed_cancelled: int
    """Of these, attempts that were under way in a worker when it was killed."""
    finished: int
    doubled: int
    """Places that finished more than once."""
    failed: int
    zero: int
    """Finished with the reward 0."""

    def __str__(self) -> str:
        return ", ".join(f"{value} {name}" for name, value in self._asdict().items())


def count_rollouts(events: list[dict[str, Any]], killed: list[str]) -> Counts:
    """`killed`: streams of rollouts under way in workers that were killed."""

    def of(kind: str) -> dict[str, dict[str, Any]]:
        kind = f"cua.rollout.{kind}"
        return {event["subject"]: event["data"] for event in events if event["type"] == kind}

    created, finished, cancelled = of("created"), of("finished"), of("cancelled")
    place_of = {
        subject: (data["source_id"], data["group_num"], data["env_index"])
        for subject, data in created.items()
    }
    times = Counter(place_of[subject] for subject in finished)
    return Counts(
        places=len({*place_of.values()}),
        cancelled=len(cancelled),
        killed_cancelled=len(cancelled.keys() & {*killed}),
        finished=len(times),
        doubled=sum(number > 1 for number in times.values()),
        failed=len(of("failed")),
        zero=sum(data["reward"] == 0 for data in finished.values()),
    )


def verify(environ: dict[str, str]) -> int:
    """The exit code of `cua-project verify` on an embedded database filled from this log."""
    try:
        for words in (["run", "--once"], ["verify"]):
            done = subprocess.run(
                [sys.executable, "-m", "consumers", *words], env=environ, cwd=ROOT, check=False
            )
    finally:
        stop_running(read_installation(environ).database_dir)
    return done.returncode


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=0, help="kill workers instead")
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="cua-workers-") as folder, KafkaService() as kafka:
        if arguments.kills:
            return 0 if kill_workers(Path(folder), kafka, arguments.kills) else 1
        measure_throughput(Path(folder), kafka)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
