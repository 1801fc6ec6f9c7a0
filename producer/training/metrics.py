"""The metrics of steps and evaluations, under tinker-cookbook's names."""

import math
import statistics
from collections import Counter
from collections.abc import Sequence

from pydantic import JsonValue

from producer.config import RunConfig
from producer.policy.learner import UpdateResult
from producer.rollouts.plan import GroupOutcome, RolloutResult


def step_metrics(
    config: RunConfig,
    step: int,
    outcomes: Sequence[GroupOutcome],
    results: Sequence[RolloutResult],
    update: UpdateResult,
    *,
    rollouts_s: float,
) -> dict[str, JsonValue]:
    """Of step `step` (from 1). None: nothing was trained, so there is no mean."""
    kinds = Counter(_kind(outcome) for outcome in outcomes)
    turns = sum(result.num_turns for result in results)
    is_trained = update.num_tokens > 0
    return {
        "progress/batch": step - 1,
        "progress/done_frac": step / config.num_steps,
        "optim/lr": config.learning_rate,
        "optim/kl_sample_train_v1": update.kl_sample_train_v1 if is_trained else None,
        "optim/kl_sample_train_v2": update.kl_sample_train_v2 if is_trained else None,
        "optim/entropy": update.entropy if is_trained else None,
        "optim/num_tokens": update.num_tokens,
        "env/all/reward/total": statistics.fmean(result.reward for result in results),
        "env/all/success": statistics.fmean(float(result.success) for result in results),
        "env/all/ac_tokens_per_turn": sum(one.num_tokens for one in results) / max(turns, 1),
        "env/all/turns_per_episode": turns / len(results),
        "env/all/total_episodes": len(results),
        "env/all/total_turns": turns,
        "env/all/by_group/frac_mixed": kinds["mixed"] / len(outcomes),
        "env/all/by_group/frac_all_good": kinds["good"] / len(outcomes),
        "env/all/by_group/frac_all_bad": kinds["bad"] / len(outcomes),
        "rollout_errors/groups_skipped": kinds["failed"],
        "time/rollout": rollouts_s,
        "time/train": update.seconds,
    }


def evaluation_metrics(outcomes: Sequence[GroupOutcome]) -> dict[str, JsonValue]:
    """Of an evaluation with at least one scored episode."""
    results = [result for outcome in outcomes for result in outcome.results]
    success = statistics.fmean(float(result.success) for result in results)
    by_task: dict[str, JsonValue] = {
        outcome.plan.stated.task.task_id: statistics.fmean(
            float(result.success) for result in outcome.results
        )
        for outcome in outcomes
        if outcome.results
    }
    return {
        "standard_error": standard_error(success, len(results)),
        "by_task": by_task,
        "test/env/all/reward/total": statistics.fmean(result.reward for result in results),
        "test/env/all/turns_per_episode": statistics.fmean(one.num_turns for one in results),
        "test/env/all/total_episodes": len(results),
    }


def standard_error(success: float, episodes: int) -> float:
    """Of a success rate over independent episodes: sqrt(p (1 - p) / n)."""
    return math.sqrt(success * (1 - success) / episodes) if episodes else 0.0


def _kind(outcome: GroupOutcome) -> str:
    if outcome.is_failed:
        return "failed"
    successes = sum(result.success for result in outcome.results)
    return "good" if successes == len(outcome.results) else "mixed" if successes else "bad"
