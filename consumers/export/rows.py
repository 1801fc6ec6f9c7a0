"""Rows of the dataset: one per rollout, one per turn with the whole prompt it was sampled from."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pydantic_core import to_json

from consumers.export.rollouts import EndedRollout
from consumers.export.trainings import Place, Trainings
from schemas.arrays import decode_float32, decode_int32
from schemas.rollout import RolloutCancelled, RolloutFailed, RolloutFinished
from schemas.turn import TurnTaken

Row = dict[str, Any]
TIME = pa.timestamp("us", tz="UTC")
IMAGE = pa.struct([pa.field("bytes", pa.binary()), pa.field("path", pa.string())])
"""The storage of `datasets.Image`."""

ROLLOUTS = pa.schema(
    [
        pa.field("rollout_id", pa.string()),
        pa.field("training", pa.string()),
        pa.field("source", pa.string()),
        pa.field("generation", pa.int64()),
        pa.field("step", pa.int64()),
        pa.field("superseded", pa.bool_()),
        pa.field("group_id", pa.string()),
        pa.field("group_num", pa.int64()),
        pa.field("env_index", pa.int64()),
        pa.field("attempt", pa.int64()),
        pa.field("task_id", pa.string()),
        pa.field("task_name", pa.string()),
        pa.field("instruction", pa.string()),
        pa.field("seed", pa.int64()),
        pa.field("temperature", pa.float64()),
        pa.field("policy_version", pa.int64()),
        pa.field("model_path", pa.string()),
        pa.field("status", pa.string()),
        pa.field("reward", pa.float64()),
        pa.field("success", pa.bool_()),
        pa.field("num_turns", pa.int64()),
        pa.field("num_tokens", pa.int64()),
        pa.field("advantage", pa.float64()),
        pa.field("used", pa.bool_()),
        pa.field("drop_reason", pa.string()),
        pa.field("error", pa.string()),
        pa.field("entry", pa.string()),
        pa.field("skills", pa.list_(pa.string())),
        pa.field("gold_sql", pa.string()),
        pa.field("session_status", pa.string()),
        pa.field("outcome", pa.string()),
        pa.field("answer", pa.string()),
        pa.field("step_scores", pa.string()),
        pa.field("created_at", TIME),
        pa.field("ended_at", TIME),
    ]
)

TURNS = pa.schema(
    [
        pa.field("rollout_id", pa.string()),
        pa.field("turn", pa.int64()),
        pa.field("text", pa.string()),
        pa.field("screenshot", IMAGE),
        pa.field("screenshot_ref", pa.string()),
        pa.field("screenshot_after_ref", pa.string()),
        pa.field("model_response", pa.string()),
        pa.field("actions", pa.string()),
        pa.field("reward", pa.float64()),
        pa.field("episode_done", pa.bool_()),
        pa.field("policy_version", pa.int64()),
        pa.field("prompt_token_ids", pa.list_(pa.int32())),
        pa.field("prompt_images", pa.list_(pa.string())),
        pa.field("completion_token_ids", pa.list_(pa.int32())),
        pa.field("completion_logprobs", pa.list_(pa.float32())),
        pa.field("stop_reason", pa.string()),
        pa.field("started_at", TIME),
        pa.field("ended_at", TIME),
    ]
)

FIELDS = {
    "rollout_id": "the attempt's text id; the key of both tables",
    "training": "name of the training; null for an evaluation of another policy",
    "source": "`step`, `eval` or `baseline`",
    "step": "optimizer step; of an eval or baseline the steps done before it",
    "superseded": "its step was trained again by a newer generation",
    "status": "`completed`, `failed` (no fault of the agent, never scored) or `cancelled`",
    "reward": "null unless completed",
    "advantage": "as the step used it; null when it was not used",
    "used": "whether the step was trained on it; null outside of steps",
    "drop_reason": "why it was not used",
    "entry": "name of the data set's entry that an SQL agent worked on; null for other agents",
    "skills": "what the entry's gold needs",
    "gold_sql": "the entry's gold",
    "session_status": "how a session with a database ended; `outcome` is what it came to",
    "outcome": "`correct`, `incorrect`, `unknown`; of a completion `error` and `no_sql` too",
    "answer": "a session's final answer; a completion's SQL",
    "step_scores": "JSON: a list of {scorer, steps, product, minimum, last, average}",
    "text": "text observed; on turn 1 the instruction, then the text of the environment",
    "screenshot": "before the action; null where the environment has no screen",
    "actions": (
        "JSON: a list of {tool_name, tool_args, action, error_type, error_message}; coordinates of"
        " `action` in pixels"
    ),
    "prompt_token_ids": "the whole prompt of the turn; null for a scripted policy",
    "prompt_images": "references of the prompt's images, in the order of their placeholders",
    "completion_logprobs": "nats, under the policy that sampled, temperature applied",
}
"""What a column means, where its name does not say it."""


def rollout_row(rollout: EndedRollout, trainings: Trainings) -> Row:
    """One row of `rollouts`."""
    created, end = rollout.created, rollout.end
    place = trainings.places.get(created.source_id, Place(None, None))
    task = trainings.tasks.get(created.task_id)
    sample = trainings.samples.get(rollout.id)
    row: Row = _sql_columns(rollout, trainings) | {
        "rollout_id": created.rollout_id,
        "training": None
        if rollout.training_id is None
        else trainings.names.get(rollout.training_id),
        "source": created.source_type,
        "generation": place.generation,
        "step": place.step,
        "superseded": created.group_id in trainings.superseded_groups,
        "group_id": str(created.group_id),
        "group_num": created.group_num,
        "env_index": created.env_index,
        "attempt": created.attempt,
        "task_id": None if task is None else task.task_id,
        "task_name": None if task is None else task.name,
        "instruction": None if task is None else task.description,
        "seed": created.seed,
        "temperature": created.temperature,
        "policy_version": created.policy_version,
        "model_path": created.model_path,
        "advantage": None if sample is None else sample.advantage,
        "used": None if sample is None else sample.used,
        "drop_reason": None if sample is None else sample.drop_reason,
        "created_at": rollout.created_at,
        "ended_at": rollout.ended_at,
        "num_turns": len(rollout.turns),
    }
    match end:
        case RolloutFinished():
            row |= {
                "status": end.STATUS,
                "reward": end.reward,
                "success": end.task_success,
                "num_tokens": end.num_tokens,
            }
        case RolloutFailed():
            row |= {"status": end.STATUS, "error": f"{end.error_type}: {end.error_message}"}
        case RolloutCancelled():
            row |= {"status": end.STATUS, "error": end.reason}
        case None:
            raise AssertionError
    return row


def _sql_columns(rollout: EndedRollout, trainings: Trainings) -> Row:
    """Further fields of an SQL agent's rollout; empty for other agents."""
    session, completion = rollout.session, rollout.completion
    fact = session or completion
    if fact is None:
        return {}
    row: Row = {"outcome": fact.outcome, "session_status": session and session.session_status}
    if session is not None:
        row["answer"] = session.answer
    elif completion is not None:
        row["answer"] = completion.sql
    if (entry := trainings.entries.get(fact.entry_id)) is not None:
        content = entry.content
        row |= {
            "entry": content.entry_id,
            "skills": list(content.skills),
            "gold_sql": content.sql,
        }
    if rollout.scores:
        row["step_scores"] = to_json(
            [score.model_dump(mode="json", exclude={"scored_at"}) for score in rollout.scores],
            inf_nan_mode="strings",
        ).decode()
    return row


