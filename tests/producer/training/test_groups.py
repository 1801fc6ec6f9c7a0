"""How the groups of a step come to their end when devices die."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from producer.emit import Emitter, StreamWriter
from producer.environments.environment import Environment
from producer.errors import CuaTrainError
from producer.rollouts.engine import RolloutEngine
from producer.rollouts.episode import EpisodeSettings
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
from producer.training.groups import GroupRunner, GroupSettings
from producer.training.progress import ProgressTracker, Unit
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
    stated, validator = task_facts(WIFI)
    source_stream = emitter.stream(stream("training", TRAINING))
    begin_stream(source_stream)
    begun: list[RolloutPlan] = []

    def make_engine(on_begin: Callable[[RolloutPlan], None]) -> RolloutEngine:
        def begin(plan: RolloutPlan) -> None:
            begun.append(plan)
            on_begin(plan)

        return RolloutEngine(
            policy=ScriptedPolicy(click_then_stop),
            make_environment=make,
            settings=EpisodeSettings(
                TRAINING, 12, 1800.0, 30.0, turn_cost=0.0, parse_error_cost=0.0
            ),
            max_concurrent=8,
            emitter=emitter,
            clock=lambda: datetime.now(UTC),
            on_begin=begin,
            check_stop=lambda: None,
        )

    unit = Unit(GROUP_SIZE, 4, is_step=True)
    runner = GroupRunner(
        RolloutSource("step", STEP, "step-1", 0, 0, stream("training", TRAINING)),
        [
            GroupPlan(
                0,
                GROUP,
                StatedTask(WIFI, stated.id, validator.id if validator else None),
                (7,) * GROUP_SIZE,
            )
        ],
        settings=GroupSettings(
            "t",
            0,
            20,
            1.0,
            policy,
            max_attempts=3,
            min_group_size=min_group_size,
            claim_epoch=1,
        ),
        recalled=recalled or Recalled(),
        stream=source_stream,
        make_engine=make_engine,
        tracker=ProgressTracker(8, [unit]),
        unit=unit,
        on_progress=lambda: None,
        clock=lambda: datetime.now(UTC),
    )
    (outcome,) = runner.run()
    emitter.flush()
    events = emitter.log.read_back(source_stream.subject, {}).events
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
