"""Disturbances follow each other in any order: none of them needs what another one destroyed."""

from random import Random

import pytest

from tests.reference_fold.disturbances import DISTURBANCES, Disturbance, garble
from tests.reference_fold.histories import Shape, history
from tests.reference_fold.writers import LoggedEvent

SMALL = Shape(steps=1, groups=1, group_size=1, turns=1)


def cut_short(events: list[LoggedEvent]) -> int:
    return sum(not event.value.endswith(b"}") for event in events)


@pytest.mark.parametrize("disturb", DISTURBANCES)
def test_a_disturbance_works_on_a_log_of_which_most_is_garbage(disturb: Disturbance) -> None:
    events = history("run", 1, SMALL)
    random = Random(1)
    while cut_short(events) < len(events) - 2:
        garble(events, random)

    for seed in range(50):
        disturb(list(events), Random(seed))


def test_an_undisturbed_log_is_drawn_from_as_before_so_that_a_seed_keeps_its_meaning() -> None:
    events = history("run", 1, SMALL)
    expected = Random(5).randrange(len(events))
    changed = list(events)

    next(
        disturbance
        for disturbance in DISTURBANCES
        if disturbance.__name__ == "come_from_later_code"
    )(changed, Random(5))

    assert [at for at, one in enumerate(changed) if one != events[at]] == [expected]
