"""What an evaluation measured, in words: one wording for logs, tables and pages."""

from typing import Final

from schemas.clustered_errors import MIN_TASKS, Difference

SPLIT_TEXTS: Final = {
    "held_out": "held-out tasks",
    "training_tasks_unseen_seeds": "training tasks on unseen seeds",
    "training_tasks": "training tasks",
    "mixed": "tasks of which some are trained on",
}


def temperature_text(temperature: float | None) -> str:
    """`greedy`, `sampled at temperature 1`."""
    if temperature is None:
        return "temperature not recorded"
    return f"sampled at temperature {temperature:g}" if temperature else "greedy"


def tasks_text(num_tasks: int | None, split: str | None) -> str:
    """`18 training tasks on unseen seeds`, `1 held-out task`; `tasks` where it is not recorded."""
    text = SPLIT_TEXTS.get(split or "", "tasks")
    if num_tasks is None:
        return text
    return f"{num_tasks} {text.replace('tasks', 'task', 1) if num_tasks == 1 else text}"


def metric_name(name: str, temperature: float | None) -> str:
    """`test/success`; sampled `test/sampled/success`, so that no curve mixes the two."""
    own = name.removeprefix("test/")
    return f"test/sampled/{own}" if temperature else f"test/{own}"


def significance_text(difference: Difference) -> str:
    """`within two standard errors`, `too few tasks for a conclusion`, ..."""
    if difference.num_tasks < MIN_TASKS:
        return "too few tasks for a conclusion"
    return f"{'more than' if difference.is_significant else 'within'} two standard errors"


def difference_text(difference: Difference) -> str:
    """`+0.031 ± 0.016 paired by task: within two standard errors`."""
    return (
        f"{difference.gain:+.3f} ± {difference.standard_error:.3f} paired by task:"
        f" {significance_text(difference)}"
    )
