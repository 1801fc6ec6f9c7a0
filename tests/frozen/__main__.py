"""`python -m tests.frozen FOLDER [RUN ...]`: run, and compare with tests/frozen/digests.json.

`--record` writes that file instead, from three runs of each: what differs between them (times, ids
of processes) is left out of the comparison. Figures are those of one kind of processor: where
another one records other figures, record with the commit before the change first. FOLDER keeps the
policies for the next time.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from consumers.database.location import libpq_url, resolve_database
from schemas.installation import read_installation
from tests.frozen.digests import Facts, digest, events_of, rows_of, volatile_fields, weights_of
from tests.frozen.runs import RUNS, make_policies, project

NUM_RECORDED = 3
KEPT = Path(__file__).with_name("digests.json")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("names", nargs=-1)
@click.option("--record", is_flag=True, help="Write the file of digests.")
def main(folder: Path, names: tuple[str, ...], *, record: bool) -> None:
    """Exit 4 and the kinds that differ when anything does."""
    folder = folder.resolve()
    policies = folder / "policies"
    policies.mkdir(parents=True, exist_ok=True)
    make_policies(policies)
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {"runs": {}}
    kept["processor"] = processor() if record else kept["processor"]
    if kept["processor"] != processor():
        click.echo(f"recorded on {kept['processor']}, this is {processor()}; figures may differ")
    different = []
    for name in names or tuple(RUNS):
        facts, weights = _run(name, folder / name, policies)
        if record:
            others = [_run(name, folder / name, policies) for _ in range(NUM_RECORDED - 1)]
            if any(weights != other for _, other in others):
                sys.exit(f"{name}: the weights of two runs differ")
            volatile = volatile_fields([facts, *(other for other, _ in others)])
            for kind, paths in kept["runs"].get(name, {}).get("volatile", {}).items():
                volatile[kind] = sorted({*volatile.get(kind, []), *paths})
            kept["runs"][name] = {
                "volatile": volatile,
                "digests": digest(facts, volatile),
                "weights": weights,
            }
            KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
            continue
        expected = kept["runs"][name]
        found = {"digests": digest(facts, expected["volatile"]), "weights": weights}
        for part, values in found.items():
            keys = sorted(values.keys() | expected[part].keys())
            changed = [key for key in keys if values.get(key) != expected[part].get(key)]
            different += [f"{name}: {part}: {key}" for key in changed]
        click.echo(
            f"{name}: {len(found['digests'])} kinds of facts, {len(weights)} files of weights"
        )
    click.echo("\n".join(different) or "equal")
    sys.exit(4 if different else 0)


def _run(name: str, home: Path, policies: Path) -> tuple[Facts, dict[str, str]]:
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    words = [sys.executable, "-m", "tests.frozen.runs", name, str(home), str(policies)]
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name} failed:\n{done.stderr[-4000:]}")
    facts: dict[str, Any] = dict(events_of(home))
    project(home)
    installation = read_installation({"CUA_HOME": str(home)})
    try:
        facts |= rows_of(libpq_url(resolve_database({}, installation)), home)
    finally:
        subprocess.run(
            [sys.executable, "-m", "consumers", "database", "stop"],
            env={**os.environ, "CUA_HOME": str(home)},
            check=True,
            capture_output=True,
        )
    return facts, weights_of(home)


def processor() -> str:
    """The processor's name, on which the last bits of figures depend."""
    info = Path("/proc/cpuinfo")
    names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
    return names[0].split(":")[1].strip() if names else platform.processor()


if __name__ == "__main__":
    main()
