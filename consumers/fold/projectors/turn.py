"""A turn's rows: the turn, its actions and observations, and the rollout's progress."""

from collections.abc import Sequence

from consumers.fold.projectors.projector import EventContext
from consumers.fold.rows import Insert, Operation, Row, row_id
from schemas.base import Payload
from schemas.turn import TokenRecord, TurnTaken

BYTES_PER_NUMBER = 4
"""Of an int32; base64 writes three bytes as four characters."""


class TurnProjector:
    """TurnTaken."""

    def project(self, payload: Payload, context: EventContext) -> Sequence[Operation]:
        """One turn, its actions, two to four observations, and an update of the rollout."""
        assert isinstance(payload, TurnTaken)  # noqa: S101  # the registry names the class
        turn = row_id("turn", context.owner, str(payload.turn))
        tokens = payload.tokens
        num_tokens = None if tokens is None else _length(tokens.completion_tokens)
        operations: list[Operation] = [
            Insert(
                "turn",
                {
                    "id": turn,
                    "rollout_id": context.owner,
                    "turn": payload.turn,
                    "start_time": payload.started_at,
                    "end_time": payload.ended_at,
                    "turn_time": (payload.ended_at - payload.started_at).total_seconds(),
                    "reward": payload.reward,
                    "episode_done": payload.episode_done,
                    "policy_version": payload.policy_version,
                    "metrics_json": payload.metrics,
                    "model_response": payload.model_response,
                    "stop_reason": None if tokens is None else tokens.stop_reason,
                    "num_tokens": num_tokens,
                    "created_at": context.time,
                },
            )
        ]
        _actions(operations, payload, turn, num_tokens, context.time)
        _observations(operations, payload, turn, context.time)
        operations.append(
            context.change(
                payload,
                {"current_turn": payload.turn, "progress_percent": payload.progress_percent},
            )
        )
        return operations


def _length(array: str) -> int:
    """Numbers in a base64 array."""
    return (len(array) // 4 * 3 - array.count("=", -2)) // BYTES_PER_NUMBER


def _actions(
    operations: list[Operation], payload: TurnTaken, turn: str, num_tokens: int | None, time: str
) -> None:
    for index, taken in enumerate(payload.actions):
        row: Row = {
            "id": row_id("action", turn, str(index)),
            "turn_id": turn,
            "action_index": index,
            "action_type": None if taken.action is None else taken.action.type,
            "action_json": taken.action,
            "tool_name": taken.tool_name,
            "tool_args": taken.tool_args,
            "error_type": taken.error_type,
            "error_message": taken.error_message,
            "created_at": time,
        }
        if index == 0 and payload.tokens is not None:
            row["tokens"] = payload.tokens.completion_tokens
            row["logprobs"] = payload.tokens.completion_logprobs
            row["num_tokens"] = num_tokens
        operations.append(Insert("action", row))


def _observations(operations: list[Operation], payload: TurnTaken, turn: str, time: str) -> None:
    def observe(obs_type: str, **columns: object) -> None:
        row = {
            "id": row_id("obs", turn, obs_type),
            "turn_id": turn,
            "obs_type": obs_type,
            **columns,
            "created_at": time,
        }
        operations.append(Insert("obs", row))

    model_input = _model_input(payload.tokens)
    if payload.screenshot_before is None:
        observe("text", text_content=payload.text, model_input_json=model_input)
    else:
        observe(
            "screenshot_before",
            screenshot_uri=payload.screenshot_before,
            model_input_json=model_input,
        )
        if payload.text is not None:
            observe("text", text_content=payload.text)
    observe("model_response", text_content=payload.model_response)
    if payload.screenshot_after is not None:
        observe("screenshot_after", screenshot_uri=payload.screenshot_after)


def _model_input(tokens: TokenRecord | None) -> Row | None:
    if tokens is None:
        return None
    return {
        "prompt_extends": tokens.prompt_extends,
        "num_prompt_tokens": _length(tokens.prompt_tokens),
        "prompt_images": tokens.prompt_images,
        "sampling": tokens.sampling,
    }
