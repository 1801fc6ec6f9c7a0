"""Success rates in words: temperature, error, episodes, distinct tasks and split."""

from collections.abc import Iterator
from typing import Final

from producer.algorithms.clustered_errors import Difference
from producer.resume.resume_state import EvaluationSummary
from producer.training.summary import Summary

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


def tasks_text(summary: EvaluationSummary) -> str:
    """`384 episodes of 18 training tasks on unseen seeds`."""
    split = SPLIT_TEXTS.get(summary.split or "", "tasks")
    number = "" if summary.num_tasks is None else f" of {summary.num_tasks} {split}"
    return f"{summary.episodes} episodes{number}"


def summary_lines(summary: Summary, noun: str = "success") -> Iterator[str]:
    """`greedy success: 0.784 ± 0.021 -> 0.815 ± 0.020 (+0.031 ± 0.016, ...)`, and its tasks."""
    greedy = (
        *(summary.success_before, summary.standard_error_before),
        *(summary.success_after, summary.standard_error_after),
        *(summary.gain, summary.gain_standard_error),
    )
    sampled = (
        *(summary.sampled_success_before, summary.sampled_standard_error_before),
        *(summary.sampled_success_after, summary.sampled_standard_error_after),
        *(summary.sampled_gain, summary.sampled_gain_standard_error),
    )
    for name, figures in ((f"greedy {noun}", greedy), (f"{noun} at temperature 1", sampled)):
        before, before_error, after, after_error, gain, gain_error = figures
        rates = [
            f"{rate:.3f} ± {error:.3f}"
            for rate, error in ((before, before_error), (after, after_error))
            if rate is not None and error is not None
        ]
        if not rates:
            continue
        change = ""
        if gain is not None and gain_error is not None:
            change = f" ({difference_text(Difference(gain, gain_error, 0))})"
        yield f"{name}: {' -> '.join(rates)}{change}"
    if summary.eval_tasks is not None:
        split = SPLIT_TEXTS.get(summary.eval_split or "", "tasks")
        yield f"evaluated on {summary.eval_tasks} {split} ({summary.eval_source})"


def success_text(summary: EvaluationSummary) -> str:
    """`success 0.784 ± 0.021, greedy, 384 episodes of 18 training tasks on unseen seeds`."""
    return (
        f"success {summary.success:.3f} ± {summary.standard_error:.3f},"
        f" {temperature_text(summary.temperature)}, {tasks_text(summary)}"
    )


def difference_text(difference: Difference) -> str:
    """`+0.031 ± 0.016 paired by task: within two standard errors`."""
    note = "more than" if difference.is_significant else "within"
    return (
        f"{difference.gain:+.3f} ± {difference.standard_error:.3f} paired by task: {note} two"
        " standard errors"
    )
