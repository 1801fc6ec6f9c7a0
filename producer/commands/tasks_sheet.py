"""`cua-train tasks sheet`: what tasks look like when they begin."""

import logging
from pathlib import Path

import rich_click as click

from producer.commands.options import FILE, SEED, examples, option, switch, with_json
from producer.console import print_report, progress_bar
from producer.errors import UsageError

logger = logging.getLogger(__name__)

MOST_TASKS = 500
"""A task takes some 45 KB of the file."""
SUFFIXES = (".html", ".htm")


@click.command(
    "sheet",
    epilog=examples(
        "$ cua-train tasks sheet --output tasks.html",
        "$ cua-train tasks sheet --tasks mine.jsonl --seed 3 --output mine.html",
        """$ cua-train tasks sheet --tasks '{"source_type": "phone_goals"}' --output goals.html""",
    ),
)
@option(
    "--tasks",
    "A file of tasks, a task source, or a list of task sources.",
    metavar="FILE|JSON",
    shown="the demo tasks",
)
@option("--seed", "Seed of the phone on which the tasks begin.", SEED, default=0)
@option("--output", "HTML file to write.", FILE, required=True)
@switch("--overwrite", "Replace the file if it exists.")
@with_json
def sheet(*, tasks: str | None, seed: int, output: Path, overwrite: bool, as_json: bool) -> None:
    """Write one HTML file with the first screen, id and instruction of each task.

    The simulated phone draws the screens. The file has its pictures in it; of more than 500 tasks
    it has the first 500.
    """
    from producer.agents.android.sheet import task_sheet
    from producer.commands.given_fields import given_fields
    from producer.config import ORACLE_POLICY, RunConfig
    from producer.durable import write_durably
    from producer.tasks.sources import load_tasks
    from producer.training.loaded import set_up_check

    if output.suffix.lower() not in SUFFIXES:
        message = f"--output: {output} would hold HTML; name a file that ends in .html"
        raise UsageError(message)
    if output.is_dir() or (output.exists() and not overwrite):
        message = f"{output} exists; name another file, or give --overwrite to replace a file"
        raise UsageError(message)
    source = given_fields({"tasks": tasks}, None).get("tasks", {"source_type": "demo_all"})
    check = set_up_check(RunConfig(model_name=ORACLE_POLICY, tasks=source))
    found = load_tasks(source, judged_only=False, check=check)
    shown = found[:MOST_TASKS]
    with progress_bar("drawing tasks", len(shown)) as bar:
        parts = []
        for part in task_sheet(shown, seed):
            parts.append(part)
            bar.advance()
    try:
        write_durably(output, "".join(parts))
    except OSError as error:
        message = f"--output {output} cannot be written: {error.strerror}"
        raise UsageError(message) from None
    if len(shown) < len(found):
        logger.warning("the first %d of %d tasks are shown", len(shown), len(found))
    facts = {"output": str(output), "num_tasks": len(shown), "size_bytes": output.stat().st_size}
    print_report(facts, ["file", "tasks"], [[str(output), len(shown)]], as_json=as_json)
