"""The comparison with the reference fold finds every wrong projector.

Two columns swapped, one forgotten, or nothing written for one type: whatever a projector of ours
could get wrong in a row makes a generated history's rows differ.
"""

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from consumers.fold.projectors.projector import EventContext, Projector
from consumers.fold.projectors.registry import PROJECTORS
from consumers.fold.rows import Operation
from schemas.base import Payload
from schemas.catalogue import PAYLOADS
from schemas.completion import CompletionExecuted, CompletionStepsScored
from schemas.decision import DECISIONS
from schemas.entry import EntryStated
from schemas.rollout import RolloutFinished
from schemas.session import SessionEnded
from schemas.skills import SkillsMeasured
from schemas.task import TaskStated
from schemas.turn import TurnTaken
from schemas.validation import ValidationRecorded
from tests.reference_fold.comparison import differences, plain_tables
from tests.reference_fold.equivalent_mutants import ALIKE, changes_no_row
from tests.reference_fold.histories import Shape, history
from tests.reference_fold.mutants import (
    CUTS,
    SHAPE,
    Log,
    Mutant,
    changes_nothing,
    make_logs,
    make_mutants,
    run,
)
from tests.reference_fold.reference import fold
from tests.support.memory_tables import apply, effects


@pytest.fixture(scope="module")
def logs() -> list[Log]:
    return make_logs()


@pytest.mark.slow
def test_no_mutant_survives(logs: list[Log]) -> None:
    result = run(logs)
    assert result.num_mutants > 7_000
    assert list(map(str, result.survivors)) == []


def test_a_mutant_that_is_left_out_writes_what_the_right_projector_writes(logs: list[Log]) -> None:
    left_out = [mutant for mutant in make_mutants(logs) if changes_no_row(*mutant)]
    assert [str(mutant) for mutant in left_out if not changes_nothing(mutant, logs)] == []
    assert {(mutant.type, mutant.table) for mutant in left_out} >= ALIKE.keys()


def test_every_history_tells_every_type_but_decisions_and_every_event_is_applied() -> None:
    for seed in range(5):
        events = history(f"run-{seed}", seed, SHAPE)
        told = list(effects(events))
        types = {payload.TYPE for payload in {*PAYLOADS} - {*DECISIONS}}
        assert {effect.type for effect in told} == types
        assert [effect.type for effect in told if not effect.operations] == []
        kinds = {event.subject.partition("/")[0] for event in events}
        assert kinds == {
            "training",
            "evaluation",
            "rollout",
            "environment",
            "scoring",
            "annotation",
        }


def test_histories_without_drawn_fields_would_let_mutants_survive() -> None:
    assert run(make_logs(3 * CUTS, Shape(steps=1, groups=1, group_size=1, turns=1))).survivors != []


class Mutated(NamedTuple):
    """A projector of which one type's operations are changed."""

    projector: Projector
    mutant: Mutant

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        operations = self.projector.project(payload, context)
        mutated = [self.mutant.apply(operation) for operation in operations]
        return [operation for operation in mutated if operation is not None]


@pytest.mark.parametrize(
    ("payload", "table", "columns"),
    [
        (RolloutFinished, "rollout", ("parse_errors", "runtime_errors")),
        (RolloutFinished, "rollout", ("turn_first_success",)),
        (RolloutFinished, "rollout", ()),
        (TurnTaken, "action", ("tokens", "logprobs")),
        (TurnTaken, "rollout", ("current_turn",)),
        (TaskStated, "task", ("name", "description")),
        (ValidationRecorded, "validation", ("expected_result", "actual_result")),
        (EntryStated, "entry", ("rows_json", "answer_direct_json")),
        (SessionEnded, "session", ("session_status", "outcome")),
        (CompletionExecuted, "completion", ("outcome_reward", "process_reward")),
        (CompletionStepsScored, "completion_score", ("minimum", "last")),
        (CompletionStepsScored, "step_score", ("score", "label")),
        (SkillsMeasured, "skill_success", ("skill", "trained_skill")),
    ],
)
def test_a_wrong_projector_in_the_registry_gives_other_tables(
    monkeypatch: pytest.MonkeyPatch,
    payload: type[Payload],
    table: str,
    columns: tuple[str, ...],
) -> None:
    events = history("run", 1, SHAPE)
    expected = plain_tables(fold((event.subject, event.value) for event in events).tables)

    def folded() -> list[str]:
        tables: dict[str, dict[str, dict[str, object]]] = {name: {} for name in expected}
        for effect in effects(events):
            apply(tables, effect.operations)
        return differences(expected, tables)

    assert folded() == []
    mutant = Mutant(payload.TYPE, table, columns)
    monkeypatch.setitem(PROJECTORS, payload, Mutated(PROJECTORS[payload], mutant))
    assert folded() != []
