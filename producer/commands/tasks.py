"""`cua-train tasks`: what there is to train on, what one task says, and whether the tasks are sound."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict

import click

from producer.errors import MismatchError, NotFoundError
from producer.task import Task
from producer.tasks.demo import demo_tasks
from producer.tasks.goals import goal_leakage

Command = Callable[..., None]


def _with_json(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")(command)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """List, show and check the tasks that come with cua-train."""


@command.command("list")
@_with_json
def list_tasks(*, as_json: bool) -> None:
    """All demo tasks; `judged` says whether a validator exists, `same_goal_as` which training tasks have the goal of an evaluation task."""
    tasks = demo_tasks()
    leaks = goal_leakage(
        [task for task in tasks if task.split == "train"],
        [task for task in tasks if task.split == "eval"],
    )
    if as_json:
        click.echo(json.dumps([_row(task, leaks) for task in tasks], indent=2))
        return
    click.echo(
        f"{'task_id':42} {'difficulty':10} {'category':10} {'turns':>5}  {'judged':6}  same goal as"
    )
    for task in tasks:
        judged = "yes" if task.is_judged else "no"
        same = ", ".join(leaks.get(task.task_id, ()))
        click.echo(
            f"{task.task_id:42} {task.difficulty:10} {task.category:10} {task.max_steps:>5} "
            f" {judged:6}  {same}".rstrip()
        )
    num_eval = sum(task.split == "eval" for task in tasks)
    click.echo(
        f"{sum(task.is_judged for task in tasks)} of {len(tasks)} tasks can be judged; {len(leaks)}"
        f" of {num_eval} evaluation tasks have the goal of a training task",
        err=True,
    )


def _row(task: Task, leaks: dict[str, tuple[str, ...]]) -> dict[str, object]:
    return {
        "task_id": task.task_id,
        "name": task.name,
        "difficulty": task.difficulty,
        "category": task.category,
        "max_steps": task.max_steps,
        "split": task.split,
        "judged": task.is_judged,
        "validation_query": task.validation_query,
        "expected_result": task.expected_result,
        "same_goal_as": list(leaks.get(task.task_id, ())),
    }


@command.command("show")
@click.argument("task_id")
@_with_json
def show_task(task_id: str, *, as_json: bool) -> None:
    """Everything that one task says."""
    task = _find(task_id)
    fields = {**asdict(task), "judged": task.is_judged}
    if as_json:
        click.echo(json.dumps(fields, indent=2))
        return
    for name, value in fields.items():
        shown = "; ".join(map(str, value)) if isinstance(value, tuple) else value
        click.echo(f"{name:18} {shown}".rstrip())


def _find(task_id: str) -> Task:
    found = next((task for task in demo_tasks() if task.task_id == task_id), None)
    if found is None:
        near = [task.task_id for task in demo_tasks() if task_id.lower() in task.task_id][:5]
        hint = f"did you mean {', '.join(near)}?" if near else "`cua-train tasks list` shows them"
        message = f"there is no task called {task_id!r}; {hint}"
        raise NotFoundError(message)
    return found


@command.command("check")
@click.option(
    "--seeds",
    "num_seeds",
    default=5,
    show_default=True,
    type=click.IntRange(min=1),
    help="Phones per task.",
)
@click.option("--task", "task_ids", multiple=True, help="Only this task (may be repeated).")
@_with_json
def check(num_seeds: int, task_ids: tuple[str, ...], *, as_json: bool) -> None:
    """Solve every task with its oracle, try it by doing nothing and by chance.

    Exit 4 when a task is not sound.
    """
    from producer.environments.android_sim.oracle.soundness import check_tasks

    tasks = [_find(task_id) for task_id in task_ids] if task_ids else list(demo_tasks())
    judged = [task for task in tasks if task.is_judged]
    skipped = [task.task_id for task in tasks if not task.is_judged]
    found = []
    with click.progressbar(
        check_tasks(judged, num_seeds=num_seeds),
        length=len(judged),
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
    ) as bar:
        found = list(bar)
    unsound = [one.task_id for one in found if not one.is_sound]
    if as_json:
        rows = [{**asdict(one), "sound": one.is_sound} for one in found]
        click.echo(
            json.dumps(
                {"sound": not unsound and bool(found), "tasks": rows, "not_judged": skipped},
                indent=2,
            )
        )
    else:
        click.echo(f"{'task_id':42} {'oracle':>8} {'turns':>7} {'idle':>6} {'chance':>7}  sound")
        for one in found:
            oracle, turns = (
                f"{one.oracle_successes}/{one.num_seeds}",
                f"{one.oracle_turns}/{one.max_steps}",
            )
            idle, chance = (
                f"{one.idle_successes}/{one.num_seeds}",
                f"{one.random_successes}/{one.num_random}",
            )
            click.echo(
                f"{one.task_id:42} {oracle:>8} {turns:>7} {idle:>6} {chance:>7} "
                f" {'yes' if one.is_sound else 'NO'}"
            )
        for task_id in skipped:
            click.echo(f"{task_id:42} no validator: not checked")
    if unsound or not found:
        message = (
            "expected every task to be sound, found"
            f" {', '.join(unsound) or 'no task that can be judged'}"
        )
        raise MismatchError(message)
