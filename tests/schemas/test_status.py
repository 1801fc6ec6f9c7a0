"""The state machines, transition by transition."""

import pytest

from schemas.status import MACHINES, IllegalTransitionError, has_reached, next_status
from tests.reference_fold import reference_states

LEGAL = [
    ("training", "pending", "initializing"),
    ("training", "initializing", "running"),
    ("training", "running", "paused"),
    ("training", "paused", "running"),
    ("training", "running", "completed"),
    ("training", "pending", "cancelled"),
    ("rollout", "pending", "env_creation"),
    ("rollout", "env_creation", "failed"),
    ("rollout", "running", "completed"),
    ("rollout", "pending", "running"),
    ("step", "pending", "rollout_collecting"),
    ("step", "rollout_running", "training"),
    ("step", "training", "failed"),
    ("environment", "creating", "error"),
    ("environment", "running", "terminated"),
    ("environment", "pending", "terminated"),
    ("eval", "running", "cancelled"),
    ("group", "running", "failed"),
]
ILLEGAL = [
    ("training", "running", "initializing"),
    ("training", "completed", "running"),
    ("training", "completed", "failed"),
    ("training", "pending", "paused"),
    ("rollout", "completed", "running"),
    ("rollout", "running", "env_creation"),
    ("rollout", "failed", "completed"),
    ("step", "training", "rollout_running"),
    ("step", "completed", "failed"),
    ("step", "pending", "cancelled"),
    ("group", "running", "cancelled"),
    ("environment", "terminated", "error"),
    ("environment", "running", "failed"),
    ("baseline", "completed", "running"),
]


@pytest.mark.parametrize(("entity", "old", "new"), LEGAL)
def test_a_documented_transition_is_a_change(entity: str, old: str, new: str) -> None:
    assert next_status(entity, old, new, creates=False)


@pytest.mark.parametrize(("entity", "old", "new"), ILLEGAL)
def test_any_other_transition_is_refused(entity: str, old: str, new: str) -> None:
    with pytest.raises(IllegalTransitionError):
        next_status(entity, old, new, creates=False)


@pytest.mark.parametrize("entity", list(MACHINES))
def test_every_transition_is_the_one_that_the_reference_fold_has(entity: str) -> None:
    assert set(MACHINES) == set(reference_states.MACHINES)
    states = MACHINES[entity].states
    for old in states:
        for new in states - {MACHINES[entity].initial}:
            try:
                found = next_status(entity, old, new, creates=False)
            except IllegalTransitionError:
                found = None
            assert found == reference_states.transition(entity, old, new, resumes=False), (old, new)


@pytest.mark.parametrize("old", ["running", "paused", "failed", "cancelled", "completed"])
def test_only_a_resumption_returns_a_training_to_initializing(old: str) -> None:
    assert next_status("training", old, "initializing", creates=False, resumes=True)
    with pytest.raises(IllegalTransitionError):
        next_status("training", old, "initializing", creates=False)


@pytest.mark.parametrize("entity", list(MACHINES))
def test_restating_the_current_state_is_no_change(entity: str) -> None:
    for state in MACHINES[entity].states:
        assert not next_status(entity, state, state, creates=False)


@pytest.mark.parametrize("entity", list(MACHINES))
def test_nothing_leaves_an_end_but_a_resumption(entity: str) -> None:
    machine = MACHINES[entity]
    for end in machine.ends:
        for new in machine.states - {end}:
            with pytest.raises(IllegalTransitionError):
                next_status(entity, end, new, creates=False)


def test_an_entity_is_created_once_and_as_pending() -> None:
    assert next_status("rollout", None, "pending", creates=True)
    with pytest.raises(IllegalTransitionError):
        next_status("rollout", "pending", "pending", creates=True)
    with pytest.raises(IllegalTransitionError):
        next_status("rollout", None, "running", creates=True)
    with pytest.raises(IllegalTransitionError):
        next_status("rollout", None, "running", creates=False)


@pytest.mark.parametrize(
    ("entity", "current", "status"),
    [
        ("step", "pending", "pending"),
        ("step", "training", "rollout_collecting"),
        ("step", "completed", "pending"),
        ("rollout", "running", "env_creation"),
        ("training", "running", "initializing"),
        ("training", "paused", "paused"),
        ("environment", "terminated", "running"),
        ("group", "failed", "failed"),
    ],
)
def test_a_status_at_or_before_the_current_one_is_reached(
    entity: str, current: str, status: str
) -> None:
    assert has_reached(entity, current, status)


@pytest.mark.parametrize(
    ("entity", "current", "status"),
    [
        ("step", "pending", "training"),
        ("step", "training", "completed"),
        ("step", "training", "failed"),
        ("step", "failed", "training"),
        ("step", "failed", "pending"),
        ("training", "paused", "running"),
        ("training", "running", "paused"),
        ("rollout", "completed", "failed"),
        ("rollout", "cancelled", "completed"),
        ("environment", "error", "creating"),
    ],
)
def test_a_later_status_or_one_beside_the_path_is_not_reached(
    entity: str, current: str, status: str
) -> None:
    assert not has_reached(entity, current, status)


@pytest.mark.parametrize("entity", list(MACHINES))
def test_what_was_reached_is_never_a_transition_of_the_path(entity: str) -> None:
    machine = MACHINES[entity]
    for current in machine.states:
        for status in machine.states:
            if has_reached(entity, current, status) and (current, status) not in machine.extra:
                assert not machine.allows(current, status)
