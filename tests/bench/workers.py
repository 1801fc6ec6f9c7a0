"""Throughput of 1 to 8 workers on phones of 300 ms, and a training whose workers are killed.

`python -m tests.bench.workers [--kills 20]`. Needs Java and Maven, as tests with Kafka do.
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
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from schemas.installation import read_installation
from tests.chaos.checks import read_log
from tests.support.kafka import KafkaService
from tests.support.paths import ROOT

ACT_S = 0.3
COUNTS = (1, 2, 4, 8)
ROLLOUTS_EACH = 16
"""Of a step, for each worker."""
SEED = 1
TASKS = {"source_type": "demo_training"}


def variables(folder: Path, kafka: KafkaService, prefix: str, host: str) -> dict[str, str]:
    """Of the processes of one host."""
    return {
        **os.environ,
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


def kill_workers(folder: Path, kafka: KafkaService, kills: int) -> None:
    """Four workers; one is killed every few seconds, and another one comes."""
    prefix, draws, is_over = "kills-", random.Random(SEED), threading.Event()
    num_killed = 0

    def kill(running: list["subprocess.Popen[bytes]"]) -> None:
        nonlocal num_killed
        while num_killed < kills and not is_over.wait(draws.uniform(2, 6)):
            at = draws.randrange(len(running))
            running[at].send_signal(signal.SIGKILL)
            running[at].wait()
            num_killed += 1
            running[at] = start_worker(variables(folder, kafka, prefix, f"again-{num_killed}"))

    steps, rollouts = 6, 16
    with workers(folder, kafka, prefix, 4) as running, ExitStack() as stack:
        killer = threading.Thread(target=kill, args=(running,))
        killer.start()
        stack.callback(killer.join)
        stack.callback(is_over.set)
        while num_killed < kills:
            train(folder, kafka, prefix, rollouts=rollouts, steps=steps, under_way=8)
            steps += 6
    steps -= 6
    ended = Counter(event["type"] for event in recorded(folder, kafka, prefix))
    expected = steps * rollouts + steps // 6
    print(  # noqa: T201  # the command's output
        f"{num_killed} workers killed: {ended['cua.rollout.created']} rollouts begun,"
        f" {ended['cua.rollout.cancelled']} cancelled with their worker,"
        f" {ended['cua.rollout.failed']} failed, {ended['cua.rollout.finished']} finished of"
        f" {expected} planned"
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=0, help="kill workers instead")
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="cua-workers-") as folder, KafkaService() as kafka:
        if arguments.kills:
            kill_workers(Path(folder), kafka, arguments.kills)
        else:
            measure_throughput(Path(folder), kafka)


if __name__ == "__main__":
    main()
