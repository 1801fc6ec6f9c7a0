"""What each fact does to rows, for the reference fold: column by column, in plain words.

Status, start_time and updated_at of the entity, and its history, are the fold's own business.
"""

from uuid import UUID

from schemas import ids
from tests.reference_fold.reference_basis import (
    Handler,
    Row,
    Tables,
    change,
    ended,
    pick,
    progress,
    put,
    same,
    source,
    time,
)
from tests.reference_fold.reference_rollout_rows import (
    environment_released,
    environment_requested,
    environment_started,
    rollout_created,
    rollout_finished,
    rollout_prepared,
    rollout_started,
    turn,
    validation,
)
from tests.reference_fold.reference_sql_rows import (
    completion,
    completion_steps,
    entry,
    session,
    skills,
)

RECIPE = (
    "log_path model_name lora_rank learning_rate batch_size group_size groups_per_batch max_tokens"
    " temperature kl_penalty_coef num_substeps max_turns seed box_type renderer_name wandb_project"
    " wandb_name"
)


def training_created(tables: Tables, data: Row, event: Row, owner: str) -> None:
    columns = pick(data["recipe"], RECIPE) | pick(data, "run_name kind total_steps")
    columns |= {
        "id": owner,
        "generation": 0,
        "current_step": 0,
        "config_json": data["config"],
        "progress_percent": 0.0,
    }
    put(tables, "training", event, **columns, current_phase="initialization")


def training_resumed(tables: Tables, data: Row, event: Row, owner: str) -> None:
    columns = pick(data["recipe"], RECIPE) | pick(
        data, "generation current_step total_steps status_message"
    )
    columns |= {
        "config_json": data["config"],
        "error_message": None,
        "end_time": None,
        "current_phase": "initialization",
    }
    change(tables, "training", owner, event, **columns)


def heartbeat(tables: Tables, _data: Row, event: Row, owner: str) -> None:
    change(tables, "training", owner, event, last_heartbeat=time(event["time"]))


def step_superseded(tables: Tables, data: Row, event: Row, _owner: str) -> None:
    change(tables, "step", data["step_id"], event, superseded=True)
    for group in data["group_ids"]:
        change(tables, "group", group, event, superseded=True)


def checkpoint(tables: Tables, data: Row, event: Row, owner: str) -> None:
    change(tables, "training", owner, event, checkpoint_path=data["path"])
    if data["step_id"]:
        change(tables, "step", data["step_id"], event, checkpoint_path=data["path"])


def task(tables: Tables, data: Row, event: Row, _owner: str) -> None:
    known = tables["task"].get(data["id"], {})
    now = time(event["time"])
    times = {
        "created_at": min(known.get("created_at", now), now),
        "updated_at": max(known.get("updated_at", now), now),
    }
    columns = {name: value for name, value in data.items() if name != "definition"}
    put(tables, "task", event, **columns | times)


def validator(tables: Tables, data: Row, event: Row, _owner: str) -> None:
    known = tables["validator"].get(data["id"], {})
    now = time(event["time"])
    columns = pick(data, "id task_id validator_type validation_query validation_method")
    put(
        tables,
        "validator",
        event,
        **columns,
        config_json=data["config"],
        created_at=min(known.get("created_at", now), now),
    )


def step_created(tables: Tables, data: Row, event: Row, owner: str) -> None:
    columns = pick(data, "generation step batch learning_rate model_path") | {
        "id": data["step_id"],
        "training_id": owner,
    }
    zero = {"rollout_progress": 0.0, "training_progress": 0.0, "progress_percent": 0.0}
    put(tables, "step", event, **columns, **zero, superseded=False)


def step_training_started(tables: Tables, data: Row, event: Row, _owner: str) -> None:
    times = {
        "rollout_end_time": time(data["rollout_ended_at"]),
        "training_start_time": time(data["training_started_at"]),
    }
    change(
        tables,
        "step",
        data["step_id"],
        event,
        current_phase="training",
        rollout_progress=100.0,
        **times,
    )


