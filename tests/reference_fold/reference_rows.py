"""What each fact does to rows, for the reference fold: column by column, in plain words.

Status, start_time and updated_at of the entity, and its history, are the fold's own business.
"""

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from schemas import ids

Row = dict[str, Any]
Tables = dict[str, dict[str, Row]]
Handler = Callable[[Tables, Row, Row, str], None]

RECIPE = (
    "log_path model_name lora_rank learning_rate batch_size group_size groups_per_batch max_tokens"
    " temperature kl_penalty_coef num_substeps max_turns seed box_type renderer_name wandb_project"
    " wandb_name"
)
ETA = (
    ("avg_turn_time", "avg_turn_time_s"),
    ("estimated_total_time", "estimated_total_time_s"),
    ("estimated_remaining_time", "estimated_remaining_time_s"),
)


def time(text: str) -> datetime:
    """A time of the log."""
    return datetime.fromisoformat(text).astimezone(UTC)


class MadeAlreadyError(Exception):
    """A row is made twice."""


def put(tables: Tables, table: str, event: Row, **columns: Any) -> None:
    """A new row, made and changed at the event's time.

    It comes to stand in the tables when the whole event is understood.
    """
    news = tables["news"]
    if table not in {"task", "validator"} and (
        columns["id"] in tables[table] or columns["id"] in news.get(table, {})
    ):
        raise MadeAlreadyError
    row = {"created_at": time(event["time"])} | columns
    if table not in {"turn", "action", "obs", "sample", "validation", "validator"}:
        row.setdefault("updated_at", time(event["time"]))
    news.setdefault(table, {})[str(columns["id"])] = row


def change(tables: Tables, table: str, key: str, event: Row, **columns: Any) -> None:
    """Columns of a row that is there."""
    if key in tables[table]:
        tables[table][key].update(columns, updated_at=time(event["time"]))


def progress(data: Row) -> Row:
    """The columns of a stated progress."""
    stated = data["progress"]
    return {"progress_percent": stated["percent"]} | {
        column: stated.get(name) for column, name in ETA
    }


def source(data: Row) -> Row:
    """step_id, eval_id or baseline_id."""
    return {"source_type": data["source_type"], data["source_type"] + "_id": data["source_id"]}


def pick(data: Row, names: str) -> Row:
    """Fields that are columns of the same name."""
    return {name: data[name] for name in names.split()}


def same(table: str, key: str, names: str = "", phase: str | None = None, **times: str) -> Handler:
    """A handler that copies fields: `names` as they are, `times` (column=field) as times."""

    def handler(tables: Tables, data: Row, event: Row, owner: str) -> None:
        columns = pick(data, names) | {column: time(data[field]) for column, field in times.items()}
        if phase:
            columns["current_phase"] = phase
        if "progress" in data:
            columns |= progress(data)
        change(tables, table, owner if key == "owner" else data[key], event, **columns)

    return handler


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
    put(tables, "task", event, **data | times)


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


def rollout_created(tables: Tables, data: Row, event: Row, owner: str) -> None:
    names = (
        "group_id rollout_id batch group_num env_index attempt task_id model_path policy_version"
        " is_eval seed max_turns temperature"
    )
    rest = {
        "id": owner,
        "training_id": event.get("trainingid"),
        "current_turn": 0,
        "progress_percent": 0.0,
    }
    put(tables, "rollout", event, **source(data), **pick(data, names), **rest)


def rollout_prepared(tables: Tables, data: Row, event: Row, owner: str) -> None:
    change(
        tables,
        "rollout",
        owner,
        event,
        current_phase="agent_initialization",
        env_creation_time=data["env_creation_time_s"],
    )


def rollout_started(tables: Tables, data: Row, event: Row, owner: str) -> None:
    began = {
        "agent_init_time": data["agent_init_time_s"],
        "task_start_time": time(data["task_started_at"]),
    }
    change(tables, "rollout", owner, event, current_phase="task_execution", **began)


def rollout_finished(tables: Tables, data: Row, event: Row, owner: str) -> None:
    names = (
        "task_completed task_success agent_reported_success validation_passed num_turns reward"
        " num_total_actions consecutive_repeated_actions parse_errors tool_name_errors"
        " tool_arg_errors runtime_errors ran_out_of_turns attempted_completion turn_first_success"
        " turn_task_completed num_tokens errors"
    )
    columns = pick(data, names) | {
        "rollout_time": data["rollout_time_s"],
        "validation_time": data["validation_time_s"],
    }
    columns |= {
        "summary_json": data["summary"],
        "task_end_time": time(data["task_ended_at"]),
        "end_time": time(event["time"]),
    }
    change(tables, "rollout", owner, event, **columns, progress_percent=100.0)


