"""What each event of a rollout and its environment does to rows, for the reference fold."""

import base64
from datetime import datetime
from uuid import UUID

from schemas import ids
from tests.reference_fold.reference_basis import (
    Row,
    Tables,
    change,
    pick,
    put,
    source,
    time,
)


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
    model_input = {"model_input_json": shown | pick(tokens, "sampling") if tokens else None}
    has_screen = data["screenshot_before"] is not None
    seen: dict[str, Row | None] = {
        "screenshot_before": (
            {"screenshot_uri": data["screenshot_before"]} | model_input if has_screen else None
        ),
        "screenshot_after": (
            {"screenshot_uri": data["screenshot_after"]} if data["screenshot_after"] else None
        ),
        "text": {"text_content": data["text"]} if data["text"] is not None else None,
        "model_response": {"text_content": data["model_response"]},
    }
    if not has_screen:
        # Without a screen what is observed is the text, be it nothing.
        seen["text"] = {"text_content": data["text"]} | model_input
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
    stream = owner if event["subject"].startswith("rollout/") else event["subject"]
    key = str(ids.natural_id("validation", stream, UUID(data["validator_id"])))
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


def environment_released(tables: Tables, data: Row, event: Row, owner: str) -> None:
    message = "released after its rollout had ended"
    columns = {"termination_time": time(data["released_at"]), "status_message": message}
    change(tables, "environment", owner, event, **columns)
