"""Kills a trainer with SIGKILL at random moments and runs the same command again, until it completes; then checks the log.

python -m tests.chaos.kill_trainer --kills 20 [--model-name demo]
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.chaos.invariants import violations

GROUPS, GROUP_SIZE = 4, 4


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
        [sys.executable, "-m", "consumers", "tail", "--json", "--offset", "start", "--training", name],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [json.loads(line) for line in output.splitlines()]


def kill_until_done(environment: dict[str, str], *, kills: int, seed: int, model: str, steps: int) -> tuple[int, list[str], dict[str, Any]]:
    """(kills that hit a living trainer, violations, the last run's summary)."""
    rng, name, hit = random.Random(seed), f"killed-{seed}", 0
    run = command(name, model, steps)
    begun = time.monotonic()
    subprocess.run(
        [*run[:-1], "--training-name", f"{name}-measure"], env=environment, check=True, capture_output=True, stdin=subprocess.DEVNULL
    )
    whole_s = time.monotonic() - begun
    for _ in range(kills):
        with subprocess.Popen(run, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            # A part of the time that is left on average, start-up included: kills fall into every phase.
            try:
                process.wait(rng.uniform(0.3, max(1.0, 1.5 + whole_s * 1.5 / max(kills, 1))))
            except subprocess.TimeoutExpired:
                process.kill()
                hit += 1
    last = subprocess.run(run, env=environment, capture_output=True, text=True, check=False)
    if last.returncode:
        return hit, [f"the last run exited {last.returncode}: {last.stderr[-2000:]}"], {}
    found = violations(tail(environment, name), num_steps=steps, groups=GROUPS, group_size=GROUP_SIZE)
    return hit, found, json.loads(last.stdout.splitlines()[-1])


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--model-name", default="oracle")
    parser.add_argument("--home", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "CUA_HOME": str(arguments.home or home)}
        hit, found, summary = kill_until_done(
            environment, kills=arguments.kills, seed=arguments.seed, model=arguments.model_name, steps=arguments.steps
        )
    sys.stdout.write(json.dumps({"kills": hit, "violations": found, "summary": summary}, indent=1) + "\n")
    return 4 if found else 0


if __name__ == "__main__":
    sys.exit(main())
