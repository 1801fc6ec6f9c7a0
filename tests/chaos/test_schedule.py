"""The schedule of `make chaos`: a seed decides it, and it has what was asked for."""

from hypothesis import given
from hypothesis import strategies as st

from tests.chaos.schedule import (
    KAFKA_ONLY,
    KILLS,
    LEASE_EXPIRED_S,
    SECONDS,
    STOPS,
    Disturbance,
    Kind,
    draw,
)

SEEDS, NUM_KILLS = st.integers(0, 1 << 40), st.integers(1, 120)


@given(seed=SEEDS, kills=NUM_KILLS, has_kafka=st.booleans())
def test_a_seed_gives_the_same_schedule_again_with_every_kill_asked_for(
    seed: int, kills: int, has_kafka: bool
) -> None:
    drawn = draw(seed, kills=kills, events=10_000, has_kafka=has_kafka)

    assert drawn == draw(seed, kills=kills, events=10_000, has_kafka=has_kafka)
    assert sum(item.kind in KILLS for item in drawn) == kills
    assert [item.at_event for item in drawn] == sorted(item.at_event for item in drawn)
    assert all(200 <= item.at_event <= 9_500 for item in drawn)


@given(seed=SEEDS, has_kafka=st.booleans())
def test_ten_kills_bring_every_kind_that_the_log_can_have(seed: int, has_kafka: bool) -> None:
    found = {item.kind for item in draw(seed, kills=10, events=50_000, has_kafka=has_kafka)}
    assert found == set(Kind) - (set() if has_kafka else KAFKA_ONLY)


@given(seed=SEEDS, kills=st.integers(100, 200))
def test_a_hundred_kills_come_with_fifty_take_overs(seed: int, kills: int) -> None:
    drawn = draw(seed, kills=kills, events=1_000_000, has_kafka=True)
    assert sum(item.kind is Kind.TAKE_OVER for item in drawn) == kills // 2


def lasts_as_documented(one: Disturbance) -> bool:
    low, high = SECONDS.get(one.kind, (0.0, 0.0))
    return low <= one.seconds <= high


@given(seed=SEEDS, kills=NUM_KILLS)
def test_the_first_stopped_projector_outlasts_its_lease_and_nothing_else_lasts_longer_than_it_says(
    seed: int, kills: int
) -> None:
    drawn = draw(seed, kills=kills, events=10_000, has_kafka=True)
    stopped = [item for item in drawn if item.kind is Kind.STOP_PROJECTOR]
    assert [item.seconds for item in stopped[:1]] in ([], [LEASE_EXPIRED_S])
    others = [item for item in drawn if item not in stopped[:1]]
    assert all(lasts_as_documented(other) for other in others)
    assert all(other.seconds > 0 for other in others if other.kind in STOPS)
