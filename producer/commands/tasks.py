"""`cua-train tasks`: list, show and check tasks, compare two sets of tasks, list the queries."""

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click
from pydantic import JsonValue

from producer.agents import AGENTS
from producer.agents.android.demo_tasks import demo_tasks
from producer.agents.android.queries import describe_queries
from producer.commands.options import (
    COUNT,
    FILE,
    EnvironmentChoice,
    examples,
    option,
    switch,
    with_json,
)
from producer.commands.tasks_sheet import sheet
from producer.console import print_report, progress_bar
from producer.errors import MismatchError, NotFoundError
from producer.task import Task
from producer.tasks.overlap import goal_leakage
from schemas.advice import did_you_mean

if TYPE_CHECKING:
    from producer.agents.android.sim.oracle.soundness import Soundness

logger = logging.getLogger(__name__)

DEMO_SOURCES = {
    "tasks": {"source_type": "demo_training"},
    "eval_tasks": {"source_type": "demo_eval"},
}


@click.group()
def command() -> None:
    """List, show and check tasks; draw them; compare two sets of tasks; list the device queries."""


command.add_command(sheet)


@command.command(
    "list",
    epilog=examples(
        "$ cua-train tasks list", "$ cua-train tasks list --json | jq -r '.[].task_id'"
    ),
)
@with_json
def list_tasks(*, as_json: bool) -> None:
    """List the demo tasks.

    A task without a validator cannot be judged: it is neither trained on nor evaluated. "Same goal"
    names the training tasks that the same device state solves.
    """
    tasks = demo_tasks()
    leaks = goal_leakage(
        [task for task in tasks if task.split == "train"],
        [task for task in tasks if task.split == "eval"],
    )
    rows = [
        [
            *(task.task_id, task.difficulty, task.category, task.max_steps),
            "yes" if task.is_judged else "no",
            ", ".join(map(_number, leaks.get(task.task_id, ()))),
        ]
        for task in tasks
    ]
    columns = ["task_id", "level", "category", "turns", "judged", "same goal"]
    print_report([_row(task, leaks) for task in tasks], columns, rows, as_json=as_json)
    if as_json:
        return
    num_eval = sum(task.split == "eval" for task in tasks)
    logger.info(
        "%d of %d tasks have a validator; %d of %d evaluation tasks share their goal with a"
        " training task",
        *(sum(task.is_judged for task in tasks), len(tasks), len(leaks), num_eval),
    )


def _number(task_id: str) -> str:
    """Shorten `train_02_enable_wifi` to `train_02`, to fit into the table."""
    return "_".join(task_id.split("_")[:2])


def _row(task: Task, leaks: dict[str, tuple[str, ...]]) -> dict[str, object]:
    names = ("task_id", "name", "difficulty", "category", "max_steps", "split")
    return {
        **{name: getattr(task, name) for name in names},
        "judged": task.is_judged,
        "validation_query": task.validation_query,
        "expected_result": task.expected_result,
        "same_goal_as": list(leaks.get(task.task_id, ())),
    }


@command.command("show", epilog=examples("$ cua-train tasks show train_02_enable_wifi"))
@click.argument("task_id", metavar="TASK_ID")
@with_json
def show_task(task_id: str, *, as_json: bool) -> None:
    """Show every field of one task."""
    task = _find(task_id, demo_tasks())
    fields = {**asdict(task), "judged": task.is_judged}
    if as_json:
        click.echo(json.dumps(fields, indent=2))
        return
    for name, value in fields.items():
        shown = "; ".join(map(str, value)) if isinstance(value, tuple) else value
        click.echo(f"{name:18} {shown}".rstrip())


def _find(task_id: str, known: Sequence[Task]) -> Task:
    by_id = {task.task_id: task for task in known}
    if task_id not in by_id:
        message = (
            f"there is no task {task_id!r}.{did_you_mean(task_id, by_id)}"
            " `cua-train tasks list` shows the demo tasks"
        )
        raise NotFoundError(message)
    return by_id[task_id]


def _tasks_of(file: Path) -> list[Task]:
    """Read the file's tasks, setting each up once on the simulated phone. Raises UsageError."""
    from producer.config import ORACLE_POLICY, RunConfig
    from producer.tasks.sources import load_tasks
    from producer.training.loaded import set_up_check

    source: JsonValue = {"source_type": "file", "file_path": str(file)}
    config = RunConfig(model_name=ORACLE_POLICY, tasks=source)
    return load_tasks(source, judged_only=False, check=set_up_check(config))


@command.command(
    "queries",
    epilog=examples(
        "$ cua-train tasks queries", "$ cua-train tasks queries --json | jq -r '.[].query'"
    ),
)
@with_json
def list_queries(*, as_json: bool) -> None:
    """List the device queries that a task can name as its validation_query.

    Shows what each query answers; --json adds the shell commands that it runs.
    """
    queries = describe_queries()
    rows = [[query.query, query.answers] for query in queries]
    values = [query._asdict() for query in queries]
    print_report(values, ["query", "answers"], rows, as_json=as_json)


