"""Rollouts from their recorded events: finished ones as results, others as turns to play again."""

from collections.abc import Callable, Sequence

from producer.environments.environment import (
    Observation,
    Screenshot,
    TextObservation,
)
from producer.errors import NotFoundError
from producer.log.stream_history import StreamHistory
from producer.policy.policy import Completion, SampledTokens, Turn
from producer.rollouts.plan import (
    GroupPlan,
    RolloutPlan,
    RolloutResult,
    RolloutSource,
    completed_result,
)
from producer.rollouts.token_records import total_prompt_images
from schemas import ids
from schemas.arrays import decode_float32, decode_int32
from schemas.rollout import RolloutCreated, RolloutFinished
from schemas.turn import TakenAction, TokenRecord, TurnTaken


def recorded_plan(created: RolloutCreated, group: GroupPlan, source: RolloutSource) -> RolloutPlan:
    """The plan that a recorded rollout followed."""
    stated = group.stated
    return RolloutPlan(
        name=created.rollout_id,
        id=ids.rollout_id(created.rollout_id),
        source=source,
        group_id=created.group_id,
        group_num=created.group_num,
        env_index=created.env_index,
        attempt=created.attempt,
        task=stated.task,
        task_row_id=created.task_id,
        validator_row_id=stated.validator_row_id,
        entry_row_id=stated.entry_row_id,
        max_turns=created.max_turns,
        temperature=created.temperature,
        seed=created.seed,
        sampling_seed=0,
    )


def turns_taken(history: StreamHistory) -> list[TurnTaken]:
    """The rollout's turns, in order."""
    return [event.payload for event in history.events if isinstance(event.payload, TurnTaken)]


def recorded_turns(
    taken: Sequence[TurnTaken], instruction: str, read_blob: Callable[[str], bytes]
) -> tuple[Turn, ...] | None:
    """The turns as a policy would have to take them again; None when a screenshot is gone.

    `instruction`: of the task, which the first turn's words begin with.
    """
    num_images = total_prompt_images(taken)
    try:
        return tuple(
            Turn(
                _observation(turn, instruction, read_blob),
                Completion(
                    text=turn.model_response,
                    actions=tuple(_as_sampled(action) for action in turn.actions),
                    tokens=_tokens(turn.tokens, num_images[turn.turn]) if turn.tokens else None,
                    policy_version=turn.policy_version,
                ),
            )
            for turn in taken
        )
    except NotFoundError:
        return None


def recorded_result(
    plan: RolloutPlan,
    history: StreamHistory,
    finished: RolloutFinished,
    read_blob: Callable[[str], bytes],
) -> RolloutResult | None:
    """The recorded result; None when a screenshot to train on is gone, so that it is run again."""
    taken = turns_taken(history)
    is_trained = plan.source.type == "step"
    trained = [turn for turn in taken if is_trained and turn.tokens]
    turns = recorded_turns(trained, plan.task.description, read_blob)
    if turns is None:
        return None
    return completed_result(
        plan,
        finished,
        policy_version=taken[0].policy_version if taken else 0,
        turns=turns,
        turn_seconds=sum((turn.ended_at - turn.started_at).total_seconds() for turn in taken),
        responses=tuple(turn.model_response for turn in taken),
        words=tuple(turn.text for turn in taken[1:]),
        facts=(event.payload for event in history.events),
        token_rewards=_token_rewards(finished),
    )


def _token_rewards(finished: RolloutFinished) -> tuple[float, ...]:
    """Of the completion's tokens, from a user's reward manager; empty without one."""
    recorded = finished.summary.get("token_rewards")
    return tuple(float(str(reward)) for reward in recorded) if isinstance(recorded, list) else ()


def _as_sampled(action: TakenAction) -> TakenAction:
    """The action before the device refused it."""
    if action.error_type != "runtime":
        return action
    return action.model_copy(update={"error_type": None, "error_message": None})


def _observation(
    turn: TurnTaken, instruction: str, read_blob: Callable[[str], bytes]
) -> Observation:
    if turn.screenshot_before is None:
        text = turn.text
        if text is not None and turn.turn == 1:
            text = None if text == instruction else text.removeprefix(f"{instruction}\n\n")
        return TextObservation(text)
    png = read_blob(turn.screenshot_before)
    width_px, height_px = turn.screenshot_width_px, turn.screenshot_height_px
    if width_px is None or height_px is None:
        # Events of version 1 have no size; PNG's IHDR chunk has it.
        width_px, height_px = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    return Screenshot(png, width_px, height_px)


def _tokens(tokens: TokenRecord, num_images: int) -> SampledTokens:
    return SampledTokens(
        prompt_extends=tokens.prompt_extends,
        prompt_tokens=tuple(decode_int32(tokens.prompt_tokens)),
        num_prompt_images=num_images,
        completion_tokens=tuple(decode_int32(tokens.completion_tokens)),
        completion_logprobs=tuple(decode_float32(tokens.completion_logprobs)),
        stop_reason=tokens.stop_reason,
    )
