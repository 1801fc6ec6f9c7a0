"""What each main event does to the tables. Read this first: it is the projection, by example.

given: the events before. when: one event, at noon. then: every row that it inserts (all columns
that are not NULL) or changes (the columns that have another value), written by hand. Each case is
applied twice and rebuilt from the log, with the same rows (tests/support/event_to_rows.py).
"""

from uuid import UUID

import pytest

from schemas.base import Progress
from schemas.environment import EnvironmentStarted
from schemas.evaluation import EvaluationFinished
from schemas.group import GroupFinished
from schemas.rollout import RolloutFinished
from schemas.step import StepFinished
from schemas.validation import ValidationRecorded
from tests.support.event_to_rows import NOW, EventToRows, changed, inserted, status_changed
from tests.support.example_run import (
    ENVIRONMENT,
    ENVIRONMENT_REQUESTED,
    ENVIRONMENT_STREAM,
    EVAL,
    EVALUATION_CREATED,
    EVALUATION_STREAM,
    GROUP,
    GROUP_CREATED,
    OTHER_ROLLOUT,
    ROLLOUT,
    ROLLOUT_CREATED,
    ROLLOUT_STREAM,
    STEP,
    STEP_CREATED,
    TASK,
    TRAINING,
    TRAINING_CREATED,
    TRAINING_STREAM,
    VALIDATOR,
    at,
)

pytestmark = pytest.mark.services
DONE = Progress(percent=100.0, avg_turn_time_s=0.5)


@pytest.fixture
def case(migrated_url: str) -> EventToRows:
    return EventToRows(migrated_url)


def test_training_created_inserts_the_training_with_its_recipe(case: EventToRows) -> None:
    case.when(TRAINING_STREAM, TRAINING_CREATED).then(
        inserted(
            "training",
            id=TRAINING,
            run_name="demo",
            kind="rl",
            generation=0,
            model_name="policies/demo",
            learning_rate=0.001,
            batch_size=2,
            group_size=2,
            groups_per_batch=1,
            max_tokens=64,
            temperature=1.0,
            kl_penalty_coef=0.0,
            num_substeps=1,
            max_turns=4,
            seed=7,
            box_type="android",
            current_step=0,
            total_steps=1,
            config_json={"seed": 7},
            status="pending",
            progress_percent=0.0,
            current_phase="initialization",
            created_at=NOW,
            updated_at=NOW,
        ),
        inserted(
            "status_history",
            id="702e2e4f-634b-5f48-aaaf-c828d907cb5e",
            entity_type="training",
            entity_id=TRAINING,
            new_status="pending",
            progress_percent=0.0,
            metadata_json={"type": "cua.training.created"},
            changed_at=NOW,
            created_at=NOW,
            stream=TRAINING_STREAM,
            epoch=1,
            sequence=1,
        ),
    )


def test_step_created_inserts_the_step_and_leaves_the_training_alone(case: EventToRows) -> None:
    case.given(TRAINING_STREAM, TRAINING_CREATED)
    case.when(TRAINING_STREAM, STEP_CREATED).then(
        inserted(
            "step",
            id=STEP,
            training_id=TRAINING,
            generation=0,
            step=1,
            superseded=False,
            batch=0,
            rollout_progress=0.0,
            training_progress=0.0,
            learning_rate=0.001,
            status="pending",
            progress_percent=0.0,
            created_at=NOW,
            updated_at=NOW,
        ),
        status_changed("step", STEP, None, "pending", percent=0.0),
    )


def test_step_finished_completes_the_step_with_its_figures(case: EventToRows) -> None:
    case.given(TRAINING_STREAM, TRAINING_CREATED, STEP_CREATED)
    case.when(
        TRAINING_STREAM,
        StepFinished(
            step_id=UUID(STEP),
            training_ended_at=at("11:59:30"),
            loss=-0.25,
            kl_divergence=0.0625,
            policy_gradient_norm=1.5,
            reward_mean=0.5,
            reward_std=0.5,
            num_trajectories=2,
            num_tokens=12,
            policy_version=1,
            progress=DONE,
            metrics={"optim/lr": 0.001},
        ),
    ).then(
        changed(
            "step",
            STEP,
            status="completed",
            end_time="2026-03-01T11:59:30+00:00",
            training_end_time="2026-03-01T11:59:30+00:00",
            rollout_progress=100.0,
            training_progress=100.0,
            progress_percent=100.0,
            avg_turn_time=0.5,
            loss=-0.25,
            kl_divergence=0.0625,
            policy_gradient_norm=1.5,
            reward_mean=0.5,
            reward_std=0.5,
            num_trajectories=2,
            num_tokens=12,
            policy_version=1,
            metrics_json={"optim/lr": 0.001},
            updated_at=NOW,
        ),
        status_changed("step", STEP, "pending", "completed", percent=100.0),
    )


def test_group_finished_completes_the_group_with_its_rewards(case: EventToRows) -> None:
    case.given(TRAINING_STREAM, TRAINING_CREATED, STEP_CREATED, GROUP_CREATED)
    case.when(
        TRAINING_STREAM,
        GroupFinished(
            group_id=UUID(GROUP),
            completed_rollouts=2,
            reward_mean=0.5,
            reward_std=0.5,
            success_count=1,
            rollout_ids=(UUID(ROLLOUT), UUID(OTHER_ROLLOUT)),
            ended_at=at("11:59:50"),
            progress=DONE,
            metrics={},
        ),
    ).then(
        changed(
            "group",
            GROUP,
            status="completed",
            end_time="2026-03-01T11:59:50+00:00",
            completed_rollouts=2,
            reward_mean=0.5,
            reward_std=0.5,
            success_count=1,
            rollout_ids=[ROLLOUT, OTHER_ROLLOUT],
            progress_percent=100.0,
            avg_turn_time=0.5,
            metrics_json={},
            updated_at=NOW,
        ),
        status_changed("group", GROUP, "pending", "completed", percent=100.0),
    )


