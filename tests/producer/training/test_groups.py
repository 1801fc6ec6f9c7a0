"""How the groups of a step come to their end when devices die."""

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from producer.config import read_config
from producer.emit import Emitter, StreamWriter
from producer.environments.environment import Environment
from producer.errors import CuaTrainError
from producer.policy.learner import Learner
from producer.resume.training_history import TrainingHistory
from producer.rewards.named import binary
from producer.rollouts.plan import (
    GroupOutcome,
    GroupPlan,
    Recalled,
    RolloutPlan,
    RolloutSource,
    StatedTask,
)
from producer.seeds import derived_seed
from producer.tasks.statements import task_facts
from producer.training.groups import GroupRunner
from producer.training.progress import ProgressEvents, ProgressTracker, Unit
from producer.training.session import Session
from schemas import ids
from schemas.base import Payload
from schemas.catalogue import stream
from schemas.group import GroupCreated, GroupFailed, GroupFinished
from schemas.installation import read_installation
from tests.support.scripted import (
    WIFI,
    Devices,
    ScriptedEnvironment,
    ScriptedPolicy,
    click_then_stop,
)

TRAINING = ids.training_id("t")
STEP = ids.step_id(TRAINING, 0, 1)
GROUP = ids.group_id(STEP, 0)
GROUP_SIZE = 3
FIRST_SEED_OF_PLACE_1 = derived_seed(0, "sampling", 0, "step-1", 0, 1, 0)


@pytest.fixture
def emitter(tmp_path: Path) -> Iterator[Emitter]:
    with Emitter.open(read_installation({"CUA_HOME": str(tmp_path)})) as opened:
        yield opened


def run_group(
    emitter: Emitter,
    make: Callable[[RolloutPlan], Environment],
    *,
    policy: str,
    min_group_size: int = 2,
    recalled: Recalled | None = None,
    begin_stream: Callable[[StreamWriter], None] = lambda _stream: None,
) -> tuple[GroupOutcome, list[Payload], list[RolloutPlan]]:
    """The outcome, the events of the source, and the plans that were begun."""
    stated, validator = task_facts(WIFI)
    own = emitter.stream(stream("training", TRAINING))
    begin_stream(own)
    begun: list[RolloutPlan] = []

    def begin(plan: RolloutPlan) -> Environment:
        begun.append(plan)
        return make(plan)

    unit = Unit(GROUP_SIZE, 4, is_step=True)
    config = read_config({"failure_policy": policy, "max_turns": 20})
    session = Session(
        config=config,
        run_name="t",
        training_id=TRAINING,
        generation=0,
        emitter=emitter,
        stream=own,
        learner=cast("Learner", ScriptedPolicy(click_then_stop)),
        make_environment=begin,
        history=TrainingHistory(training_id=TRAINING),
        clock=lambda: datetime.now(UTC),
        stop=threading.Event(),
        read_blob=lambda ref: ref.encode(),
        progress=ProgressEvents(own, ProgressTracker(8, [unit])),
        installation=read_installation({}),
        reward=binary,
    )
    task = StatedTask(WIFI, stated.id, validator.id if validator else None)
    runner = GroupRunner(
        session,
        RolloutSource("step", STEP, "step-1", 0, 0, own.subject),
        [GroupPlan(0, GROUP, task, (7,) * GROUP_SIZE)],
        stream=own,
        unit=unit,
        temperature=1.0,
        min_group_size=min_group_size,
        on_progress=lambda: None,
        recalled=Recalled() if recalled is None else recalled,
    )
    (outcome,) = runner.run()
    emitter.flush()
    events = emitter.log.read_back(own.subject, {}).events
    return outcome, [event.payload for event in events], begun


def test_a_failed_attempt_is_tried_again_with_a_fresh_device_and_its_place_is_filled(
    emitter: Emitter,
) -> None:
    devices = Devices()
    outcome, emitted, begun = run_group(
        emitter,
        lambda plan: ScriptedEnvironment(
            devices, fails_to_open=plan.env_index == 1 and plan.attempt < 2
        ),
        policy="retry",
    )
    assert [result.plan.attempt for result in outcome.results] == [0, 2, 0]
    assert sorted(plan.attempt for plan in begun if plan.env_index == 1) == [0, 1, 2]
    assert isinstance(emitted[-1], GroupFinished)
    assert (
        emitted[-1].reward_mean,
        emitted[-1].reward_std,
        emitted[-1].success_count,
        emitted[-1].completed_rollouts,
    ) == (1.0, 0.0, 3, 3)


