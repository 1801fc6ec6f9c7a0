"""`cua-train compare`: the paired table of two or more evaluations."""

import json
import os
from typing import TYPE_CHECKING, Any

import rich_click as click

from producer.commands.options import examples, given_training_name, with_json
from producer.console import print_table, rounded
from producer.errors import UsageError
from schemas.clustered_errors import MIN_TASKS
from schemas.evaluation_text import SPLIT_TEXTS, temperature_text
from schemas.installation import read_installation

if TYPE_CHECKING:
    from producer.training.compare import Row

EPILOG = examples(
    "$ cua-train compare first               # its last evaluations against those before",
    "$ cua-train compare first shuffled",
    "$ cua-train compare first 0b1d7c52-4a8e-5f0e-9d38-2f6b1f6c7a11   # an evaluation's id",
)


@click.command(name="compare", epilog=EPILOG)
@click.argument("names", metavar="NAMES", nargs=-1, required=True)
@with_json
def command(*, names: tuple[str, ...], as_json: bool) -> None:
    """Compare evaluations of the same tasks, paired by task.

    A name is a training's, whose last evaluations count, or an evaluation's id, as `evaluate
    --json` prints it. Each is compared with the first one. A single training is compared with its
    evaluations before the first step. Errors are clustered by task; the 95 % interval of a
    difference is a bootstrap over tasks.
    """
    given = [given_training_name(name, "NAME") for name in names]
    if repeated := next((name for name in given if given.count(name) > 1), None):
        message = f"NAME: {repeated!r} is given twice; name each training or evaluation once"
        raise UsageError(message)
    from producer.training.compare import compare
    from producer.training.paired_bootstrap import NUM_RESAMPLES, SEED

    rows = compare(read_installation(os.environ), given)
    if as_json:
        table = {
            "first": given[0],
            "resamples": NUM_RESAMPLES,
            "bootstrap_seed": SEED,
            "rows": [_as_json(row) for row in rows],
        }
        click.echo(json.dumps(rounded(table), indent=2))
        return
    print_table(
        [
            *("name", "evaluation", "temperature", "success", "episodes", "tasks"),
            *("difference", "95 % interval", "paired tasks", "zero"),
        ],
        [_cells(row) for row in rows],
    )
    splits = {row.measured.evaluation.split for row in rows} - {None}
    shown = ", ".join(SPLIT_TEXTS[str(split)] for split in sorted(map(str, splits)))
    click.echo(f"split: {shown or 'not recorded'}")
    click.echo(
        f"difference: to the first row of its temperature, paired by task; interval:"
        f" {NUM_RESAMPLES:,} bootstrap resamples of the tasks, seed {SEED}"
    )


def _cells(row: "Row") -> list[object]:
    evaluation, difference = row.measured.evaluation, row.difference
    own: list[object] = [
        *(row.measured.name, evaluation.label, temperature_text(evaluation.temperature)),
        f"{evaluation.success:.3f} ± {evaluation.standard_error:.3f}",
        *(evaluation.episodes, evaluation.num_tasks),
    ]
    if difference is None:
        return [*own, None, None, None, None]
    shown = f"{difference.gain:+.3f} ± {difference.standard_error:.3f}"
    if row.interval is None:
        return [*own, shown, None, difference.num_tasks, f"too few tasks, under {MIN_TASKS}"]
    interval = f"{row.interval.low:+.3f} to {row.interval.high:+.3f}"
    zero = "outside" if row.interval.excludes_zero else "inside"
    return [*own, shown, interval, difference.num_tasks, zero]


def _as_json(row: "Row") -> dict[str, Any]:
    evaluation, difference, interval = row.measured.evaluation, row.difference, row.interval
    return {
        "name": row.measured.name,
        "evaluation": evaluation.label,
        "evaluation_id": evaluation.evaluation_id,
        "step": evaluation.step,
        "temperature": evaluation.temperature,
        "success": evaluation.success,
        "standard_error": evaluation.standard_error,
        "episodes": evaluation.episodes,
        "num_tasks": evaluation.num_tasks,
        "split": evaluation.split,
        "task_source": evaluation.task_source,
        "difference": None
        if difference is None
        else {
            "to": "first",
            "gain": difference.gain,
            "standard_error": difference.standard_error,
            "num_tasks": difference.num_tasks,
            "interval": None if interval is None else list(interval),
            "zero_outside": None if interval is None else interval.excludes_zero,
            "too_few_tasks": interval is None,
        },
    }