def turn_rows(rollout: EndedRollout, image: Callable[[str], bytes | None]) -> Iterator[Row]:
    """One row of `turns` per turn. `image`: a reference's bytes; None leaves the image out."""
    prompts = _whole_prompts(rollout.turns)
    for turn in rollout.turns:
        shown = turn.screenshot_before
        content = None if shown is None else image(shown)
        row: Row = {
            "rollout_id": rollout.created.rollout_id,
            "turn": turn.turn,
            "text": turn.text,
            "screenshot": None if content is None else {"bytes": content, "path": None},
            "screenshot_ref": turn.screenshot_before,
            "screenshot_after_ref": turn.screenshot_after,
            "model_response": turn.model_response,
            "actions": to_json(turn.actions).decode(),
            "reward": turn.reward,
            "episode_done": turn.episode_done,
            "policy_version": turn.policy_version,
            "started_at": turn.started_at,
            "ended_at": turn.ended_at,
        }
        if turn.tokens is not None and turn.turn in prompts:
            tokens, images = prompts[turn.turn]
            row |= {
                "prompt_token_ids": tokens,
                "prompt_images": images,
                "completion_token_ids": decode_int32(turn.tokens.completion_tokens),
                "completion_logprobs": decode_float32(turn.tokens.completion_logprobs),
                "stop_reason": turn.tokens.stop_reason,
            }
        yield row


def _whole_prompts(turns: list[TurnTaken]) -> dict[int, tuple[list[int], list[str]]]:
    """Turn -> tokens and images of its whole prompt. A turn records only what it adds."""
    prompts: dict[int, tuple[list[int], list[str]]] = {}
    completions: dict[int, list[int]] = {}
    for turn in turns:
        record = turn.tokens
        if record is None:
            continue
        tokens, images = decode_int32(record.prompt_tokens), list(record.prompt_images)
        if (before := record.prompt_extends) is not None:
            if before not in prompts:
                # It extends a turn that the log does not have; half a prompt would be wrong.
                continue
            tokens = prompts[before][0] + completions[before] + tokens
            images = prompts[before][1] + images
        prompts[turn.turn] = tokens, images
        completions[turn.turn] = decode_int32(record.completion_tokens)
    return prompts