def test_a_place_is_given_up_after_its_attempts_and_the_group_goes_on_without_it(
    emitter: Emitter,
) -> None:
    outcome, emitted, begun = run_group(
        emitter,
        lambda plan: ScriptedEnvironment(Devices(), fails_to_open=plan.env_index == 1),
        policy="retry",
    )
    assert len(outcome.results) == 2
    assert not outcome.is_failed
    assert len([plan for plan in begun if plan.env_index == 1]) == 3
    assert isinstance(emitted[-1], GroupFinished)
    assert emitted[-1].completed_rollouts == 2


def test_a_group_with_too_few_scored_rollouts_fails_and_is_never_scored_with_zeros(
    emitter: Emitter,
) -> None:
    outcome, emitted, _ = run_group(
        emitter,
        lambda plan: ScriptedEnvironment(Devices(), fails_to_open=plan.env_index > 0),
        policy="min_viable_group",
    )
    assert outcome.is_failed
    assert isinstance(emitted[-1], GroupFailed)
    assert emitted[-1].completed_rollouts == 1


def test_fail_fast_stops_at_the_first_failed_attempt_and_says_which(emitter: Emitter) -> None:
    with pytest.raises(CuaTrainError, match=r"env-2.*no device left"):
        run_group(
            emitter,
            lambda plan: ScriptedEnvironment(Devices(), fails_to_open=plan.env_index == 2),
            policy="fail_fast",
        )


def sampling_seeds(begun: list[RolloutPlan]) -> dict[tuple[int, int], int]:
    return {(plan.env_index, plan.attempt): plan.sampling_seed for plan in begun}


def dies_at_first_on_place_1(plan: RolloutPlan) -> ScriptedEnvironment:
    return ScriptedEnvironment(
        Devices(), fails_to_open=plan.env_index == 1 and plan.sampling_seed == FIRST_SEED_OF_PLACE_1
    )


def test_an_attempt_after_a_killed_process_draws_what_the_lost_one_drew(
    emitter: Emitter, tmp_path: Path
) -> None:
    with Emitter.open(read_installation({"CUA_HOME": str(tmp_path / "undisturbed")})) as other:
        _, _, undisturbed = run_group(other, dies_at_first_on_place_1, policy="retry")
    seeds = sampling_seeds(undisturbed)
    assert len(set(seeds.values())) == 4

    # Place 0 was lost with two processes; place 1 failed once, then was lost with its second
    # attempt; place 2 was not begun.
    lost = Recalled(next_attempt={(0, 0): 2, (0, 1): 2}, num_failed={(0, 1): 1})
    outcome, _, begun = run_group(emitter, dies_at_first_on_place_1, policy="retry", recalled=lost)

    assert sampling_seeds(begun) == {
        (0, 2): seeds[0, 0],
        (1, 2): seeds[1, 1],
        (2, 0): seeds[2, 0],
    }
    assert [result.plan.attempt for result in outcome.results] == [2, 2, 0]


def test_attempts_of_a_killed_process_do_not_use_up_the_retries(emitter: Emitter) -> None:
    _, _, begun = run_group(
        emitter,
        lambda plan: ScriptedEnvironment(Devices(), fails_to_open=plan.env_index == 0),
        policy="retry",
        recalled=Recalled(next_attempt={(0, 0): 5}),
    )
    assert [plan.attempt for plan in begun if plan.env_index == 0] == [5, 6, 7]


def test_a_group_that_failed_before_a_kill_stays_failed_and_runs_nothing(emitter: Emitter) -> None:
    def fail(stream: StreamWriter) -> None:
        stream.emit(
            GroupCreated(
                group_id=GROUP,
                source_type="step",
                source_id=STEP,
                group_num=0,
                batch=0,
                num_rollouts=GROUP_SIZE,
            )
        )
        stream.emit(
            GroupFailed(
                group_id=GROUP,
                completed_rollouts=0,
                error_message="only 0 of 3 rollouts ended",
                ended_at=datetime.now(UTC),
            )
        )

    outcome, _, begun = run_group(
        emitter, lambda _plan: ScriptedEnvironment(Devices()), policy="retry", begin_stream=fail
    )
    assert begun == []
    assert (outcome.is_failed, outcome.results) == (True, ())
