"""Payloads of a rollout's events, built from plain values. Pure: emits and stores nothing."""

import math
import statistics
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice

from producer.bounded_text import cut, cut_json, cut_optional, is_longer, storable
from producer.environments.environment import Environment, Screenshot, screenshot_of
from producer.policy.policy import SampledTokens, SampleRequest, Turn
from producer.rewards import Reward, outcome_of, score
from producer.rollouts.action_counts import count_actions
from producer.rollouts.plan import RolloutPlan
from producer.rollouts.requests import Acted, CompletionReward, Grade, Judged, Sampled, StepScores
from producer.validators import Evidence
from schemas.actions import Action, Terminate
from schemas.arrays import encode_float32, encode_int32
from schemas.base import Payload
from schemas.completion import CompletionExecuted, CompletionStepsScored
from schemas.environment import EnvironmentRequested
from schemas.rollout import RolloutCreated, RolloutFinished
from schemas.turn import Sampling, TakenAction, TokenRecord, TurnTaken
from schemas.validation import ValidationRecorded


def token_record(request: SampleRequest, tokens: SampledTokens) -> TokenRecord:
    """The token record in `TurnTaken` for a completion sampled for `request`."""
    return TokenRecord(
        prompt_extends=tokens.prompt_extends,
        prompt_tokens=encode_int32(tokens.prompt_tokens),
        prompt_images=tuple(image.ref for image in new_prompt_images(request, tokens)),
        completion_tokens=encode_int32(tokens.completion_tokens),
        completion_logprobs=encode_float32(tokens.completion_logprobs),
        sampling=Sampling(
            temperature=request.temperature,
            max_tokens=request.max_tokens,
            top_p=request.top_p,
            seed=request.seed,
        ),
        stop_reason=tokens.stop_reason,
    )


def new_prompt_images(request: SampleRequest, tokens: SampledTokens) -> Sequence[Screenshot]:
    """Screenshots in the prompt that are not in the one it extends, oldest first."""
    turns = [*(turn.screenshot for turn in request.history), request.screenshot]
    shown = [screenshot for screenshot in turns if screenshot is not None]
    if tokens.prompt_extends is not None:
        return [
            screenshot for screenshot in turns[tokens.prompt_extends :] if screenshot is not None
        ]
    return shown[max(0, len(shown) - tokens.num_prompt_images) :]


def total_prompt_images(turns: Iterable[TurnTaken]) -> dict[int, int]:
    """Turn number -> number of images in that turn's whole prompt, including what it extends.

    `turns` are one rollout's, in order; turns without tokens are skipped. Raises KeyError if a turn
    extends one that is not among them.
    """
    totals: dict[int, int] = {}
    for turn in turns:
        if turn.tokens is not None:
            extends = turn.tokens.prompt_extends
            num_before = 0 if extends is None else totals[extends]
            totals[turn.turn] = num_before + len(turn.tokens.prompt_images)
    return totals


MAX_RESPONSE_CHARS = 1 << 18
"""Many times what today's policies write in one turn."""
MAX_ACTIONS, MAX_ACTION_CHARS = 100, 1 << 14
"""At four bytes a character, a turn's actions take less than half of the largest event."""
MAX_ARGUMENTS, MAX_VALUE_CHARS = 10, 1000
MAX_NAME_CHARS = 200
MAX_ERRORS = 1000


def rollout_created(plan: RolloutPlan, policy_name: str, policy_version: int) -> RolloutCreated:
    """The creation event of an attempt."""
    return RolloutCreated(
        rollout_id=plan.name,
        source_type=plan.source.type,
        source_id=plan.source.id,
        group_id=plan.group_id,
        batch=plan.source.batch,
        group_num=plan.group_num,
        env_index=plan.env_index,
        attempt=plan.attempt,
        task_id=plan.stated.row_id,
        model_path=policy_name,
        policy_version=policy_version,
        is_eval=plan.source.type != "step",
        max_turns=plan.max_turns,
        temperature=plan.temperature,
        seed=plan.seed,
    )


def environment_requested(environment: Environment, seed: int) -> EnvironmentRequested:
    """The request for the environment of the attempt."""
    return EnvironmentRequested(
        env_type=environment.env_type,
        box_type=environment.box_type,
        config={"seed": seed, "is_simulated": environment.is_simulated},
    )


