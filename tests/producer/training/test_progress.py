"""Progress in turns, worked out by hand."""

from hypothesis import given
from hypothesis import strategies as st

from producer.training.progress import ProgressTracker, Unit


def test_an_evaluation_of_four_rollouts_with_one_short_one_done() -> None:
    # 4 rollouts x 10 turns; one ended after 4 turns: 4 of 4 + 3 x 10 = 34.
    unit = Unit(num_rollouts=4, max_turns=10, is_step=False, finished_rollouts=1, finished_turns=4)
    progress = ProgressTracker(concurrency=2, units=[unit]).of(unit)
    assert progress.percent == 100 * 4 / 34
    assert progress.estimated_remaining_time_s is None


def test_a_step_is_half_rollouts_half_training() -> None:
    unit = Unit(num_rollouts=2, max_turns=5, is_step=True, finished_rollouts=2, finished_turns=6)
    tracker = ProgressTracker(concurrency=1, units=[unit])
    assert tracker.of(unit).percent == 50.0
    unit.is_trained = True
    assert tracker.of(unit).percent == 100.0


def test_what_remains_is_turns_by_average_time_over_concurrency() -> None:
    # 30 turns to go at 2 s each, three at a time: 20 s.
    unit = Unit(num_rollouts=4, max_turns=10, is_step=False, finished_rollouts=1, finished_turns=5)
    tracker = ProgressTracker(concurrency=3, units=[unit], elapsed_s=7.0)
    tracker.turn_taken(10.0, 5)
    progress = tracker.of(unit)
    assert progress.avg_turn_time_s == 2.0
    assert progress.estimated_remaining_time_s == 20.0
    assert progress.estimated_total_time_s == 27.0


def test_a_training_counts_all_its_units_whether_begun_or_not() -> None:
    # Baseline done with 10 real turns; one step ahead: 2 x (2 x 10) turns. 10 of 50.
    baseline = Unit(
        num_rollouts=2, max_turns=10, is_step=False, finished_rollouts=2, finished_turns=10
    )
    step = Unit(num_rollouts=2, max_turns=10, is_step=True)
    assert ProgressTracker(concurrency=1, units=[baseline, step]).of_all().percent == 20.0


@given(st.lists(st.integers(1, 10), max_size=30))
def test_progress_never_falls_and_never_passes_100(ended: list[int]) -> None:
    unit = Unit(num_rollouts=max(1, len(ended)), max_turns=10, is_step=True)
    tracker = ProgressTracker(concurrency=1, units=[unit])
    seen = [tracker.of_all().percent]
    for turns in ended:
        unit.finished_rollouts += 1
        unit.finished_turns += turns
        seen.append(tracker.of_all().percent)
    assert seen == sorted(seen)
    assert seen[-1] <= 100.0
