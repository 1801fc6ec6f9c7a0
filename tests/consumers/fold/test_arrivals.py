"""In which partitions a stream's records were read: runs, ranks, what is kept of them."""

import pytest

from consumers.fold.arrivals import LAST, MAX_RUNS, Arrivals, stored_arrivals

READ = [("rollouts", 3, 0), ("rollouts", 3, 7), ("training", 3, 0), ("rollouts", 3, 9)]
"""Another program wrote the third record into another topic, in a partition of the same number."""


def read(records: list[tuple[str, int, int]]) -> Arrivals:
    arrivals = Arrivals()
    for record in records:
        arrivals.add(*record)
    return arrivals


def test_a_run_ends_where_a_record_of_another_topic_or_partition_is_read() -> None:
    assert read(READ).document() == [
        ("rollouts", 3, 8),
        ("training", 3, 1),
        ("rollouts", 3, 10),
    ]
    assert read([("rollouts", 3, 0), ("rollouts", 4, 0)]).document() == [
        ("rollouts", 3, 1),
        ("rollouts", 4, 1),
    ]


@pytest.mark.parametrize(
    ("record", "rank"),
    [
        (("rollouts", 3, 7), 0),
        (("training", 3, 0), 1),
        (("rollouts", 3, 8), 2),
        (("rollouts", 3, 10), LAST),
        (("training", 4, 0), LAST),
    ],
)
def test_a_records_rank_is_the_run_that_it_is_in(record: tuple[str, int, int], rank: int) -> None:
    assert read(READ).rank(*record) == rank


def test_what_is_stored_is_read_back_and_goes_on() -> None:
    arrivals = stored_arrivals(read(READ).document())
    assert arrivals == read(READ)
    arrivals.add("rollouts", 3, 10)
    assert arrivals.document() == read([*READ, ("rollouts", 3, 10)]).document()


def test_of_too_many_runs_the_places_are_kept_and_no_order() -> None:
    arrivals = read([("rollouts", number % 2, number) for number in range(MAX_RUNS)])
    assert arrivals.is_ordered
    arrivals.add("training", 5, 0)
    arrivals.add("rollouts", 6, 0)
    assert not arrivals.is_ordered
    assert arrivals.document() == [
        ("rollouts", 0, None),
        ("rollouts", 1, None),
        ("training", 5, None),
        ("rollouts", 6, None),
    ]
    assert arrivals.rank("rollouts", 1, 5) == 0


def test_what_older_code_has_read_is_in_no_order() -> None:
    arrivals = stored_arrivals(None)
    arrivals.add("rollouts", 1, 5)
    assert (arrivals.is_ordered, arrivals.document()) == (False, None)
