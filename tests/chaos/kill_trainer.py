"""Kills a trainer with SIGKILL at random moments and reruns it until it completes, then checks.

python -m tests.chaos.kill_trainer --kills 20 [--model-name demo]
"""

import argparse
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.invariants import violations

GROUPS, GROUP_SIZE = 4, 4
SHARE = 0.7
"""Of an undisturbed run's events that the killed runs may emit together, on average."""
IN_FLIGHT = 48
"""Events with which a run begins after a kill: it ends what the last one left open."""
POLL_S = 0.01
"""Between looks at the log."""


def command(name: str, model: str, steps: int) -> list[str]:
    """The command that is given again and again."""
    settings = {
        "training-name": name,
        "model-name": model,
        "num-steps": steps,
        "group-size": GROUP_SIZE,
        "groups-per-batch": GROUPS,
        "eval-episodes": 16,
        "eval-every": 3,
        "save-every": 5,
        "max-concurrent-rollouts": 16,
    }
    if model == "demo":
        del settings["model-name"]
    flags = [part for field, value in settings.items() for part in (f"--{field}", str(value))]
    return [sys.executable, "-m", "producer", "run", *flags, "--no-monitor", "--json"]


def tail(environment: dict[str, str], name: str) -> list[dict[str, Any]]:
    """Everything of the training, as `cua-project tail` tells it."""
    output = subprocess.run(
        [
            sys.executable,
            "-m",
            "consumers",
            "tail",
            "--json",
            "--offset",
            "start",
            "--training",
            name,
        ],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [json.loads(line) for line in output.splitlines()]


def projected(environment: dict[str, str]) -> dict[str, Any]:
    """What `cua-project` makes of the log.

    Parked records, gaps, refused records, and whether the tables equal a replay.
    """
    for arguments in (["run", "--once"], ["status", "--json"], ["verify", "--json"]):
        done = subprocess.run(
            [sys.executable, "-m", "consumers", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            return {"failed": arguments, "stderr": done.stderr[-2000:]}
        if arguments[0] == "status":
            status = json.loads(done.stdout)
    return {
        **{name: status[name] for name in ("parked", "gaps", "fenced", "duplicates")},
        "equal": json.loads(done.stdout)["equal"],
    }


def appended(home: Path) -> int:
    """Events in the local log; 0 before there is one."""
    path = home / "log" / "log.sqlite3"
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=5)) as log:
            return int(log.execute("SELECT next_position FROM head").fetchone()[0]) - 1
    except sqlite3.OperationalError:
        return 0


def measure(environment: dict[str, str], run: list[str]) -> tuple[float, int]:
    """(seconds to the first event, events in all) of an undisturbed run."""
    home = Path(environment["CUA_HOME"])
    before, begun, started_s = appended(home), time.monotonic(), 0.0
    with subprocess.Popen(
        run, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while process.poll() is None:
            if not started_s and appended(home) > before:
                started_s = time.monotonic() - begun
            time.sleep(POLL_S)
    if process.returncode:
        message = f"the undisturbed run exited {process.returncode}"
        raise RuntimeError(message)
    return started_s, appended(home) - before


def wait_for_events(
    process: subprocess.Popen[Any], home: Path, until: int, at_most_s: float
) -> bool:
    """Whether the process still runs when the log has `until` events, or after `at_most_s`."""
    deadline = time.monotonic() + at_most_s
    while process.poll() is None:
        if appended(home) >= until or time.monotonic() > deadline:
            return True
        time.sleep(POLL_S)
    return False


def kill_until_done(
    environment: dict[str, str], *, kills: int, seed: int, model: str, steps: int
) -> tuple[list[str], list[str], dict[str, Any]]:
    """(last event of each trainer that was killed, violations, the last run's summary)."""
    rng, name = random.Random(seed), f"killed-{seed}"
    home = Path(environment["CUA_HOME"])
    hit: list[str] = []
    run = command(name, model, steps)
    started_s, whole = measure(environment, [*run[:-1], "--training-name", f"{name}-measure"])
    for _ in range(kills):
        with (
            tempfile.TemporaryFile("w+") as said,
            subprocess.Popen(
                run, env=environment, stdout=subprocess.DEVNULL, stderr=said
            ) as process,
        ):
            # A third falls into the start-up, which is lived through every time; the others share a
            # part of the work. Counted in events: seconds say little on a busy machine.
            if rng.random() < 1 / 3:
                until, at_most_s = 1, rng.uniform(0.3, started_s)
            else:
                most = int(3 * SHARE * whole / kills) + IN_FLIGHT
                until, at_most_s = rng.randint(1, most), 600.0
            if wait_for_events(process, home, appended(home) + until, at_most_s):
                process.kill()
                process.wait()
                said.seek(0)
                hit.append(" ".join(said.read().splitlines()[-1:])[:40])
    last = subprocess.run(run, env=environment, capture_output=True, text=True, check=False)
    if last.returncode:
        return hit, [f"the last run exited {last.returncode}: {last.stderr[-2000:]}"], {}
    found = violations(
        tail(environment, name), num_steps=steps, groups=GROUPS, group_size=GROUP_SIZE
    )
    return hit, found, json.loads(last.stdout.splitlines()[-1])


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--model-name", default="oracle")
    parser.add_argument(
        "--home", type=Path, help="a CUA_HOME whose policy is warm; default: a fresh one"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "CUA_HOME": str(arguments.home or home)}
        hit, found, summary = kill_until_done(
            environment,
            kills=arguments.kills,
            seed=arguments.seed,
            model=arguments.model_name,
            steps=arguments.steps,
        )
        tables = projected(environment)
        subprocess.run(
            [sys.executable, "-m", "consumers", "database", "stop"],
            env=environment,
            capture_output=True,
            check=False,
        )
    sys.stdout.write(
        json.dumps(
            {
                "kills": len(hit),
                "after": hit,
                "violations": found,
                "tables": tables,
                "summary": summary,
            },
            indent=1,
        )
        + "\n"
    )
    return 4 if found or not tables.get("equal") or tables["parked"] or tables["gaps"] else 0


if __name__ == "__main__":
    sys.exit(main())