@command.command(
    "check",
    epilog=examples(
        "$ cua-train tasks check",
        "$ cua-train tasks check --seeds 20 --task train_02_enable_wifi",
        "$ cua-train tasks check --tasks mine.jsonl",
    ),
)
@option(
    "--tasks file",
    "File of tasks: JSON, JSON lines, .csv, .tsv or .txt.",
    FILE,
    shown="the demo tasks",
)
@option("--seeds num_seeds", "Seeds (simulated phones) to try per task.", COUNT, default=5)
@option(
    "--task task_ids",
    "Check only this task; repeatable.",
    metavar="TASK_ID",
    shown="all",
    multiple=True,
)
@with_json
def check(num_seeds: int, file: Path | None, task_ids: tuple[str, ...], *, as_json: bool) -> None:
    """Check that tasks are sound.

    On simulated phones, an oracle must solve the task within its turns, random actions must rarely
    solve it, and doing nothing never. Your own tasks are checked without an oracle if there is none
    for them. Exits with 2 if a task cannot be read or set up, with 4 if one is not sound.
    """
    from producer.agents.android.sim.oracle.soundness import check_tasks

    known = demo_tasks() if file is None else _tasks_of(file)
    tasks = [_find(task_id, known) for task_id in task_ids] if task_ids else list(known)
    judged = [task for task in tasks if task.validation_type == "shell"]
    skipped = [task.task_id for task in tasks if task.validation_type != "shell"]
    results = []
    with progress_bar("checking tasks", len(judged)) as bar:
        for result in check_tasks(judged, num_seeds=num_seeds):
            results.append(result)
            bar.advance(note=result.task_id)
    unsound = [result.task_id for result in results if not result.is_sound]
    values = [{**asdict(result), "sound": result.is_sound} for result in results]
    print_report(
        {"sound": not unsound and bool(results), "tasks": values, "not_judged": skipped},
        ["task_id", "oracle", "turns", "idle", "random", "sound"],
        [
            *([*_counts(result), "yes" if result.is_sound else "NO"] for result in results),
            *([task_id, *[None] * 4, "not checked: no validator"] for task_id in skipped),
        ],
        as_json=as_json,
    )
    if unsound:
        message = f"{len(unsound)} of {len(results)} tasks are not sound: {', '.join(unsound)}"
        raise MismatchError(message)
    if not results:
        message = f"nothing was checked: no validator for {', '.join(skipped)}"
        raise MismatchError(message)


def _counts(result: "Soundness") -> list[str]:
    """The task, and how often its oracle, doing nothing and random actions solved it."""
    return [
        result.task_id,
        "none"
        if result.oracle_successes is None
        else f"{result.oracle_successes}/{result.num_seeds}",
        "" if result.oracle_turns is None else f"{result.oracle_turns}/{result.max_steps}",
        f"{result.idle_successes}/{result.num_seeds}",
        f"{result.random_successes}/{result.num_random}",
    ]


@command.command(
    "leakage",
    epilog=examples(
        "$ cua-train tasks leakage                # the demo tasks: train and eval",
        "$ cua-train tasks leakage --environment dbbench --check",
        """$ cua-train tasks leakage --tasks '{"source_type": "dbbench", "path": "entries"}'"""
        """ --eval-tasks '{"source_type": "dbbench", "path": "others"}' --check""",
    ),
)
@option(
    "--tasks",
    "Training tasks: a file of tasks, a task source, or a list of task sources.",
    metavar="FILE|JSON",
    shown="demo_training",
)
@option(
    "--eval-tasks",
    "Evaluation tasks: a file of tasks, a task source, or a list of task sources.",
    metavar="FILE|JSON",
    shown="demo_eval",
)
@option(
    "--environment",
    "Use this environment's default tasks where --tasks or --eval-tasks is not given.",
    EnvironmentChoice(list(AGENTS)),
    metavar="NAME",
)
@switch("--check is_check", "Exit with 4 if a task, instruction, gold or goal is in both.")
@with_json
def leakage(
    *,
    tasks: str | None,
    eval_tasks: str | None,
    environment: str | None,
    is_check: bool,
    as_json: bool,
) -> None:
    """Count the overlap of evaluation tasks with training tasks.

    Compares whole tasks, instructions (ignoring case and spaces), gold SQL (ignoring numbers, texts
    and DB Bench's table name), goals (the device state that solves a task), targets (the device
    query, table or database), their combinations with skills, and names of tables and columns.
    "seen" counts evaluation tasks that training covers completely.
    """
    from producer.commands.given_fields import given_fields
    from producer.config import read_config
    from producer.tasks.overlap import LEAKS, overlaps
    from producer.tasks.sources import load_tasks

    given = given_fields({"tasks": tasks, "eval_tasks": eval_tasks}, None)
    advice = "evaluate on others, or leave their duplicates out of training"
    if environment is None:
        given = {**DEMO_SOURCES, **given}
    else:
        config = read_config({"environment": environment, **given})
        given = {"tasks": config.tasks, "eval_tasks": config.eval_tasks or config.tasks}
        if config.eval_tasks is None:
            states = ", in initial states of unseen seeds" if config.agent.seeds_matter else ""
            advice = (
                f"`cua-train run --environment {environment}` is evaluated on its training tasks"
                f"{states}; --eval-tasks names others"
            )
    train, evaluation = (
        load_tasks(given[field], judged_only=False, field=field)
        for field in ("tasks", "eval_tasks")
    )
    found = overlaps(train, evaluation)
    counts = {"tasks": len(train), "eval_tasks": len(evaluation)}
    print_report(
        {**counts, "overlaps": [asdict(item) for item in found]},
        ["", "in training", "in evaluation", "in both", "eval tasks", "seen"],
        [
            [
                *(item.of, item.num_train, item.num_eval),
                *(item.num_shared, item.num_eval_tasks, item.num_seen),
            ]
            for item in found
        ],
        as_json=as_json,
    )
    for item in found if not as_json else ():
        for example in item.examples if item.of in LEAKS else ():
            logger.info(
                "%s of %s equals that of %s: %s",
                *(item.of, example.eval_task, example.train_task, example.shared),
            )
    leaks = [
        f"{item.num_seen} by {item.of}" for item in found if item.of in LEAKS and item.num_seen
    ]
    if is_check and leaks:
        message = (
            f"some of {len(evaluation)} evaluation tasks are in training: {', '.join(leaks)};"
            f" {advice}"
        )
        raise MismatchError(message)
