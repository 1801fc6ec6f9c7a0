"""Records of the topic of assignments."""

import json
from uuid import UUID

import pytest

from producer.errors import MismatchError
from producer.workers.assignment import Assignment, without_turns
from producer.workers.worker import read_assignment
from tests.support.scripted import plan

ASSIGNMENT = Assignment(
    training_id=UUID(int=1),
    config={"seed": 3},
    plan=without_turns(plan(0)),
    policy_name="oracle",
    policy_version=2,
    published=None,
    since={"cua.rollouts/3": 7},
    blobs="s3://bucket/blobs",
)


def test_an_assignment_is_read_as_it_was_sent() -> None:
    assert read_assignment(ASSIGNMENT.value) == ASSIGNMENT


def test_an_assignment_of_another_release_is_left_to_a_worker_that_can_read_it() -> None:
    later = {**json.loads(ASSIGNMENT.value), "plan": {"name": "of a later release"}}
    with pytest.raises(MismatchError, match="install that release on this worker"):
        read_assignment(json.dumps(later).encode())


def test_a_record_of_somebody_else_is_skipped() -> None:
    for value in (b"", b"hello", b"[]", b'{"id": 1}'):
        assert read_assignment(value) is None
