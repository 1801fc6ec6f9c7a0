"""`python -m tests.frozen FOLDER [RUN ...]`: run, and compare with what FOLDER has recorded.

`--record` records, from three runs of each: what differs between them (times, ids of processes) is
left out of the comparison. Record with the commit before a change, then compare with it: the last
bits of figures belong to a processor, so no record is kept in the repository. FOLDER also keeps the
policies for the next time.
"""

import json
import os
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
from tests.support.commit import commit

NUM_RECORDED = 3


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("names", nargs=-1)
@click.option("--record", is_flag=True, help="Record instead of comparing.")
def main(folder: Path, names: tuple[str, ...], *, record: bool) -> None:
    """Repeat the runs and compare them with FOLDER's record. Exit 4 with what differs."""
    folder = folder.resolve()
    kept_path = folder / "digests.json"
    kept = json.loads(kept_path.read_text()) if kept_path.exists() else {}
    chosen = names or tuple(RUNS)
    missing = [] if record else [name for name in chosen if name not in kept]
    if missing:
        names_missing = ", ".join(missing)
        sys.exit(
            f"{folder} has no record of {names_missing}: check out the commit before your change"
            " and run this with --record"
        )
    policies = folder / "policies"
    policies.mkdir(parents=True, exist_ok=True)
    make_policies(policies)
    different = []
    for name in chosen:
        facts, weights = _run(name, folder / name, policies)
        if record:
            others = [_run(name, folder / name, policies) for _ in range(NUM_RECORDED - 1)]
            if any(weights != other for _, other in others):
                sys.exit(f"{name}: the weights of two runs differ")
            volatile = volatile_fields([facts, *(other for other, _ in others)])
            kept[name] = {
                "commit": commit(),
                "volatile": volatile,
                "digests": digest(facts, volatile),
                "weights": weights,
            }
            kept_path.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
            continue
        expected = kept[name]
        click.echo(f"{name}: recorded with {expected['commit']}, this is {commit()}")
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


if __name__ == "__main__":
    main()
