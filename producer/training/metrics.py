"""The metrics of steps and evaluations, under tinker-cookbook's names."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from producer.config import RunConfig
from producer.policy.learner import UpdateResult
from producer.process_rewards.best_of_n import pass_at_k
from producer.rollouts.plan import GroupOutcome, RolloutResult
from producer.training.batch_metrics import completion_metrics, num_retokenised, ratio_metrics
from producer.training.batches import success_by_skill
from producer.training.updates import learning_rate_of
from schemas.clustered_errors import TaskCount, clustered_standard_error


def step_metrics(
    config: RunConfig,
    step: int,
    outcomes: Sequence[GroupOutcome],
    update: UpdateResult,
    *,
    rollouts_s: float,
) -> dict[str, JsonValue]:
    """Metrics of step `step` (from 1). None means nothing was measured, so there is no mean."""
    is_measured = update.num_measured_tokens > 0
    optional: dict[str, JsonValue] = {
        "kl_policy_base": update.kl_policy_base,
        "kl_pre_post_v1": update.kl_pre_post_v1,
        "kl_pre_post_v2": update.kl_pre_post_v2,
    }
    return {
        "progress/batch": step - 1,
        "progress/done_frac": step / config.num_steps,
        "optim/lr": learning_rate_of(config, step),
        "optim/kl_sample_train_v1": update.kl_sample_train_v1 if is_measured else None,
        "optim/kl_sample_train_v2": update.kl_sample_train_v2 if is_measured else None,
        "optim/entropy": update.entropy if is_measured else None,
        "optim/num_tokens": update.num_tokens,
        "optim/loss_per_token": update.loss_per_token if update.num_tokens else None,
        **{name: value for name, value in optional.items() if value is not None},
        **({} if update.learned is None else update.learned.metrics),
        **ratio_metrics(update),
        **_sampler_metrics(config, outcomes, update),
        **_memory_metrics(update),
        **environment_metrics(outcomes),
        **completion_metrics(outcomes),
        **error_metrics(outcomes),
        "time/rollout": rollouts_s,
        "time/train": update.seconds,
        "time/total": rollouts_s + update.seconds,
    }


def _sampler_metrics(
    config: RunConfig, outcomes: Sequence[GroupOutcome], update: UpdateResult
) -> dict[str, JsonValue]:
    """Metrics of the gap to sampling servers, whose kernels differ from the learner's."""
    if config.base_url is None or update.sampler_gap is None:
        return {}
    gap = update.sampler_gap
    return {
        "sampling/logprob_gap_mean": gap.mean,
        "sampling/logprob_gap_max": gap.largest,
        "sampling/effective_sample_share": gap.effective_share,
        "sampling/retokenised_turns": num_retokenised(outcomes),
    }


def _memory_metrics(update: UpdateResult) -> dict[str, JsonValue]:
    """Memory metrics of an accelerator."""
    if update.peak_memory_bytes is None:
        return {}
    return {
        "memory/peak_bytes": update.peak_memory_bytes,
        "memory/estimated_bytes": update.estimated_memory_bytes,
    }


def staleness_metrics(
    config: RunConfig, results: Sequence[RolloutResult], version: int
) -> dict[str, JsonValue]:
    """Age of a step's rollouts, relative to the policy `version` that is updated with them.

    Empty for a strictly on-policy run.
    """
    if config.max_steps_off_policy is None:
        return {}
    staleness = [version - result.policy_version for result in results]
    return {
        "sampling/staleness_mean": statistics.fmean(staleness),
        "sampling/staleness_max": max(staleness),
    }


def evaluation_metrics(outcomes: Sequence[GroupOutcome], *, seconds: float) -> dict[str, JsonValue]:
    """Metrics of an evaluation with at least one scored episode."""
    counts = {
        outcome.plan.stated.task.task_id: TaskCount(
            sum(result.success for result in outcome.results), len(outcome.results)
        )
        for outcome in outcomes
        if outcome.results
    }
    by_task: dict[str, JsonValue] = {
        name: count.successes / count.episodes for name, count in counts.items()
    }
    counts_by_task: dict[str, JsonValue] = {name: list(count) for name, count in counts.items()}
    by_skill: dict[str, JsonValue] = {
        name: list(counts) for name, counts in success_by_skill(outcomes).items()
    }
    return {
        "standard_error": clustered_standard_error(counts),
        "by_task": by_task,
        "counts_by_task": counts_by_task,
        **({"by_skill": by_skill} if by_skill else {}),
        **{f"test/{name}": value for name, value in environment_metrics(outcomes).items()},
        **error_metrics(outcomes),
        "time/eval": seconds,
    }


def passes_of_tasks(
    by_task: Mapping[str, TaskCount], temperature: float | None
) -> dict[int, float]:
    """Mean pass@k over tasks, by k: 1, 2, 4 ... up to the smallest number of episodes of a task.

    Empty without sampling, since greedy episodes of a task are not draws from one distribution.
    """
    fewest = min((count.episodes for count in by_task.values()), default=0)
    if not temperature:
        return {}
    return {
        k: statistics.fmean(
            pass_at_k(count.episodes, count.successes, k) for count in by_task.values()
        )
        for k in (1 << n for n in range(fewest.bit_length()))
    }


def environment_metrics(outcomes: Sequence[GroupOutcome]) -> dict[str, JsonValue]:
    """`env/all/...` metrics of the scored episodes; there must be at least one."""
    results = [result for outcome in outcomes for result in outcome.results]
    kinds = Counter(_kind(outcome) for outcome in outcomes)
    num_turns = sum(result.num_turns for result in results)
    num_tokens = sum(result.num_tokens for result in results)
    prompts = [result.num_prompt_tokens for result in results]
    num_prompt_tokens = sum(prompt for prompt in prompts if prompt is not None)
    is_recorded = None not in prompts
    return {
        "env/all/reward/total": statistics.fmean(result.reward for result in results),
        "env/all/success": statistics.fmean(float(result.success) for result in results),
        "env/all/ac_tokens_per_turn": num_tokens / max(num_turns, 1),
        "env/all/ob_tokens_per_turn": num_prompt_tokens / max(num_turns, 1)
        if is_recorded
        else None,
        "env/all/turns_per_episode": num_turns / len(results),
        "env/all/total_episodes": len(results),
        "env/all/total_turns": num_turns,
        "env/all/total_ac_tokens": num_tokens,
        "env/all/total_ob_tokens": num_prompt_tokens if is_recorded else None,
        "env/all/by_group/frac_mixed": kinds["mixed"] / len(outcomes),
        "env/all/by_group/frac_all_good": kinds["good"] / len(outcomes),
        "env/all/by_group/frac_all_bad": kinds["bad"] / len(outcomes),
    }


def error_metrics(outcomes: Sequence[GroupOutcome]) -> dict[str, JsonValue]:
    """`rollout_errors/...`: failed attempts by the boundary that failed, and failed groups."""
    errors = Counter(error for outcome in outcomes for error in outcome.errors)
    return {
        "rollout_errors/total": errors.total(),
        **{f"rollout_errors/{name}": count for name, count in sorted(errors.items())},
        "rollout_errors/groups_skipped": sum(outcome.is_failed for outcome in outcomes),
    }


def _kind(outcome: GroupOutcome) -> str:
    if outcome.is_failed:
        return "failed"
    successes = sum(result.success for result in outcome.results)
    return "good" if successes == len(outcome.results) else "mixed" if successes else "bad"