def step_finished(tables: Tables, data: Row, event: Row, _owner: str) -> None:
    names = (
        "loss kl_divergence policy_gradient_norm reward_mean reward_std num_trajectories num_tokens"
        " policy_version"
    )
    ended = time(data["training_ended_at"])
    columns = (
        pick(data, names)
        | progress(data)
        | {
            "training_end_time": ended,
            "end_time": ended,
            "metrics_json": data["metrics"],
        }
    )
    change(
        tables,
        "step",
        data["step_id"],
        event,
        rollout_progress=100.0,
        training_progress=100.0,
        **columns,
    )


def samples(tables: Tables, data: Row, event: Row, _owner: str) -> None:
    for sample in data["samples"]:
        key = str(ids.natural_id("sample", UUID(data["step_id"]), UUID(sample["rollout_id"])))
        put(tables, "sample", event, id=key, step_id=data["step_id"], **sample)


def group_created(tables: Tables, data: Row, event: Row, _owner: str) -> None:
    columns = source(data) | pick(data, "group_num batch num_rollouts") | {"id": data["group_id"]}
    rest = {
        "training_id": event.get("trainingid"),
        "superseded": False,
        "completed_rollouts": 0,
        "progress_percent": 0.0,
    }
    put(tables, "group", event, **columns, **rest)


def group_finished(tables: Tables, data: Row, event: Row, _owner: str) -> None:
    columns = pick(
        data, "completed_rollouts reward_mean reward_std success_count rollout_ids"
    ) | progress(data)
    change(
        tables,
        "group",
        data["group_id"],
        event,
        **columns,
        end_time=time(data["ended_at"]),
        metrics_json=data["metrics"],
    )


def group_dropped(tables: Tables, data: Row, event: Row, _owner: str) -> None:
    change(tables, "group", data["group_id"], event, dropped_reason=data["reason"])


def evaluation_created(tables: Tables, data: Row, event: Row, owner: str) -> None:
    columns = pick(data, "training_id generation step model_path total_tasks") | {
        "id": owner,
        "superseded": False,
        "temperature": data.get("temperature"),
        "split": data.get("split"),
        "num_tasks": data.get("num_tasks"),
        "task_source": data.get("task_source"),
    }
    zero = {
        "current_task_index": 0,
        "completed_tasks": 0,
        "progress_percent": 0.0,
        "current_phase": "initialization",
    }
    kind = {} if data["kind"] == "baseline" else {"kind": data["kind"]}
    put(tables, "eval" if kind else "baseline", event, **columns, **zero, **kind)


def evaluation(names: str = "", phase: str | None = None) -> Handler:
    """A fact about an evaluation that copies fields."""

    def handler(tables: Tables, data: Row, event: Row, owner: str) -> None:
        columns = (
            pick(data, names)
            | (progress(data) if "progress" in data else {})
            | ({"current_phase": phase} if phase else {})
        )
        if "metrics" in data:
            columns |= {
                "metrics_json": data["metrics"],
                "standard_error": data.get("standard_error"),
                "eval_time": data["eval_time_s"],
                "end_time": time(data["ended_at"]),
            }
        change(
            tables, "baseline" if data["kind"] == "baseline" else "eval", owner, event, **columns
        )

    return handler


def evaluation_superseded(tables: Tables, data: Row, event: Row, owner: str) -> None:
    change(
        tables, "baseline" if data["kind"] == "baseline" else "eval", owner, event, superseded=True
    )
    for group in data["group_ids"]:
        change(tables, "group", group, event, superseded=True)


def annotation(tables: Tables, data: Row, event: Row, owner: str) -> None:
    place = event["epoch"], event["sequence"]
    key = str(ids.natural_id("annotation", UUID(owner), *place))
    columns = pick(data, "training_id display_name tags note hidden")
    put(tables, "annotation", event, id=key, epoch=place[0], sequence=place[1], **columns)


def scoring(tables: Tables, data: Row, event: Row, owner: str) -> None:
    columns = pick(data, "training_id reward_name judge total_rollouts")
    nothing = dict.fromkeys(
        ("scored_rollouts", "failed_rollouts", "reward_mean", "success_rate", "end_time")
    )
    put(tables, "scoring", event, id=owner, config_json=data["config"], **columns, **nothing)


def score(tables: Tables, data: Row, event: Row, owner: str) -> None:
    key = str(ids.natural_id("score", UUID(owner), UUID(data["rollout_id"])))
    columns = pick(data, "rollout_id reward success error_message")
    details = data["details"]
    put(tables, "score", event, id=key, scoring_id=owner, details_json=details, **columns)


