"""Where a topic's keys are is found out once per process, however many threads ask."""

import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

import pytest

from producer.errors import UnreachableError
from producer.log.assigned_partitions import AssignedPartitions

TRAINING, ROLLOUTS = ("id-of-training", 12), ("id-of-rollouts", 24)
TOPICS = {"cua.training": TRAINING, "cua.rollouts": ROLLOUTS}
NUMBERS = {"cua.training": 12, "cua.rollouts": 6}
LIMIT_S = 20


def not_asked(topics: Collection[str]) -> dict[str, int]:
    raise AssertionError(topics)


def test_whoever_comes_second_waits_for_the_first_and_finds_out_nothing() -> None:
    assigned = AssignedPartitions()
    is_asked, may_answer = threading.Event(), threading.Event()

    def find(topics: Collection[str]) -> dict[str, int]:
        assert sorted(topics) == sorted(NUMBERS)
        is_asked.set()
        assert may_answer.wait(LIMIT_S)
        return NUMBERS

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(assigned.of, TOPICS, find)
        assert is_asked.wait(LIMIT_S)
        second = threads.submit(assigned.of, TOPICS, not_asked)
        may_answer.set()
        assert first.result(LIMIT_S) == second.result(LIMIT_S) == NUMBERS


def test_a_thread_that_gets_no_answer_holds_up_the_next_for_so_long_only() -> None:
    assigned = AssignedPartitions(wait_s=0.01)
    is_asked, may_answer = threading.Event(), threading.Event()

    def find_late(_: Collection[str]) -> dict[str, int]:
        is_asked.set()
        assert may_answer.wait(LIMIT_S)
        return NUMBERS

    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(assigned.of, TOPICS, find_late)
        assert is_asked.wait(LIMIT_S)
        assert assigned.of(TOPICS, lambda _: NUMBERS) == NUMBERS
        may_answer.set()
        assert first.result(LIMIT_S) == NUMBERS
    assert assigned.of(TOPICS, not_asked) == NUMBERS


def test_a_failure_is_not_remembered() -> None:
    assigned = AssignedPartitions()

    def fail(_: Collection[str]) -> dict[str, int]:
        message = "away"
        raise UnreachableError(message)

    for _ in range(2):
        with pytest.raises(UnreachableError):
            assigned.of(TOPICS, fail)
    assert assigned.of(TOPICS, lambda _: NUMBERS) == NUMBERS


def test_only_a_topic_that_grew_or_was_made_anew_is_looked_at_again() -> None:
    assigned = AssignedPartitions()
    assigned.of(TOPICS, lambda _: NUMBERS)
    asked: list[str] = []

    def find(topics: Collection[str]) -> dict[str, int]:
        asked.extend(topics)
        return dict.fromkeys(topics, 3)

    grown = {"cua.training": ("id-of-training", 24), "cua.rollouts": ROLLOUTS}
    assert assigned.of(grown, find) == {"cua.training": 3, "cua.rollouts": 6}
    anew = {"cua.training": ("another-id", 12), "cua.rollouts": ROLLOUTS}
    assert assigned.of(anew, find) == {"cua.training": 3, "cua.rollouts": 6}
    assert asked == ["cua.training", "cua.training"]
