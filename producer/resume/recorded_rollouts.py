"""A finished rollout from its recorded events, as if this process had run it."""

from collections.abc import Callable

from producer.environments.environment import Screenshot
from producer.errors import NotFoundError
from producer.log.stream_history import StreamHistory
from producer.policy.learner import TrainedTurn
from producer.policy.policy import SampledTokens
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
from schemas.turn import TokenRecord, TurnTaken


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
        max_turns=created.max_turns,
        temperature=created.temperature,
        seed=created.seed,
        sampling_seed=0,
    )


def recorded_result(
    plan: RolloutPlan,
    history: StreamHistory,
    finished: RolloutFinished,
    read_blob: Callable[[str], bytes],
) -> RolloutResult | None:
    """The recorded result; None when a screenshot to train on is gone, so that it is run again."""
    taken = [event.payload for event in history.events if isinstance(event.payload, TurnTaken)]
    try:
        trained = taken if plan.source.type == "step" else []
        num_images = total_prompt_images(trained)
        turns = tuple(
            _trained_turn(turn, turn.tokens, num_images[turn.turn], read_blob)
            for turn in trained
            if turn.tokens
        )
    except NotFoundError:
        return None
    return completed_result(
        plan,
        finished,
        policy_version=taken[0].policy_version if taken else 0,
        turns=turns,
        turn_seconds=sum((turn.ended_at - turn.started_at).total_seconds() for turn in taken),
        responses=tuple(turn.model_response for turn in taken),
    )


def _trained_turn(
    turn: TurnTaken, tokens: TokenRecord, num_images: int, read_blob: Callable[[str], bytes]
) -> TrainedTurn:
    png = read_blob(turn.screenshot_before)
    width_px, height_px = turn.screenshot_width_px, turn.screenshot_height_px
    if width_px is None or height_px is None:
        # Events of version 1 have no size; PNG's IHDR chunk has it.
        width_px, height_px = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    return TrainedTurn(
        Screenshot(png, width_px, height_px),
        SampledTokens(
            prompt_extends=tokens.prompt_extends,
            prompt_tokens=tuple(decode_int32(tokens.prompt_tokens)),
            num_prompt_images=num_images,
            completion_tokens=tuple(decode_int32(tokens.completion_tokens)),
            completion_logprobs=tuple(decode_float32(tokens.completion_logprobs)),
            stop_reason=tokens.stop_reason,
        ),
    )
