"""`cua-train tasks`: list the demo tasks, show one, check that they are sound."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict

import rich_click as click

from producer.errors import MismatchError, NotFoundError, did_you_mean
from producer.task import Task
from producer.tasks.demo import demo_tasks
from producer.tasks.goals import goal_leakage

Command = Callable[..., None]


def _with_json(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """List, show and check the demo tasks."""


@command.command("list")
@_with_json
def list_tasks(*, as_json: bool) -> None:
    """List the demo tasks.

    A task without a validator cannot be judged, so it is neither trained on nor evaluated. "Same
    goal as" names the training tasks that are solved by the same device state as an evaluation
    task.

    \b
    Examples:
      cua-train tasks list
      cua-train tasks list --json | jq -r '.[].task_id'
    """  # noqa: D301  # \b is click's mark for text that is not wrapped
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
        f"{sum(task.is_judged for task in tasks)} of {len(tasks)} tasks have a validator;"
        f" {len(leaks)} of {num_eval} evaluation tasks share their goal with a training task",
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
@click.argument("task_id", metavar="TASK_ID")
@_with_json
def show_task(task_id: str, *, as_json: bool) -> None:
    """Show every field of one task.

    \b
    Example:
      cua-train tasks show train_02_enable_wifi
    """  # noqa: D301  # \b is click's mark for text that is not wrapped
    task = _find(task_id)
    fields = {**asdict(task), "judged": task.is_judged}
    if as_json:
        click.echo(json.dumps(fields, indent=2))
        return
    for name, value in fields.items():
        shown = "; ".join(map(str, value)) if isinstance(value, tuple) else value
        click.echo(f"{name:18} {shown}".rstrip())


def _find(task_id: str) -> Task:
    by_id = {task.task_id: task for task in demo_tasks()}
    if task_id not in by_id:
        message = (
            f"no demo task is called {task_id!r}.{did_you_mean(task_id, by_id)}"
            " `cua-train tasks list` shows them all"
        )
        raise NotFoundError(message)
    return by_id[task_id]


@command.command("check")
@click.option(
    "--seeds",
    "num_seeds",
    metavar="N",
    default=5,
    show_default=True,
    type=click.IntRange(min=1),
    help="Phones (seeds) per task.",
)
@click.option(
    "--task",
    "task_ids",
    metavar="TASK_ID",
    multiple=True,
    help="Check only this task; repeat the option for several.  [default: all]",
)
@_with_json
def check(num_seeds: int, task_ids: tuple[str, ...], *, as_json: bool) -> None:
    """Check that tasks are sound.

    On simulated phones, an oracle must solve the task within its turns, doing nothing must never
    solve it, and random actions only rarely. Exits with 4 if a task is not sound.

    \b
    Examples:
      cua-train tasks check
      cua-train tasks check --seeds 20 --task train_02_enable_wifi
    """  # noqa: D301  # \b is click's mark for text that is not wrapped
    from producer.environments.android_sim.oracle.soundness import check_tasks

    tasks = [_find(task_id) for task_id in task_ids] if task_ids else list(demo_tasks())
    judged = [task for task in tasks if task.is_judged]
    skipped = [task.task_id for task in tasks if not task.is_judged]
    with click.progressbar(
        check_tasks(judged, num_seeds=num_seeds),
        length=len(judged),
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
    ) as bar:
        results = list(bar)
    unsound = [one.task_id for one in results if not one.is_sound]
    if as_json:
        rows = [{**asdict(one), "sound": one.is_sound} for one in results]
        click.echo(
            json.dumps(
                {"sound": not unsound and bool(results), "tasks": rows, "not_judged": skipped},
                indent=2,
            )
        )
    else:
        click.echo(f"{'task_id':42} {'oracle':>8} {'turns':>7} {'idle':>6} {'random':>7}  sound")
        for one in results:
            oracle = f"{one.oracle_successes}/{one.num_seeds}"
            turns = f"{one.oracle_turns}/{one.max_steps}"
            idle = f"{one.idle_successes}/{one.num_seeds}"
            by_chance = f"{one.random_successes}/{one.num_random}"
            click.echo(
                f"{one.task_id:42} {oracle:>8} {turns:>7} {idle:>6} {by_chance:>7} "
                f" {'yes' if one.is_sound else 'NO'}"
            )
        for task_id in skipped:
            click.echo(f"{task_id:42} not checked: no validator")
    if unsound:
        message = f"{len(unsound)} of {len(results)} tasks are not sound: {', '.join(unsound)}"
        raise MismatchError(message)
    if not results:
        message = f"nothing was checked: no validator for {', '.join(skipped)}"
        raise MismatchError(message)
