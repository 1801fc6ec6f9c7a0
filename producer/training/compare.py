"""Compares evaluations of the same tasks, paired by task: of trainings, or single ones by id.

For a training, its last evaluation at each temperature is used. A single training is compared with
its own evaluations before the first step.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from producer.errors import MismatchError, NotFoundError, UsageError
from producer.resume.recorded_results import (
    RecordedResult,
    result_of_evaluation,
    results_of_training,
)
from producer.resume.resume_state import EvaluationSummary
from producer.training.evaluation import evaluation_summary
from producer.training.kept_trainings import check_known, unknown_training
from producer.training.paired_bootstrap import Interval, bootstrap_interval
from producer.training.summary import comparison
from schemas.clustered_errors import Difference, paired_difference
from schemas.evaluation import evaluation_label
from schemas.evaluation_text import SPLIT_TEXTS, temperature_text
from schemas.installation import Installation
from schemas.task import TaskStated


@dataclass(frozen=True, slots=True)
class Measured:
    """An evaluation, with the name that the caller gave for it."""

    name: str
    evaluation: EvaluationSummary
    tasks: Mapping[str, TaskStated] = field(default_factory=dict)
    """Definitions of its tasks, by task_id; empty: not read."""


@dataclass(frozen=True, slots=True)
class Row:
    """An evaluation, compared with the first one at its temperature."""

    measured: Measured
    difference: Difference | None
    """Success minus that of the first evaluation, paired by task; None for the first."""
    interval: Interval | None
    """Interval of the difference; None for the first, or if they share too few tasks."""


def compare(installation: Installation, names: Sequence[str]) -> list[Row]:
    """The comparison table, greedy evaluations first. Writes nothing.

    Raises NotFoundError if the log lacks a name, MismatchError if the evaluations cannot be
    compared, and UnreachableError.
    """
    if len(names) == 1:
        measured = list(_before_and_after(installation, names[0]))
    else:
        measured = [item for name in names for item in _last_ones(installation, name)]
        _check_temperatures(measured, names)
    temperatures = {item.evaluation.temperature for item in measured}
    rows = []
    for temperature in sorted(temperatures, key=_greedy_first):
        first, *others = (item for item in measured if item.evaluation.temperature == temperature)
        if not others or first.name != names[0]:
            continue
        rows += [Row(first, None, None), *(_compared(first, other) for other in others)]
    return rows


def _greedy_first(temperature: float | None) -> tuple[bool, float]:
    return temperature is None, temperature or 0.0


def _before_and_after(installation: Installation, name: str) -> Iterator[Measured]:
    results = _results(installation, name)
    evaluation_id = _evaluation_id(name)
    if any(item.id == evaluation_id for item in results):
        message = f"{name} is one evaluation; give another one to compare it with"
        raise UsageError(message)
    summaries = [_summary(item) for item in results]
    is_compared = False
    for temperature in dict.fromkeys(item.temperature for item in summaries):
        both = comparison(summaries, temperature)
        if both.before is not None and both.after is not None:
            is_compared = True
            yield Measured(name, both.before)
            yield Measured(name, both.after)
    if not is_compared:
        message = (
            f"training {name!r} has no evaluations before the first step and after a later one at"
            " the same temperature; give another training to compare it with"
        )
        raise MismatchError(message)


def _last_ones(installation: Installation, name: str) -> list[Measured]:
    """The last evaluation at each temperature, or the one with this id."""
    results = _results(installation, name)
    last = {item.created.temperature: item for item in results}  # by step: the last one stays
    return [Measured(name, _summary(item), item.tasks) for item in last.values()]


def _results(installation: Installation, name: str) -> list[RecordedResult]:
    """Results of the training, or of the evaluation with this id. NotFoundError if none."""
    check_known(installation, name)
    results = results_of_training(installation, name)
    if results is None and (evaluation_id := _evaluation_id(name)) is not None:
        found = result_of_evaluation(installation, evaluation_id)
        results = [] if found is None else [found]
    if results is None:
        raise unknown_training(installation, name)
    if not results:
        message = f"the log has no finished evaluation of {name!r} yet"
        raise NotFoundError(message)
    return results


def _evaluation_id(name: str) -> UUID | None:
    try:
        return UUID(name)
    except ValueError:
        return None


def _summary(result: RecordedResult) -> EvaluationSummary:
    created = result.created
    label = (
        f"eval-{result.id.hex[:8]}"
        if created.kind == "manual"
        else evaluation_label(created.kind, created.step, created.temperature)
    )
    return evaluation_summary(label, result)


def _check_temperatures(measured: Sequence[Measured], names: Sequence[str]) -> None:
    """Raises MismatchError if a name shares no evaluation temperature with the first one."""

    def temperatures(name: str) -> dict[float | None, str]:
        own = [item.evaluation.temperature for item in measured if item.name == name]
        return {value: temperature_text(value) for value in sorted(own, key=_greedy_first)}

    of_first = temperatures(names[0])
    for name in names[1:]:
        if of_first.keys().isdisjoint(temperatures(name)):
            message = (
                f"{names[0]} is evaluated {' and '.join(of_first.values())}, {name}"
                f" {' and '.join(temperatures(name).values())}: evaluations at different"
                " temperatures cannot be compared"
            )
            raise MismatchError(message, ways=("evaluate one again with `cua-train evaluate`",))


def _compared(first: Measured, other: Measured) -> Row:
    before, after = first.evaluation, other.evaluation
    for item in (first, other):
        if not item.evaluation.counts:
            message = (
                f"{item.evaluation.label} of {item.name} was recorded without its tasks' episodes:"
                " nothing can be paired with it"
            )
            raise MismatchError(message)
    if None not in {before.split, after.split} and before.split != after.split:
        message = (
            f"{before.label} of {first.name} is on {SPLIT_TEXTS[str(before.split)]},"
            f" {after.label} of {other.name} on {SPLIT_TEXTS[str(after.split)]}: different splits"
            " cannot be compared"
        )
        raise MismatchError(message)
    difference = paired_difference(before.counts, after.counts)
    if difference is None:
        message = (
            f"{before.label} of {first.name} ({before.task_source}) and {after.label} of"
            f" {other.name} ({after.task_source}) share no task: nothing can be paired"
        )
        raise MismatchError(message)
    _check_definitions(first, other)
    return Row(other, difference, bootstrap_interval(before.counts, after.counts))


def _check_definitions(first: Measured, other: Measured) -> None:
    """Raises MismatchError if a task that both have is not the same one, but for its name."""
    shared = first.evaluation.counts.keys() & other.evaluation.counts.keys()
    known = sorted(shared & first.tasks.keys() & other.tasks.keys())
    changed = [task for task in known if _asked(first.tasks[task]) != _asked(other.tasks[task])]
    if changed:
        message = (
            f"task {changed[0]!r} is defined differently in {first.name} and {other.name}"
            f" ({len(changed)} of {len(known)} shared tasks differ in instruction, setup or"
            " validator): their results cannot be compared"
        )
        raise MismatchError(message)


def _asked(task: TaskStated) -> list[object]:
    """What the agent is asked, and who judges it."""
    definition = task.definition or {}
    return [
        *(task.description, task.validation_type, task.validation_query, task.expected_result),
        *(definition.get("setup"), definition.get("entry")),
    ]