def test_rollout_created_inserts_the_rollout_before_it_has_an_environment(
    case: EventToRows,
) -> None:
    case.when(ROLLOUT_STREAM, ROLLOUT_CREATED).then(
        inserted(
            "rollout",
            id=ROLLOUT,
            training_id=TRAINING,
            source_type="step",
            step_id=STEP,
            group_id=GROUP,
            rollout_id="demo/g0/step-1/group-0/env-0/attempt-0",
            batch=0,
            group_num=0,
            env_index=0,
            attempt=0,
            task_id=TASK,
            policy_version=0,
            is_eval=False,
            seed=7,
            current_turn=0,
            max_turns=4,
            temperature=1.0,
            status="pending",
            progress_percent=0.0,
            created_at=NOW,
            updated_at=NOW,
        ),
        status_changed("rollout", ROLLOUT, None, "pending", percent=0.0),
    )


def test_validation_recorded_inserts_the_verdict_and_leaves_the_rollout_alone(
    case: EventToRows,
) -> None:
    case.given(ROLLOUT_STREAM, ROLLOUT_CREATED)
    case.when(
        ROLLOUT_STREAM,
        ValidationRecorded(
            rollout_id=UUID(ROLLOUT),
            validator_id=UUID(VALIDATOR),
            validated_at=at("11:59:40"),
            validation_query="wifi_enabled",
            expected_result="True",
            actual_result="False",
            success=False,
            execution_time_s=0.125,
        ),
    ).then(
        inserted(
            "validation",
            id="a2e78987-9dd1-5a3f-9d9a-6ec21724130a",
            stream=ROLLOUT_STREAM,
            rollout_id=ROLLOUT,
            validator_id=VALIDATOR,
            rank=0,
            validation_time="2026-03-01T11:59:40+00:00",
            validation_query="wifi_enabled",
            expected_result="True",
            actual_result="False",
            success=False,
            execution_time=0.125,
            details_json={},
            created_at=NOW,
        ),
    )


def test_rollout_finished_completes_the_rollout_with_its_score(case: EventToRows) -> None:
    case.given(ROLLOUT_STREAM, ROLLOUT_CREATED)
    case.when(
        ROLLOUT_STREAM,
        RolloutFinished(
            task_ended_at=at("11:59:40"),
            rollout_time_s=20.0,
            validation_time_s=0.125,
            task_completed=True,
            task_success=True,
            agent_reported_success=True,
            validation_passed=True,
            num_turns=3,
            reward=1.0,
            num_total_actions=4,
            consecutive_repeated_actions=1,
            parse_errors=0,
            tool_name_errors=0,
            tool_arg_errors=0,
            runtime_errors=1,
            ran_out_of_turns=False,
            attempted_completion=True,
            turn_first_success=None,
            turn_task_completed=3,
            num_tokens=6,
            errors=("click outside the screen",),
            summary={"task": "enable_wifi"},
        ),
    ).then(
        changed(
            "rollout",
            ROLLOUT,
            status="completed",
            progress_percent=100.0,
            end_time=NOW,
            task_end_time="2026-03-01T11:59:40+00:00",
            rollout_time=20.0,
            validation_time=0.125,
            task_completed=True,
            task_success=True,
            agent_reported_success=True,
            validation_passed=True,
            num_turns=3,
            reward=1.0,
            num_tokens=6,
            num_total_actions=4,
            consecutive_repeated_actions=1,
            parse_errors=0,
            tool_name_errors=0,
            tool_arg_errors=0,
            runtime_errors=1,
            ran_out_of_turns=False,
            attempted_completion=True,
            turn_task_completed=3,
            errors=["click outside the screen"],
            summary_json={"task": "enable_wifi"},
            updated_at=NOW,
        ),
        status_changed("rollout", ROLLOUT, "pending", "completed"),
    )


def test_environment_started_records_who_answered_and_since_when(case: EventToRows) -> None:
    case.given(ENVIRONMENT_STREAM, ENVIRONMENT_REQUESTED)
    case.when(
        ENVIRONMENT_STREAM, EnvironmentStarted(gbox_id="sim-7", started_at=at("11:59:10"))
    ).then(
        changed(
            "environment",
            ENVIRONMENT,
            status="running",
            gbox_id="sim-7",
            creation_time="2026-03-01T11:59:10+00:00",
            updated_at=NOW,
        ),
        status_changed("environment", ENVIRONMENT, "pending", "running"),
    )


def test_evaluation_finished_completes_the_eval_with_its_success_rate(case: EventToRows) -> None:
    case.given(EVALUATION_STREAM, EVALUATION_CREATED)
    case.when(
        EVALUATION_STREAM,
        EvaluationFinished(
            kind="scheduled",
            completed_tasks=8,
            eval_time_s=40.0,
            success_rate=0.75,
            avg_reward=0.75,
            avg_turns=3.5,
            successful_tasks=6,
            ended_at=at("11:59:59"),
            progress=DONE,
            metrics={"standard_error": 0.125},
        ),
    ).then(
        changed(
            "eval",
            EVAL,
            status="completed",
            end_time="2026-03-01T11:59:59+00:00",
            completed_tasks=8,
            eval_time=40.0,
            success_rate=0.75,
            avg_reward=0.75,
            avg_turns=3.5,
            successful_tasks=6,
            progress_percent=100.0,
            avg_turn_time=0.5,
            metrics_json={"standard_error": 0.125},
            updated_at=NOW,
        ),
        status_changed("eval", EVAL, "pending", "completed", percent=100.0),
    )
