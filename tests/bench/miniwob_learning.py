"""Does RL raise greedy success of the small policy on pages of MiniWoB++?

    python -m tests.bench.miniwob_learning --home FOLDER [--num-steps 24] [--episodes 16] [--seed 0]

The policy is made in the home if it has none, trained on TRAINED_PAGES, and evaluated greedily
before and after on those and on HELD_OUT_PAGES, on seeds that training never sees. The table has a
row for each page. Differences are paired by page, and errors are clustered by page.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from producer.agents.miniwob.policy.recipe import HELD_OUT_PAGES, TRAINED_PAGES
from producer.training.compare import compare
from schemas.clustered_errors import TaskCount, clustered_standard_error, paired_difference
from schemas.installation import read_installation

Counts = Mapping[str, TaskCount]
GROUPS = {"trained": TRAINED_PAGES, "held out from RL": HELD_OUT_PAGES}


def main() -> None:
    """Train, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, required=True, help="as CUA_HOME")
    parser.add_argument("--num-steps", type=int, default=24)
    parser.add_argument("--episodes", type=int, default=16, help="of each page, in an evaluation")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    environ = {**os.environ, "CUA_HOME": str(options.home.resolve())}
    name = f"pages-{options.seed}"
    pages = [*TRAINED_PAGES, *HELD_OUT_PAGES]
    words = {
        "--environment": "miniwob",
        "--model-name": "demo",
        "--training-name": name,
        "--seed": options.seed,
        "--num-steps": options.num_steps,
        "--eval-tasks": json.dumps({"source_type": "miniwob", "names": pages}),
        "--eval-episodes": options.episodes * len(pages),
    }
    given = [str(word) for pair in words.items() for word in pair]
    subprocess.run(
        [sys.executable, "-m", "producer", "run", *given, "--no-monitor"], env=environ, check=True
    )
    before, after = (
        row.measured.evaluation.counts for row in compare(read_installation(environ), [name])
    )
    sys.stdout.write("\n".join([*table(before, after), ""]))


def table(before: Counts, after: Counts) -> Sequence[str]:
    """Lines of a Markdown table: each page, then each group of pages."""
    rows = ["| pages | episodes | before | after | difference |", "|---|---|---|---|---|"]
    for group, pages in GROUPS.items():
        rows += [_row(page, {page: before[page]}, {page: after[page]}) for page in pages]
        of_group = [{page: counts[page] for page in pages} for counts in (before, after)]
        rows.append(_row(f"**{group}**, {len(pages)} pages", *of_group))
    return rows


def _row(name: str, before: Counts, after: Counts) -> str:
    difference = paired_difference(before, after)
    assert difference is not None
    gain = f"{difference.gain:+.3f}"
    if len(before) > 1:
        gain = f"{gain} ± {difference.standard_error:.3f}"
    episodes = sum(count.episodes for count in before.values())
    return f"| {name} | {episodes} | {_rate(before)} | {_rate(after)} | {gain} |"


def _rate(counts: Counts) -> str:
    episodes = sum(count.episodes for count in counts.values())
    rate = f"{sum(count.successes for count in counts.values()) / episodes:.3f}"
    return f"{rate} ± {clustered_standard_error(counts):.3f}" if len(counts) > 1 else rate


if __name__ == "__main__":
    main()
