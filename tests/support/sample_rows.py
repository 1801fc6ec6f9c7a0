"""Rows of a small training, written through the ORM.

Two generations, an evaluation before and after, groups, one whole rollout.

Tests of what reads tables start from these; how tables come from events is the projection's tests'
business.
"""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

from sqlalchemy.orm import Session

from consumers.tables import (
    Action,
    Base,
    Baseline,
    Environment,
    Eval,
    Group,
    Obs,
    Rollout,
    StatusHistory,
    Step,
    Task,
    Training,
    Turn,
    Validation,
    Validator,
)

NAMESPACE = UUID("00000000-0000-5000-8000-000000000001")
START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def named(name: str) -> UUID:
    """The id of the sample's row of this name."""
    return uuid5(NAMESPACE, name)


def at(seconds: float) -> datetime:
    """A time of the sample."""
    return START + timedelta(seconds=seconds)


def _life(status: str, second: float, progress: float = 100.0) -> dict[str, Any]:
    return {
        "status": status,
        "progress_percent": progress,
        "created_at": at(second),
        "updated_at": at(second + 1),
    }


def training_row(name: str, status: str = "running", second: float = 0, **columns: Any) -> Training:
    """A training called `name`."""
    defaults: dict[str, Any] = {
        "id": named(name),
        "run_name": name,
        "kind": "rl",
        "generation": 0,
        "model_name": "policies/demo",
        "learning_rate": 1e-3,
        "batch_size": 4,
        "group_size": 2,
        "groups_per_batch": 2,
        "max_tokens": 16,
        "temperature": 1.0,
        "kl_penalty_coef": 0.0,
        "num_substeps": 1,
        "max_turns": 6,
        "seed": 0,
        "box_type": "android",
        "current_step": 2,
        "total_steps": 3,
        "config_json": {},
        **_life(status, second, 50.0),
    }
    return Training(**(defaults | columns))


def step_row(name: str, training: str, step: int, generation: int = 0, **columns: Any) -> Step:
    """A completed step."""
    defaults: dict[str, Any] = {
        "id": named(name),
        "training_id": named(training),
        "generation": generation,
        "step": step,
        "superseded": False,
        "batch": step - 1,
        "rollout_progress": 100.0,
        "training_progress": 100.0,
        "learning_rate": 1e-3,
        "loss": 0.25,
        "kl_divergence": 0.001,
        "policy_gradient_norm": 1.5,
        "reward_mean": 0.5,
        "reward_std": 0.5,
        "num_trajectories": 2,
        "num_tokens": 34,
        **_life("completed", step * 10),
    }
    return Step(**(defaults | columns))


def _evaluation(training: str, step: int, success: float, **columns: Any) -> dict[str, Any]:
    defaults: dict[str, Any] = {
        "training_id": named(training),
        "generation": 0,
        "step": step,
        "superseded": False,
        "current_task_index": 2,
        "total_tasks": 2,
        "completed_tasks": 2,
        "eval_time": 4.0,
        "success_rate": success,
        "avg_reward": success,
        "avg_turns": 3.0,
        "successful_tasks": round(success * 2),
        "metrics_json": {"standard_error": 0.05},
        **_life("completed", step * 10 + 5),
    }
    return defaults | columns


def baseline_row(name: str, training: str, success: float, **columns: Any) -> Baseline:
    """The evaluation before the first step."""
    return Baseline(id=named(name), **_evaluation(training, 0, success, **columns))


def eval_row(name: str, training: str, step: int, success: float, **columns: Any) -> Eval:
    """A scheduled evaluation unless `columns` say otherwise."""
    columns = {"kind": "scheduled", **columns}
    return Eval(id=named(name), **_evaluation(training, step, success, **columns))


def rollout_row(name: str, group: str, env_index: int, **columns: Any) -> Rollout:
    """A rollout of step-1 unless `columns` say otherwise."""
    defaults: dict[str, Any] = {
        "id": named(name),
        "training_id": named("demo"),
        "source_type": "step",
        "step_id": named("step-1"),
        "group_id": named(group),
        "env_id": named("environment"),
        "rollout_id": name,
        "batch": 0,
        "group_num": 0,
        "env_index": env_index,
        "attempt": 0,
        "task_id": named("task"),
        "policy_version": 0,
        "is_eval": False,
        "seed": 7,
        "current_turn": 1,
        "max_turns": 6,
        "temperature": 1.0,
        "num_turns": 1,
        "reward": float(env_index),
        "task_success": bool(env_index),
        "validation_passed": bool(env_index),
        **_life("completed", 11),
    }
    return Rollout(**(defaults | columns))


def group_row(name: str, group_num: int, **columns: Any) -> Group:
    """A group of step-1 unless `columns` say otherwise."""
    source = {"step_id": named("step-1")} if not columns.keys() & {"eval_id", "baseline_id"} else {}
    defaults: dict[str, Any] = {
        "id": named(name),
        "training_id": named("demo"),
        "superseded": False,
        "source_type": "step",
        "group_num": group_num,
        "batch": 0,
        "num_rollouts": 2,
        "completed_rollouts": 2,
        "reward_mean": 0.5,
        "reward_std": 0.5,
        **source,
        **_life("completed", 11),
    }
    return Group(**(defaults | columns))