ROWS: dict[str, Handler] = {
    "cua.training.created": training_created,
    "cua.training.initialization_started": same(
        "training", "owner", "status_message", phase="initialization"
    ),
    "cua.training.started": same("training", "owner", "current_step status_message"),
    "cua.training.progressed": same(
        "training", "owner", "current_phase current_step status_message"
    ),
    "cua.training.heartbeat_sent": heartbeat,
    "cua.training.paused": same("training", "owner", "status_message"),
    "cua.training.resumed": training_resumed,
    "cua.training.completed": same(
        "training", "owner", "current_step status_message", end_time="ended_at"
    ),
    "cua.training.failed": ended("error_message", "error_message"),
    "cua.training.cancelled": ended("status_message", "status_message"),
    "cua.training.step_superseded": step_superseded,
    "cua.task.stated": task,
    "cua.validator.stated": validator,
    "cua.step.created": step_created,
    "cua.step.collection_started": same("step", "step_id", phase="rollout_collection"),
    "cua.step.rollouts_started": same(
        "step", "step_id", phase="rollout_execution", rollout_start_time="rollout_started_at"
    ),
    "cua.step.training_started": step_training_started,
    "cua.step.progressed": same(
        "step", "step_id", "current_phase rollout_progress training_progress"
    ),
    "cua.step.finished": step_finished,
    "cua.step.failed": same("step", "step_id", "error_message", end_time="ended_at"),
    "cua.step.samples_chosen": samples,
    "cua.group.created": group_created,
    "cua.group.started": same("group", "group_id"),
    "cua.group.progressed": same("group", "group_id", "completed_rollouts"),
    "cua.group.finished": group_finished,
    "cua.group.dropped": group_dropped,
    "cua.group.failed": same(
        "group", "group_id", "completed_rollouts error_message", end_time="ended_at"
    ),
    "cua.rollout.created": rollout_created,
    "cua.rollout.environment_requested": same("rollout", "owner", "env_id", phase="env_creation"),
    "cua.rollout.agent_initialized": rollout_prepared,
    "cua.rollout.started": rollout_started,
    "cua.rollout.phase_entered": same("rollout", "owner", "current_phase progress_percent"),
    "cua.rollout.turn_taken": turn,
    "cua.rollout.finished": rollout_finished,
    "cua.rollout.failed": same(
        "rollout", "owner", "error_type error_message num_turns", end_time="ended_at"
    ),
    "cua.rollout.cancelled": ended("status_message", "reason"),
    "cua.validation.recorded": validation,
    "cua.environment.requested": environment_requested,
    "cua.environment.creation_started": same("environment", "owner"),
    "cua.environment.started": environment_started,
    "cua.environment.terminated": ended(
        "status_message", "status_message", "terminated_at", "termination_time"
    ),
    "cua.environment.failed": ended(
        "error_message", "error_message", "terminated_at", "termination_time"
    ),
    "cua.environment.leaked": same("environment", "owner", "error_message"),
    "cua.environment.released": environment_released,
    "cua.evaluation.created": evaluation_created,
    "cua.evaluation.started": evaluation(phase="rollout"),
    "cua.evaluation.progressed": evaluation("current_phase current_task_index completed_tasks"),
    "cua.evaluation.finished": evaluation(
        "completed_tasks success_rate avg_reward avg_turns successful_tasks"
    ),
    "cua.evaluation.failed": ended("error_message", "error_message"),
    "cua.evaluation.cancelled": ended("status_message", "reason"),
    "cua.evaluation.superseded": evaluation_superseded,
    "cua.checkpoint.saved": checkpoint,
    "cua.entry.stated": entry,
    "cua.session.ended": session,
    "cua.completion.executed": completion,
    "cua.completion.steps_scored": completion_steps,
    "cua.training.skills_measured": skills,
    "cua.annotation.recorded": annotation,
    "cua.scoring.created": scoring,
    "cua.scoring.rollout_scored": score,
    "cua.scoring.finished": same(
        "scoring",
        "owner",
        "scored_rollouts failed_rollouts reward_mean success_rate",
        end_time="ended_at",
    ),
}