def ended(message: str, name: str, end: str = "ended_at", column: str = "end_time") -> Handler:
    """A handler of an end: a message in a column, and when."""

    def handler(tables: Tables, data: Row, event: Row, owner: str) -> None:
        word = event["type"].split(".")[1]
        table = (
            ("baseline" if data["kind"] == "baseline" else "eval") if word == "evaluation" else word
        )
        change(tables, table, owner, event, **{message: data.get(name), column: time(data[end])})

    return handler


def added_images(event: Row) -> list[str]:
    """Images that a turn adds to the prompt it extends. Version 1 lists those before them too."""
    tokens, images = event["data"]["tokens"], list(event["data"]["tokens"]["prompt_images"])
    if event["dataschema"].endswith(":1") and tokens["prompt_extends"] is not None:
        added = event["data"]["turn"] - tokens["prompt_extends"]
        while len(images) > added > 0:
            images.pop(0)
    return images


def turn(tables: Tables, data: Row, event: Row, owner: str) -> None:
    key = str(ids.natural_id("turn", UUID(owner), data["turn"]))
    tokens = data["tokens"]
    count = len(base64.b64decode(tokens["completion_tokens"])) // 4 if tokens else None
    times = {"start_time": time(data["started_at"]), "end_time": time(data["ended_at"])}
    seconds = (
        datetime.fromisoformat(data["ended_at"]) - datetime.fromisoformat(data["started_at"])
    ).total_seconds()
    columns = pick(data, "turn reward episode_done policy_version model_response") | times
    columns |= {
        "stop_reason": tokens["stop_reason"] if tokens else None,
        "num_tokens": count,
        "metrics_json": data["metrics"],
    }
    put(tables, "turn", event, id=key, rollout_id=owner, turn_time=seconds, **columns)
    for index, taken in enumerate(data["actions"]):
        action = str(ids.natural_id("action", UUID(key), index))
        row = pick(taken, "tool_name tool_args error_type error_message") | {
            "action_json": taken["action"]
        }
        if index == 0 and tokens:
            row |= {
                "tokens": tokens["completion_tokens"],
                "logprobs": tokens["completion_logprobs"],
                "num_tokens": count,
            }
        action_type = taken["action"]["type"] if taken["action"] else None
        put(
            tables,
            "action",
            event,
            id=action,
            turn_id=key,
            action_index=index,
            action_type=action_type,
            **row,
        )
    shown = (
        {
            "prompt_extends": tokens["prompt_extends"],
            "num_prompt_tokens": len(base64.b64decode(tokens["prompt_tokens"])) // 4,
            "prompt_images": added_images(event),
        }
        if tokens
        else {}
    )
    seen: dict[str, Row | None] = {
        "screenshot_before": {
            "screenshot_uri": data["screenshot_before"],
            "model_input_json": shown | pick(tokens, "sampling") if tokens else None,
        },
        "screenshot_after": (
            {"screenshot_uri": data["screenshot_after"]} if data["screenshot_after"] else None
        ),
        "text": {"text_content": data["text"]} if data["text"] is not None else None,
        "model_response": {"text_content": data["model_response"]},
    }
    for kind, shown_row in seen.items():
        if shown_row is not None:
            put(
                tables,
                "obs",
                event,
                id=str(ids.natural_id("obs", UUID(key), kind)),
                turn_id=key,
                obs_type=kind,
                **shown_row,
            )
    change(
        tables,
        "rollout",
        owner,
        event,
        current_turn=data["turn"],
        progress_percent=data["progress_percent"],
    )


def validation(tables: Tables, data: Row, event: Row, owner: str) -> None:
    names = (
        "rollout_id validator_id rank validation_query expected_result actual_result success"
        " error_message"
    )
    key = str(ids.natural_id("validation", UUID(owner), UUID(data["validator_id"])))
    rest = {
        "validation_time": time(data["validated_at"]),
        "execution_time": data["execution_time_s"],
        "details_json": data["details"],
    }
    put(tables, "validation", event, id=key, stream=event["subject"], **pick(data, names), **rest)


def environment_requested(tables: Tables, data: Row, event: Row, owner: str) -> None:
    columns = {"id": owner, "training_id": event.get("trainingid"), "config_json": data["config"]}
    put(tables, "environment", event, **columns, **pick(data, "env_type box_type"))


def environment_started(tables: Tables, data: Row, event: Row, owner: str) -> None:
    change(
        tables,
        "environment",
        owner,
        event,
        gbox_id=data["gbox_id"],
        creation_time=time(data["started_at"]),
    )


def evaluation_created(tables: Tables, data: Row, event: Row, owner: str) -> None:
    columns = pick(data, "training_id generation step model_path total_tasks") | {
        "id": owner,
        "superseded": False,
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
}