def turn_taken(
    request: SampleRequest,
    sampled: Sampled,
    acted: Acted,
    *,
    max_turns: int,
    policy_version: int,
    is_over: bool,
    ended_at: datetime,
) -> TurnTaken:
    """One turn: `request` holds what the agent saw, `acted` the result of its actions."""
    completion, seen = sampled.completion, request.screenshot
    after = screenshot_of(acted.observation)
    turn = len(request.history) + 1
    return TurnTaken(
        turn=turn,
        started_at=sampled.started_at,
        ended_at=ended_at,
        policy_version=policy_version,
        screenshot_before=None if seen is None else seen.ref,
        screenshot_after=None if after is None else after.ref,
        screenshot_width_px=None if seen is None else seen.width_px,
        screenshot_height_px=None if seen is None else seen.height_px,
        text=observed_text(request),
        # The token record keeps the complete response.
        model_response=cut(completion.text, MAX_RESPONSE_CHARS),
        tokens=None if completion.tokens is None else token_record(request, completion.tokens),
        actions=bounded_actions(acted.actions),
        reward=0.0,
        episode_done=is_over,
        progress_percent=100.0 if is_over else 100.0 * turn / max_turns,
        metrics={
            "sample_s": round(sampled.seconds, 6),
            "environment_s": round(acted.seconds, 6),
            **({"replayed": True} if sampled.is_replayed else {}),
        },
    )


def observed_text(request: SampleRequest) -> str | None:
    """The text of the turn's prompt (on turn 1, what follows the instruction); None if none."""
    if request.history:
        return None if request.text is None else storable(request.text)
    instruction = request.task.description
    return storable(instruction if request.text is None else f"{instruction}\n\n{request.text}")


def _recorded_errors(actions: Sequence[TakenAction]) -> tuple[str, ...]:
    """Error messages of the actions; each turn's event has its own in full."""
    errors = [cut(call.error_message, 500) for call in actions if call.error_message]
    if len(errors) > MAX_ERRORS:
        errors[MAX_ERRORS:] = [f"… [cut: {len(errors) - MAX_ERRORS:,} more errors]"]
    return tuple(errors)


