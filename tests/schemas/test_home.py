"""Every stream has one home, and a log's id says where that is."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.home import Home, describe_growth, find_home, home_partition, name_sizes
from schemas.kafka_log import kafka_log_id
from tests.reference_fold.reference_home import Placed, is_foreign

KINDS = {
    "training": "training",
    "evaluation": "training",
    "annotation": "training",
    "record": "training",
    "rollout": "rollouts",
    "environment": "rollouts",
    "scoring": "rollouts",
}
IDS = {"cua.training": "a", "cua.rollouts": "b"}


def log_id(training: int, rollouts: int) -> str:
    return kafka_log_id("Tr-_1", IDS, {"cua.training": training, "cua.rollouts": rollouts})


@given(
    kind=st.sampled_from(sorted(KINDS)),
    owner=st.uuids(),
    training=st.integers(1, 40),
    rollouts=st.integers(1, 40),
    prefix=st.sampled_from(["", "cua.", "training-"]),
)
def test_a_streams_home_is_where_the_reference_has_it(
    kind: str, owner: UUID, training: int, rollouts: int, prefix: str
) -> None:
    name = f"{kind}/{owner}"
    number = {"training": training, "rollouts": rollouts}[KINDS[kind]]

    home = find_home(name, log_id(training, rollouts))

    assert home == Home(KINDS[kind], home_partition(name, number))
    for topic in ("training", "rollouts"):
        for partition in range(number):
            is_at = home.is_at(prefix + topic, partition)
            assert is_at != is_foreign(Placed(prefix + topic, partition, name, b""), number)


def test_an_unknown_kind_has_no_home() -> None:
    with pytest.raises(ValueError, match="unknown kind of stream"):
        find_home("x/y", "local-1")


@pytest.mark.parametrize("number", [12, 13, 100])
def test_twelve_partitions_and_more_are_one_log(number: int) -> None:
    assert log_id(number, 12) == log_id(12, 40) == kafka_log_id("Tr-_1", IDS, {})
    assert describe_growth(log_id(12, 12), log_id(number, number)) is None
    assert name_sizes({"cua.training": number}) == ""


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ((12, 3), (12, 5), "(topic rollouts had 3 partitions and has 5 now)"),
        ((12, 3), (12, 30), "(topic rollouts had 3 partitions and has 12 or more now)"),
        (
            (1, 3),
            (2, 4),
            "(topic training had 1 partitions and has 2 now; topic rollouts had 3 partitions and"
            " has 4 now)",
        ),
    ],
)
def test_a_small_topic_that_grows_is_another_log(
    before: tuple[int, int], now: tuple[int, int], said: str
) -> None:
    problem = describe_growth(log_id(*before), log_id(*now))
    assert problem is not None
    assert said in problem
    assert "choose another CUA_TOPIC_PREFIX" in problem


@pytest.mark.parametrize("other", ["", "local-1", "kafka-Tr-_1-000000000000:rollouts=3"])
def test_another_log_has_not_grown(other: str) -> None:
    assert describe_growth(other, log_id(12, 3)) is None
    assert describe_growth(log_id(12, 3), other) is None
