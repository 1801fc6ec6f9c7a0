"""Success before and after training: at one temperature, and compared task by task."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Select, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session

from consumers.tables import Baseline, Eval
from schemas.clustered_errors import Difference, TaskCount, paired_difference

LARGEST = 2**53
"""Larger integers of JSON are not exact as floats."""


class Success(NamedTuple):
    """What one evaluation measured."""

    rate: float
    """0-1."""
    temperature: float | None
    """0 is greedy; None: not recorded."""
    split: str | None
    num_tasks: int | None
    counts: Mapping[str, TaskCount]
    """By task; empty: not recorded."""


class Gain(NamedTuple):
    """The first and the last evaluation of a training."""

    before: Success | None
    """Before the first step."""
    after: Success | None
    """Scheduled, after the last evaluated step."""

    @property
    def difference(self) -> Difference | None:
        """Paired by task; None without both, at two temperatures, or of older recordings."""
        if self.before is None or self.after is None:
            return None
        if self.before.temperature != self.after.temperature:
            return None
        return paired_difference(self.before.counts, self.after.counts)


def list_gains(session: Session, trainings: Sequence[UUID]) -> dict[UUID, Gain]:
    """Gains of those that have an evaluation; of two at a step the one of lower temperature."""
    before = (
        _measured(Baseline, trainings)
        .ext(distinct_on(Baseline.training_id))
        .order_by(
            Baseline.training_id,
            Baseline.generation.desc(),
            Baseline.temperature.nulls_first(),
            Baseline.created_at.desc(),
        )
    )
    after = (
        _measured(Eval, trainings)
        .ext(distinct_on(Eval.training_id))
        .where(Eval.kind == "scheduled")
        .order_by(Eval.training_id, Eval.step.desc(), Eval.temperature.nulls_first())
    )
    first, last = (_by_training(session.execute(query)) for query in (before, after))
    return {name: Gain(first.get(name), last.get(name)) for name in first.keys() | last.keys()}


def gains_by_temperature(evaluations: Iterable[Baseline | Eval]) -> list[Gain]:
    """Gains of one training's evaluations, of rising temperature; those by hand do not count.

    Of each point the last in order counts.
    """
    of: dict[float | None, dict[bool, tuple[int, Success]]] = {}
    for evaluation in evaluations:
        if evaluation.success_rate is None or (
            isinstance(evaluation, Eval) and evaluation.kind == "manual"
        ):
            continue
        metrics = evaluation.metrics_json if isinstance(evaluation.metrics_json, Mapping) else {}
        counts = _counts(metrics.get("counts_by_task"))
        success = Success(
            evaluation.success_rate,
            evaluation.temperature,
            evaluation.split,
            evaluation.num_tasks,
            counts,
        )
        place = of.setdefault(evaluation.temperature, {})
        is_before, step = isinstance(evaluation, Baseline), evaluation.step or 0
        if is_before not in place or place[is_before][0] <= step:
            place[is_before] = step, success
    return [
        Gain(*(place[key][1] if key in place else None for key in (True, False)))
        for _, place in sorted(of.items(), key=lambda item: -1.0 if item[0] is None else item[0])
    ]


def _counts(recorded: object) -> dict[str, TaskCount]:
    """Judged episodes by task, as an evaluation records them; empty if it did not."""
    if not isinstance(recorded, Mapping):
        return {}
    return {
        str(name): TaskCount(*count)
        for name, count in recorded.items()
        if isinstance(count, list)
        and len(count) == len(TaskCount._fields)
        and all(type(item) is int for item in count)
        and 0 <= count[0] <= count[1] <= LARGEST
    }


def _measured(table: type[Baseline | Eval], trainings: Sequence[UUID]) -> Select[Any]:
    # Metrics have more than counts, and a page asks for hundreds of trainings.
    counts = table.metrics_json["counts_by_task"]
    columns = (table.success_rate, table.temperature, table.split, table.num_tasks, counts)
    return select(table.training_id, *columns).where(
        ~table.superseded, table.success_rate.is_not(None), table.training_id.in_(trainings)
    )


def _by_training(rows: Iterable[Sequence[Any]]) -> dict[UUID, Success]:
    return {
        training: Success(rate, temperature, split, num_tasks, _counts(counts))
        for training, rate, temperature, split, num_tasks, counts in rows
    }
