"""Settings that are given and would do nothing in a run: refused, or named in its log.

Compared with what was given, because a training that goes on brings every setting it was begun
with. A setting at its default is none of them: a file may list every field.
"""

from collections.abc import Collection, Iterator

from producer.agents import AGENTS
from producer.config.preset import ORACLE_POLICY
from producer.config.reward import AGENT_REWARDS
from producer.config.run_config import RunConfig
from producer.errors import UsageError

OF_A_NETWORK = frozenset(
    {
        "train_type",
        "lora_rank",
        "lora_dropout",
        "renderer_name",
        "max_tokens",
        "temperature",
        "top_p",
        "eval_temperature",
        "eval_sampled_episodes",
        "max_recent_turns",
        "learning_rate",
        "learning_rate_warmup_steps",
        "learning_rate_schedule",
        "min_learning_rate_ratio",
        "weight_decay",
        "entropy_coef",
        "ppo_epochs",
        "max_gradient_norm",
        "num_substeps",
        "stream_minibatch",
        "num_minibatches",
        "loss_fn",
        "clip_ratio_low",
        "clip_ratio_high",
        "dual_clip",
        "loss_aggregation",
        "kl_penalty_coef",
        "kl_estimator",
        "kl_in",
        "compute_post_kl",
    }
)
"""Fields of sampling and learning, which the scripted policy does not."""


def check_effects(config: RunConfig, given: Collection[str]) -> None:
    """UsageError for fields of `given` that have no effect on a run of `config`."""
    changed = {name for name in given if _is_changed(config, name)}
    if problems := [*_problems(config, changed)]:
        raise UsageError("\n  ".join(problems))


def fields_without_network(config: RunConfig, given: Collection[str]) -> list[str]:
    """Fields of `given` that a policy without weights does not read."""
    if config.model_name != ORACLE_POLICY:
        return []
    return sorted(name for name in OF_A_NETWORK & {*given} if _is_changed(config, name))


def _is_changed(config: RunConfig, name: str) -> bool:
    field = RunConfig.model_fields.get(name)
    return field is not None and getattr(config, name) != field.default


def _problems(config: RunConfig, changed: Collection[str]) -> Iterator[str]:
    is_oracle = config.model_name == ORACLE_POLICY
    if "oracle_noise" in changed and not is_oracle:
        yield (
            f"oracle_noise: has no effect on the policy {config.model_name}; omit it, or use"
            f" model_name {ORACLE_POLICY}"
        )
    if config.train_type == "full":
        for name in ("lora_rank", "lora_alpha", "lora_dropout", "target_modules"):
            if name in changed:
                yield f"{name}: has no effect with train_type full, which has no adapter; omit it"
    if "ablate" in changed and is_oracle:
        yield "ablate: has no effect on the policy oracle, which looks at no screenshots; omit it"
    if "step_completions" in changed and (is_oracle or not config.agent.answers_in_steps):
        names = " or ".join(name for name, agent in AGENTS.items() if agent.answers_in_steps)
        yield (
            f"step_completions: has no effect but with environment {names} and a policy of"
            " tokens; omit it"
        )
    own = [
        name for name in ("reward_module", "reward_function", "reward_manager") if name in changed
    ]
    yield from _of_another_reward(config, changed)
    if "reward" in changed and own:
        yield f"reward: {own[0]} gives the reward; omit one of them"
    if "max_attempts" in changed and config.failure_policy != "retry":
        yield (
            f"max_attempts: has no effect with failure_policy {config.failure_policy}, which"
            " retries nothing; omit it, or use retry"
        )
    if "min_group_size" in changed and config.failure_policy == "fail_fast":
        yield (
            "min_group_size: has no effect with failure_policy fail_fast, which stops at the first"
            " failed rollout; omit it, or use min_viable_group"
        )


def _of_another_reward(config: RunConfig, changed: Collection[str]) -> Iterator[str]:
    for name in ("reward_correct", "reward_incorrect", "reward_timeout"):
        if name in changed and config.reward not in AGENT_REWARDS:
            yield f"{name}: only of the reward {', '.join(AGENT_REWARDS)}; omit it"
