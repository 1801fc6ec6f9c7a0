"""The change in greedy accuracy by a training, paired, with errors clustered by database."""

from collections.abc import Mapping

from producer.fine_tuning.stages import Figures
from producer.training.compare import compare
from schemas.clustered_errors import TaskCount, clustered_standard_error, paired_difference
from schemas.installation import Installation

Counts = dict[str, TaskCount]


def measured(installation: Installation, training: str) -> Figures:
    """The accuracy before and after the training, and the gain."""
    before, after = _before_and_after(installation, training)
    return {
        "before": _rate(before),
        "before_standard_error": clustered_standard_error(before),
        "accuracy": _rate(after),
        "standard_error": clustered_standard_error(after),
        **_gain(before, after),
        "questions": sum(count.episodes for count in after.values()),
        "databases": len(after),
    }


def measured_beside(installation: Installation, training: str, other: str) -> Figures:
    """The accuracy and gain of `other`, compared with the start of `training`.

    Both began with the same policy, but `other` has no evaluation of its beginning.
    """
    before, _ = _before_and_after(installation, training)
    *_, row = compare(installation, [training, other])
    after = by_database(row.measured.evaluation.counts)
    return {
        "accuracy": _rate(after),
        "standard_error": clustered_standard_error(after),
        **_gain(before, after),
    }


def _before_and_after(installation: Installation, training: str) -> tuple[Counts, Counts]:
    before, after = (
        by_database(row.measured.evaluation.counts) for row in compare(installation, [training])
    )
    return before, after


def _gain(before: Counts, after: Counts) -> Figures:
    gain = paired_difference(before, after)
    return {
        "gain": None if gain is None else gain.gain,
        "gain_standard_error": None if gain is None else gain.standard_error,
    }


def by_database(counts: Mapping[str, TaskCount]) -> Counts:
    """Sum the questions' counts by database. Task ids end with the question's number."""
    found: Counts = {}
    for task_id, count in counts.items():
        database = task_id.rpartition("_")[0]
        sums = found.get(database, TaskCount(0, 0))
        found[database] = TaskCount(
            sums.successes + count.successes, sums.episodes + count.episodes
        )
    return found


def _rate(by_task: Mapping[str, TaskCount]) -> float:
    return sum(one.successes for one in by_task.values()) / sum(
        one.episodes for one in by_task.values()
    )