def bounded_actions(actions: Sequence[TakenAction]) -> tuple[TakenAction, ...]:
    """The actions with very long texts cut, and only the first `MAX_ACTIONS` of them."""
    return tuple(
        call
        if not is_longer(call, MAX_ACTION_CHARS) and len(str(call)) <= MAX_ACTION_CHARS
        else call.model_copy(
            update={
                "tool_name": cut(call.tool_name, MAX_NAME_CHARS),
                "tool_args": {
                    cut(name, MAX_NAME_CHARS): cut_json(value, MAX_VALUE_CHARS)
                    for name, value in islice(call.tool_args.items(), MAX_ARGUMENTS)
                },
                "action": None if _is_long(call.action) else call.action,
                "error_message": cut_optional(call.error_message, MAX_ACTION_CHARS // 2),
            }
        )
        for call in actions[:MAX_ACTIONS]
    )


def _is_long(action: Action | None) -> bool:
    limit = MAX_ACTION_CHARS // 2
    return is_longer(action, limit) or len(str(action)) > limit


def validation_recorded(
    plan: RolloutPlan, judged: Judged, validated_at: datetime
) -> ValidationRecorded | None:
    """The verdict's event; None for a task without a validator."""
    verdict = judged.verdict
    if verdict is None or plan.stated.validator_row_id is None:
        return None
    return ValidationRecorded(
        rollout_id=plan.id,
        validator_id=plan.stated.validator_row_id,
        validated_at=validated_at,
        validation_query=cut(verdict.query),
        expected_result=cut_optional(verdict.expected),
        actual_result=cut_optional(verdict.actual),
        success=verdict.success,
        execution_time_s=judged.seconds,
        details={name: cut_json(value) for name, value in verdict.details.items()},
    )


def failure_facts(
    environment: Environment,
    plan: RolloutPlan,
    evidence: Evidence,
    reason: str,
    failed_at: datetime,
) -> tuple[Payload, ...]:
    """Environment-specific events of an episode ended by a failure; empty if it has none."""
    if plan.stated.entry_row_id is None:
        return ()
    stated = environment.failure_facts(evidence, reason)
    return () if stated is None else stated(plan.stated.entry_row_id, failed_at)


def end_facts(
    plan: RolloutPlan, judged: Judged, grade: Grade, judged_at: datetime
) -> tuple[Payload, ...]:
    """Environment-specific events of a completed episode; empty if it has none."""
    if judged.verdict is None or judged.verdict.facts is None or plan.stated.entry_row_id is None:
        return ()
    facts = judged.verdict.facts(plan.stated.entry_row_id, judged_at)
    if grade.labels is not None:
        facts = (*facts, steps_scored(grade.labels, judged_at))
    if grade.scores is None:
        return facts
    scored = steps_scored(grade.scores, judged_at)
    return (*(_with_process_reward(fact, scored.average) for fact in facts), scored)


def _with_process_reward(fact: Payload, value: float) -> Payload:
    """Add the process reward model's score, which executing a completion does not produce."""
    if not isinstance(fact, CompletionExecuted):
        return fact
    return fact.model_copy(update={"process_reward": value})


def steps_scored(scores: StepScores, scored_at: datetime) -> CompletionStepsScored:
    """Scores of a completion's steps, with the aggregates used to choose among completions."""
    found = [step.score for step in scores.steps]
    return CompletionStepsScored(
        scorer=scores.scorer,
        steps=scores.steps,
        product=math.prod(found),
        minimum=min(found),
        last=found[-1],
        average=statistics.fmean(found),
        scored_at=scored_at,
    )


def rollout_finished(
    plan: RolloutPlan,
    judged: Judged,
    own: CompletionReward | None,
    turns: Sequence[Turn],
    actions: Sequence[TakenAction],
    *,
    reward: Reward,
    turn_cost: float,
    parse_error_cost: float,
    turn_first_success: int | None,
    ended_at: datetime,
    rollout_time_s: float,
) -> RolloutFinished:
    """The event of a completed rollout, with its reward. `actions`: those of all turns, in order.

    `own` replaces the outcome's reward; None: the outcome's reward is used. Raises RewardError if a
    user's reward function fails.
    """
    passed = None if judged.verdict is None else judged.verdict.success
    success = passed is True
    termination = next(
        (call.action for call in actions if isinstance(call.action, Terminate)), None
    )
    is_ended = termination is not None
    finished = RolloutFinished(
        task_ended_at=ended_at,
        rollout_time_s=rollout_time_s,
        validation_time_s=judged.seconds,
        task_completed=is_ended,
        task_success=success,
        agent_reported_success=None if termination is None else termination.status == "success",
        validation_passed=passed,
        num_turns=len(turns),
        reward=0.0,
        **count_actions(actions),
        ran_out_of_turns=not is_ended and len(turns) >= plan.max_turns,
        attempted_completion=is_ended,
        turn_first_success=turn_first_success,
        turn_task_completed=len(turns) if success and is_ended else None,
        num_tokens=sum(
            len(turn.tokens.completion_tokens) for turn in turns if turn.completion.tokens
        ),
        errors=_recorded_errors(actions),
        summary={
            "task_id": plan.task.task_id,
            "seed": plan.seed,
            "num_prompt_tokens": _num_prompt_tokens(turns),
            **({"token_rewards": [*own.tokens]} if own is not None and own.tokens else {}),
        },
    )
    rewarded = score(
        reward if own is None else lambda _outcome: own.value,
        outcome_of(finished, max_turns=plan.max_turns, task_id=plan.task.task_id),
        turn_cost=turn_cost,
        parse_error_cost=parse_error_cost,
    )
    return finished.model_copy(update={"reward": rewarded})


def _num_prompt_tokens(turns: Sequence[Turn]) -> int:
    """Sum over turns of the whole prompt's tokens, including what the prompt extends."""
    total = 0
    length_after = {0: 0}
    for number, turn in enumerate(turns, start=1):
        if (tokens := turn.completion.tokens) is not None:
            prompt = length_after[tokens.prompt_extends or 0] + len(tokens.prompt_tokens)
            length_after[number] = prompt + len(tokens.completion_tokens)
            total += prompt
    return total