def task_row(name: str, second: float, **columns: Any) -> Task:
    """A definition of the task `wifi`, stated at `second`."""
    defaults: dict[str, Any] = {
        "id": named(name),
        "task_id": "wifi",
        "definition_hash": name,
        "name": "Wi-Fi on",
        "description": "Turn Wi-Fi on.",
        "difficulty": "easy",
        "category": "settings",
        "max_steps": 6,
        "validation_query": "wifi_enabled",
        "expected_result": "True",
        "tags": [],
        "prerequisites": [],
        "source_type": "demo_training",
        "created_at": at(second),
        "updated_at": at(second),
    }
    return Task(**(defaults | columns))


def validation_row(
    name: str, stream: str, rank: int, *, success: bool, second: float
) -> Validation:
    """A verdict on rollout-1."""
    return Validation(
        id=named(name),
        stream=stream,
        rollout_id=named("rollout-1"),
        validator_id=named("validator"),
        rank=rank,
        validation_time=at(second),
        validation_query="wifi_enabled",
        expected_result="True",
        actual_result=str(success),
        success=success,
        execution_time=0.01,
        details_json={},
        created_at=at(second),
    )


def history_row(
    entity: str, name: str, epoch: int, sequence: int, change: tuple[str | None, str]
) -> StatusHistory:
    """One change of status."""
    return StatusHistory(
        id=named(f"{entity}/{name}/{epoch}/{sequence}"),
        entity_type=entity,
        entity_id=named(name),
        old_status=change[0],
        new_status=change[1],
        progress_percent=None,
        metadata_json={"type": "cua.test"},
        changed_at=at(sequence),
        created_at=at(sequence),
        stream=f"{entity}/{named(name)}",
        epoch=epoch,
        sequence=sequence,
    )


def turn_rows(screenshot_uri: str, said: str, action: dict[str, Any]) -> list[Base]:
    """The one turn of rollout-1: a screenshot, what the policy said, one action."""
    return [
        Turn(
            id=named("turn-1"),
            rollout_id=named("rollout-1"),
            turn=1,
            start_time=at(11),
            end_time=at(12),
            turn_time=1.0,
            reward=1.0,
            episode_done=True,
            policy_version=0,
            metrics_json={"sample_s": 0.2},
            model_response=said,
            stop_reason="stop",
            num_tokens=6,
            created_at=at(12),
        ),
        Action(
            id=named("action-1"),
            turn_id=named("turn-1"),
            action_index=0,
            action_type=action.get("type"),
            action_json=action,
            tool_name="click",
            tool_args={},
            created_at=at(12),
        ),
        Obs(
            id=named("obs-1"),
            turn_id=named("turn-1"),
            obs_type="screenshot_before",
            screenshot_uri=screenshot_uri,
            created_at=at(12),
        ),
        Obs(
            id=named("obs-2"),
            turn_id=named("turn-1"),
            obs_type="text",
            text_content=said,
            created_at=at(12),
        ),
    ]


def write_sample(
    session: Session, screenshot_uri: str = "blob:sha256:" + "0" * 64, said: str = "click(31,52)"
) -> None:
    """The whole sample, committed.

    `demo`: steps 1 and 2 of generation 0, of which 2 was superseded and trained again in generation
    1; success 0.5 before and 1.0 after step 2. Group 0 of step-1 has rollout-0 (reward 0) and
    rollout-1 (reward 1).
    """
    rows: list[Base] = [
        training_row("demo", last_heartbeat=at(20), start_time=at(0)),
        training_row("older", "completed", -100),
        step_row("step-1", "demo", 1),
        step_row("step-2", "demo", 2, superseded=True),
        step_row("step-2-again", "demo", 2, generation=1),
        step_row(
            "step-3",
            "demo",
            3,
            generation=1,
            status="training",
            loss=None,
            kl_divergence=None,
            reward_mean=None,
        ),
        baseline_row("baseline", "demo", 0.5),
        eval_row("eval-2", "demo", 2, 0.25, superseded=True),
        eval_row("eval-2-again", "demo", 2, 1.0, generation=1),
        task_row("task", 0),
        task_row("task-older", -50, description="Switch the Wi-Fi on."),
        Validator(
            id=named("validator"),
            task_id=named("task"),
            validator_type="shell",
            validation_query="wifi_enabled",
            validation_method="equals",
            config_json={},
            created_at=at(0),
        ),
        group_row("group-0", 0),
        group_row("group-1", 1),
        group_row("group-e", 0, source_type="eval", eval_id=named("eval-2-again")),
        group_row("group-b", 0, source_type="baseline", baseline_id=named("baseline")),
        rollout_row("rollout-1", "group-0", 1),
        rollout_row("rollout-0", "group-0", 0),
        rollout_row(
            "rollout-e",
            "group-e",
            1,
            source_type="eval",
            step_id=None,
            eval_id=named("eval-2-again"),
            is_eval=True,
        ),
        rollout_row(
            "rollout-b",
            "group-b",
            0,
            source_type="baseline",
            step_id=None,
            baseline_id=named("baseline"),
            is_eval=True,
        ),
        *turn_rows(screenshot_uri, said, {"type": "click", "x": 31, "y": 52, "button": "left"}),
        validation_row(
            "validation-own", "rollout/" + str(named("rollout-1")), 0, success=False, second=13
        ),
        validation_row(
            "validation-person", "scoring/" + str(named("scoring")), 5, success=True, second=12
        ),
        Environment(
            id=named("environment"),
            env_type="android_sim",
            status="terminated",
            box_type="android",
            config_json={},
            created_at=at(10),
            updated_at=at(13),
        ),
        history_row("training", "demo", 1, 1, (None, "pending")),
        history_row("training", "demo", 1, 9, ("pending", "initializing")),
        history_row("training", "demo", 2, 1, ("initializing", "running")),
    ]
    session.add_all(rows)
    session.commit()
