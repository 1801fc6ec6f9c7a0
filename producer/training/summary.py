"""The result of a run: the last line of `cua-train run --json`, and success rates in words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from producer.algorithms.controls import CONTROL_TEXTS
from producer.config.training import SAMPLED_TEMPERATURE
from producer.resume.resume_state import EvaluationSummary, Manifest
from schemas import ids
from schemas.clustered_errors import Difference, paired_difference
from schemas.evaluation_text import difference_text, tasks_text, temperature_text

GREEDY = 0.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """The first and the last evaluation at one temperature."""

    before: EvaluationSummary | None
    """Evaluation before the first step; None if there was none."""
    after: EvaluationSummary | None
    """Evaluation after the last evaluated step; None if there was none."""

    @property
    def last(self) -> EvaluationSummary | None:
        """The later one of the two."""
        return self.after or self.before

    @property
    def difference(self) -> Difference | None:
        """Difference paired by task; None without both, or if their tasks were not recorded."""
        if self.before is None or self.after is None:
            return None
        return paired_difference(self.before.counts, self.after.counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Success is greedy; `sampled_` success is at temperature 1; None: not evaluated that way.

    Standard errors are clustered by task.
    """

    training_name: str
    training_id: str
    status: str
    """completed or skipped."""
    steps: int
    success_before: float | None
    success_after: float | None
    standard_error_before: float | None
    standard_error_after: float | None
    gain: float | None
    """Greedy success after minus before, paired by task."""
    gain_standard_error: float | None
    gain_tasks: int | None
    """Number of tasks that both evaluations have, over which the gain is measured."""
    sampled_success_before: float | None
    sampled_success_after: float | None
    sampled_standard_error_before: float | None
    sampled_standard_error_after: float | None
    sampled_gain: float | None
    sampled_gain_standard_error: float | None
    sampled_gain_tasks: int | None
    eval_tasks: int | None
    """Number of distinct tasks of the last evaluation; None if there was none, or not recorded."""
    eval_split: str | None
    """Relation to the training tasks, as in `EvaluationCreated.split`."""
    eval_source: str | None
    """Short name of the evaluation's tasks."""
    eval_temperature: float | None
    """Temperature of the last main evaluation."""
    episodes: int
    """Number of episodes of the last main evaluation."""
    seconds: float
    """Duration of this process."""
    generation: int
    log_path: str
    leaked_devices: int = 0
    """Devices of this process that were not released and may still be running."""
    unshipped_events: int = 0
    """Events of this home that wait in its spool because Kafka cannot be reached."""
    control: str = "none"
    """Control, as in the configuration."""


def summarise(manifest: Manifest, *, status: str, seconds: float, folder: Path) -> Summary:
    """Summarise the evaluations before the first step and the last ones."""
    greedy = comparison(manifest.evaluations, GREEDY)
    sampled = comparison(manifest.evaluations, SAMPLED_TEMPERATURE)
    last = last_evaluation(manifest.evaluations)
    gain, sampled_gain = greedy.difference, sampled.difference
    return Summary(
        training_name=manifest.training_name,
        training_id=str(ids.training_id(manifest.training_name)),
        status=status,
        steps=manifest.step,
        success_before=_success(greedy.before),
        success_after=_success(greedy.after),
        standard_error_before=_error(greedy.before),
        standard_error_after=_error(greedy.after),
        gain=None if gain is None else round(gain.gain, 6),
        gain_standard_error=None if gain is None else round(gain.standard_error, 6),
        gain_tasks=None if gain is None else gain.num_tasks,
        sampled_success_before=_success(sampled.before),
        sampled_success_after=_success(sampled.after),
        sampled_standard_error_before=_error(sampled.before),
        sampled_standard_error_after=_error(sampled.after),
        sampled_gain=None if sampled_gain is None else round(sampled_gain.gain, 6),
        sampled_gain_standard_error=(
            None if sampled_gain is None else round(sampled_gain.standard_error, 6)
        ),
        sampled_gain_tasks=None if sampled_gain is None else sampled_gain.num_tasks,
        eval_tasks=last.num_tasks if last else None,
        eval_split=last.split if last else None,
        eval_source=last.task_source if last else None,
        eval_temperature=last.temperature if last else None,
        episodes=last.episodes if last else 0,
        seconds=round(seconds, 3),
        generation=manifest.generation,
        log_path=str(folder),
    )


def last_evaluation(evaluations: Sequence[EvaluationSummary]) -> EvaluationSummary | None:
    """The newest greedy one, else the newest; None without evaluations."""
    return max(
        evaluations,
        key=lambda evaluation: (evaluation.temperature == GREEDY, evaluation.step),
        default=None,
    )


def comparison(evaluations: Sequence[EvaluationSummary], temperature: float | None) -> Comparison:
    """The first and the last evaluation at this temperature."""
    own = [evaluation for evaluation in evaluations if evaluation.temperature == temperature]
    before = next((item for item in own if item.step == 0), None)
    last = max(own, key=lambda item: item.step, default=None)
    return Comparison(before, None if last is before else last)


def _success(summary: EvaluationSummary | None) -> float | None:
    return None if summary is None else round(summary.success, 6)


def _error(summary: EvaluationSummary | None) -> float | None:
    return None if summary is None else round(summary.standard_error, 6)


def episodes_text(summary: EvaluationSummary) -> str:
    """`384 episodes of 18 training tasks on unseen seeds`."""
    if summary.num_tasks is None:
        return f"{summary.episodes} episodes"
    return f"{summary.episodes} episodes of {tasks_text(summary.num_tasks, summary.split)}"


def summary_lines(summary: Summary, noun: str = "success") -> Iterator[str]:
    """`greedy success: 0.784 ± 0.021 -> 0.815 ± 0.020 (+0.031 ± 0.016, ...)`, and its tasks."""
    for control, text in CONTROL_TEXTS.items():
        if summary.control == control:
            yield f"a control, {control}: {text}"
    greedy = (
        *(summary.success_before, summary.standard_error_before),
        *(summary.success_after, summary.standard_error_after),
        *(summary.gain, summary.gain_standard_error, summary.gain_tasks),
    )
    sampled = (
        *(summary.sampled_success_before, summary.sampled_standard_error_before),
        *(summary.sampled_success_after, summary.sampled_standard_error_after),
        *(summary.sampled_gain, summary.sampled_gain_standard_error),
        summary.sampled_gain_tasks,
    )
    for name, figures in ((f"greedy {noun}", greedy), (f"{noun} at temperature 1", sampled)):
        before, before_error, after, after_error, gain, gain_error, gain_tasks = figures
        rates = [
            f"{rate:.3f} ± {error:.3f}"
            for rate, error in ((before, before_error), (after, after_error))
            if rate is not None and error is not None
        ]
        if not rates:
            continue
        change = ""
        if gain is not None and gain_error is not None and gain_tasks is not None:
            difference = Difference(gain, gain_error, gain_tasks)
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
