"""Success rates in words: temperature, error, episodes, distinct tasks and split."""

from collections.abc import Iterator

from producer.resume.resume_state import EvaluationSummary
from producer.training.summary import Summary
from schemas.clustered_errors import Difference
from schemas.evaluation_text import difference_text, tasks_text, temperature_text


def episodes_text(summary: EvaluationSummary) -> str:
    """`384 episodes of 18 training tasks on unseen seeds`."""
    if summary.num_tasks is None:
        return f"{summary.episodes} episodes"
    return f"{summary.episodes} episodes of {tasks_text(summary.num_tasks, summary.split)}"


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
            difference = Difference(gain, gain_error, summary.eval_tasks or 0)
            change = f" ({difference_text(difference)})"
        yield f"{name}: {' -> '.join(rates)}{change}"
    if summary.eval_tasks is not None:
        tasks = tasks_text(summary.eval_tasks, summary.eval_split)
        yield f"evaluated on {tasks} ({summary.eval_source})"


def success_text(summary: EvaluationSummary) -> str:
    """`success 0.784 ± 0.021, greedy, 384 episodes of 18 training tasks on unseen seeds`."""
    return (
        f"success {summary.success:.3f} ± {summary.standard_error:.3f},"
        f" {temperature_text(summary.temperature)}, {episodes_text(summary)}"
    )
