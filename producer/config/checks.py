"""Rules over several fields of the configuration, as tables.

A field with another value than its default must have an effect (`REQUIREMENTS`), and fields must
not contradict each other (`CONFLICTS`). `EFFECTS` apply to the fields that a command was given: a
training that continues also has the settings it was begun with.

A rule's text is `what is wrong; what to do`, formatted with the configuration `c` and its
`advantage`.
"""

import json
from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple

from producer.agents import AGENTS, DEFAULT_AGENT
from producer.algorithms.advantages import ADVANTAGES
from producer.algorithms.names import CLIPPED
from producer.algorithms.settings import KlSettings, LossSettings, OptimizerSettings
from producer.config.fields import ConfigFields
from producer.config.preset import DEMO_POLICY, ORACLE_POLICY
from producer.config.reward import AGENT_REWARDS
from producer.config.sql_agents import ContinualFields, ProcessRewardFields, num_steps_of
from producer.config.tinker import REFUSED, WITHOUT_EFFECT, is_tinker
from producer.errors import UsageError
from producer.policy.compute_settings import ComputeSettings
from producer.validators.judges import AGENT, UNJUDGED
from schemas.advice import did_you_mean

OF_THIS_PROCESS: Final = (
    *("max_steps_off_policy", "process_reward_model", "step_completions"),
    *("reward_module", "reward_function", "reward_manager"),
)
"""Fields of what runs beside the episodes in the trainer's process."""
Condition = Callable[[ConfigFields], object]
OF_STEPS: Final = " or ".join(name for name, agent in AGENTS.items() if agent.answers_in_steps)
OF_SKILLS: Final = " or ".join(name for name, agent in AGENTS.items() if agent.has_skills)
OF_TOKENS: Final = " or ".join(name for name, own in ADVANTAGES.items() if own.reads_token_rewards)


class Requirement(NamedTuple):
    """Fields that keep their defaults unless the condition holds."""

    fields: str
    """Names between blanks."""
    condition: Condition
    otherwise: str


class Conflict(NamedTuple):
    """A combination of values that is refused."""

    field: str
    condition: Condition
    problem: str


def _of_other_advantages() -> Iterator[Requirement]:
    for name, advantage in ADVANTAGES.items():
        if advantage.learned is not None:
            yield Requirement(
                " ".join(advantage.learned.settings.model_fields),
                lambda c, name=name: c.advantage == name,  # type: ignore[misc]
                f"has no effect on the advantage {{c.advantage}}; omit it, or use {name}",
            )


def _of_other_agents() -> Iterator[Requirement]:
    for field in sorted({field for agent in AGENTS.values() for field in agent.own_settings}):
        owners = [name for name, agent in AGENTS.items() if field in agent.own_settings]
        yield Requirement(
            field,
            lambda c, owners=owners: c.environment in owners,  # type: ignore[misc]
            f"only for environment {' or '.join(owners)}; omit it",
        )


def _of_this_process() -> Iterator[Requirement]:
    for fields, otherwise in WITHOUT_EFFECT:
        yield Requirement(fields, lambda c: not is_tinker(c), otherwise)


def _refused_by_tinker() -> Iterator[Conflict]:
    for field, condition, problem in REFUSED:
        yield Conflict(
            field,
            lambda c, condition=condition: is_tinker(c) and condition(c),  # type: ignore[misc]
            problem,
        )


def _by_workers(c: ConfigFields) -> bool:
    return c.rollouts_by == "workers"


def _is_oracle(c: ConfigFields) -> bool:
    return c.model_name == ORACLE_POLICY


def _own_reward(c: ConfigFields) -> str | None:
    """The field that replaces `reward`."""
    names = ("reward_module", "reward_function", "reward_manager")
    return next((name for name in names if getattr(c, name) is not None), None)


def _reads_token_rewards(c: ConfigFields) -> bool:
    has_own = c.core_function is not None or c.reward_manager is not None
    return has_own or ADVANTAGES[c.advantage].reads_token_rewards


def _reads_more_than_rewards(c: ConfigFields) -> bool:
    """Whether something decides a rollout's advantage that no control replaces."""
    is_more = c.advantage == "remax" or ADVANTAGES[c.advantage].learned
    return bool(is_more or _reads_token_rewards(c) or c.step_completions or c.baseline == "moving")


def _corrects_for_age(c: ConfigFields) -> bool:
    """Whether the loss allows for weights that changed between a token's sampling and its update.

    Supervised training on right samples needs no correction.
    """
    is_on_policy = not c.max_steps_off_policy and c.num_substeps == c.ppo_epochs == 1
    return is_on_policy or c.loss_fn != "reinforce" or c.advantage == "rejection"


REQUIREMENTS: Final = (
    Requirement("wandb_name", lambda c: c.wandb_project, "needs a wandb_project; give one"),
    Requirement("renderer_name", lambda c: c.base_url or c.renderer_name != "openai",
                "openai needs a base_url; give one, or use another renderer_name"),
    Requirement("judge_model", lambda c: c.judge not in {None, AGENT, UNJUDGED},
                "only with a judge that is the URL of an endpoint; omit it, or give such a judge"),
    Requirement("ablate screen_cache_bytes", lambda c: c.agent.has_screen(c),
                "{c.environment} has no screen; omit it"),
    Requirement("max_recent_turns", lambda c: c.agent.has_screen(c) or c.max_recent_turns is None,
                "{c.environment} has no screen; omit it"),
    *_of_other_agents(),
    *_of_other_advantages(),
    Requirement("adapters_dir", lambda c: c.base_url, "only with a base_url; omit it"),
    *_of_this_process(),
    Requirement(" ".join(ComputeSettings.model_fields), lambda c: not _is_oracle(c),
                "the policy `oracle` is a script without weights; omit it"),
    Requirement("load_checkpoint_path lora_alpha target_modules", lambda c: not _is_oracle(c),
                "the policy `oracle` has no adapter; omit it"),
    Requirement("advantage_by_std", lambda c: c.advantage == "mean_centered",
                "has no effect on the advantage {c.advantage}; omit it, or use mean_centered"),
    Requirement("refill_rounds", lambda c: c.remove_constant_reward_groups,
                "replaces the groups that remove_constant_reward_groups drops; set that too, or"
                " omit it"),
    Requirement("baseline", lambda c: c.advantage == "reinforce",
                "has no effect on the advantage {c.advantage}; omit it, or use reinforce"),
    Requirement("baseline_momentum", lambda c: c.baseline == "moving",
                "has no effect with the baseline {c.baseline}; omit it"),
    Requirement("clip_ratio_low clip_ratio_high", lambda c: c.loss_fn in CLIPPED,
                "has no effect on the loss {c.loss_fn}, which does not clip; omit it, or use"
                f" {', '.join(CLIPPED)}"),
    Requirement("dual_clip", lambda c: c.loss_fn == "ppo",
                "has no effect on the loss {c.loss_fn}; omit it, or use ppo"),
    Requirement("importance_cap", lambda c: c.base_url or c.max_steps_off_policy,
                "has no effect where the trained policy samples in this process, because its"
                " weights are 1; omit it, or use base_url or max_steps_off_policy"),
    Requirement("min_learning_rate_ratio", lambda c: c.learning_rate_schedule != "constant",
                "has no effect with a constant learning_rate_schedule; omit it, or use cosine"),
    Requirement("kl_estimator kl_in", lambda c: c.kl_penalty_coef,
                "has no effect with kl_penalty_coef 0; omit it, or set the weight"),
    Requirement(" ".join(ProcessRewardFields.model_fields), lambda c: c.agent.answers_in_steps,
                f"only with environment {OF_STEPS}; omit it"),
    Requirement("core_algos core_algos_sha256", lambda c: c.core_function,
                "only with a core_function; name one, or omit it"),
    Requirement("verifier_coef", _reads_token_rewards,
                f"only with a core_function or the advantage {OF_TOKENS}; omit it"),
    Requirement("process_reward_model", lambda c: _reads_token_rewards(c) or c.baseline_only,
                f"only with a core_function or the advantage {OF_TOKENS}; omit it"),
    Requirement("reward_module_sha256", lambda c: c.reward_module,
                "only with a reward_module; name one, or omit it"),
    Requirement("reward_port", _own_reward,
                "only with your own reward function or manager; name one, or omit it"),
    Requirement("rm_coef", lambda c: c.process_reward_model or c.reward_manager,
                "only with a process_reward_model or a reward_manager; omit it"),
    Requirement("reward_model_sees_results", lambda c: c.process_reward_model,
                "only with a process_reward_model; omit it"),
    Requirement(" ".join(ContinualFields.model_fields), lambda c: c.agent.has_skills,
                f"only with environment {OF_SKILLS}, whose entries name skills; omit it"),
    Requirement("steps_per_skill replay_share", lambda c: c.skill_sequence,
                "only with a skill_sequence; omit it"),
)  # fmt: skip

CONFLICTS: Final = (
    Conflict("base_url", lambda c: c.base_url and _is_oracle(c),
             "no server can sample the policy `oracle`; omit it"),
    Conflict("rollouts_by", lambda c: _by_workers(c) and not c.base_url and not _is_oracle(c),
             "workers sample from inference servers; give their base_url"),
    *(Conflict(field, lambda c, field=field: _by_workers(c) and getattr(c, field),  # type: ignore[misc]
               "only with rollouts_by trainer; omit it")
      for field in OF_THIS_PROCESS),
    Conflict("train_type", lambda c: c.base_url and c.train_type == "full",
             "the servers of base_url take new weights as LoRA adapters; use lora"),
    Conflict("advantage", lambda c: _is_oracle(c) and ADVANTAGES[c.advantage].learned,
             "the policy `oracle` has no {advantage.learned.title}; omit it"),
    Conflict("advantage",
             lambda c: ADVANTAGES[c.advantage].is_of_steps and not c.agent.answers_in_steps,
             f"{{c.advantage}} is only for environment {OF_STEPS}; use rloo"),
    Conflict("advantage",
             lambda c: c.core_function and c.advantage not in {"mean_centered", "grpo"},
             "{c.advantage} has no effect beside a core_function; omit one of them"),
    Conflict("control", lambda c: c.control != "none" and _reads_more_than_rewards(c),
             "works only if advantages depend on nothing but the rollouts' rewards; use"
             " mean_centered, grpo, rloo or rejection, without a moving baseline, token rewards or"
             " step_completions"),
    Conflict("control", lambda c: c.control == "wrong_sign" and c.advantage == "rejection",
             "wrong_sign has no effect with the advantage rejection, which depends on whether a"
             " rollout is right, not on its reward; use shuffled_rewards or ignored_rewards"),
    Conflict("refill_rounds", lambda c: c.refill_rounds and c.control != "none",
             "selects groups by their true rewards, which a control must not use; omit"
             " refill_rounds or control"),
    Conflict("dtype", lambda c: c.train_type == "full" and c.dtype == "bfloat16",
             "train_type full computes in float32, because bfloat16 rounds small updates away; omit"
             " it"),
    Conflict("load_checkpoint_path", lambda c: c.train_type == "full" and c.load_checkpoint_path,
             "train_type full begins from a whole policy; merge the adapter with `cua-train"
             " checkpoints merge`, and give the result as model_name"),
    Conflict("baseline_only", lambda c: c.skip_baseline and c.baseline_only,
             "contradicts skip_baseline; give one of them"),
    Conflict("log_dir", lambda c: c.log_dir and c.log_path,
             "log_path already names the training's folder; give only one of the two"),
    Conflict("group_size",
             lambda c: c.group_size < c.min_group_size and not _is_changed(c, "min_group_size"),
             "{c.group_size} is fewer than the {c.min_group_size} rollouts that a group needs to"
             " compare them; use {c.min_group_size} or more, or an advantage that does not compare"
             " the rollouts of a group, such as reinforce"),
    Conflict("min_group_size",
             lambda c: c.group_size < c.min_group_size and _is_changed(c, "min_group_size"),
             "{c.min_group_size} is more than group_size ({c.group_size}): every group would fail;"
             " lower it, or raise group_size"),
    Conflict("min_group_size", lambda c: c.min_group_size < ADVANTAGES[c.advantage].min_group_size,
             "{c.advantage} compares the rollouts of a group; use {advantage.min_group_size} or"
             " more"),
    Conflict("baseline", lambda c: c.baseline == "group" and c.group_size == 1,
             "the mean of a group of one is its own reward: nothing would be learned; use a larger"
             " group_size, or moving"),
    Conflict("kl_estimator",
             lambda c: c.kl_penalty_coef and c.kl_in == "loss" and c.kl_estimator == "k1",
             "k1 has an expected gradient of 0 as a term of the loss; use k2 or k3, or kl_in"
             " advantage"),
    Conflict("process_reward_model",
             lambda c: c.process_reward_model and not c.process_reward_model.is_dir(),
             "there is no folder {c.process_reward_model}; check the path"),
    Conflict("num_steps",
             lambda c: c.agent.has_skills and c.skill_sequence and c.num_steps > num_steps_of(c),
             "{c.num_steps} is more than steps_per_skill x the number of skills; leave num_steps"
             " out, or begin with more steps_per_skill"),
    Conflict("load_checkpoint_path",
             lambda c: isinstance(c.load_checkpoint_path, str) and not is_tinker(c),
             "only provider tinker loads tinker:// paths; give a folder, or set provider"),
    *_refused_by_tinker(),
)  # fmt: skip

EFFECTS: Final = (
    Requirement("oracle_noise", _is_oracle,
                "has no effect on the policy {c.model_name}; omit it, or use model_name"
                f" {ORACLE_POLICY}"),
    Requirement("lora_rank lora_alpha lora_dropout target_modules",
                lambda c: c.train_type != "full",
                "has no effect with train_type full, which has no adapter; omit it"),
    Requirement("ablate", lambda c: not _is_oracle(c),
                "has no effect on the policy oracle, which looks at no screenshots; omit it"),
    Requirement("step_completions", lambda c: c.agent.answers_in_steps and not _is_oracle(c),
                f"has no effect except with environment {OF_STEPS} and a policy with weights; omit"
                " it"),
    Requirement("reward_correct reward_incorrect reward_timeout",
                lambda c: c.reward in AGENT_REWARDS,
                f"only for the reward {', '.join(AGENT_REWARDS)}; omit it"),
    Requirement("max_attempts", lambda c: c.failure_policy == "retry",
                "has no effect with failure_policy {c.failure_policy}, which retries nothing; omit"
                " it, or use retry"),
    Requirement("min_group_size", lambda c: c.failure_policy != "fail_fast",
                "has no effect with failure_policy fail_fast, which stops at the first failed"
                " rollout; omit it, or use min_viable_group"),
    Requirement("loss_fn num_substeps ppo_epochs max_steps_off_policy",
                lambda c: _corrects_for_age(c) or _is_oracle(c),
                "the loss reinforce assumes that the weights being updated sampled every token;"
                " with num_substeps, ppo_epochs or max_steps_off_policy they did not; use"
                " importance_sampling or ppo, or omit those"),
    Requirement("group_by_prefix", lambda c: c.num_substeps > 1,
                "has no effect with one optimiser step per batch; set num_substeps above 1, or omit"
                " it"),
    Requirement("reward", lambda c: not _own_reward(c),
                "a reward_module, reward_function or reward_manager replaces it; omit one of them"),
)  # fmt: skip

SERVED: Final = (
    Requirement("base_url", lambda c: c.agent.has_screen(c),
                "only for environments with a screen; omit it"),
    Requirement(" ".join((*ComputeSettings.model_fields, "load_checkpoint_path", "adapters_dir")),
                lambda _: False, "the server at base_url computes the policy; omit it"),
)  # fmt: skip
"""Of an evaluation of a policy that only a server has."""

OF_A_NETWORK: Final = frozenset(
    {
        *(OptimizerSettings.model_fields | LossSettings.model_fields | KlSettings.model_fields),
        *("train_type", "lora_rank", "lora_dropout", "renderer_name", "max_tokens"),
        *("temperature", "top_p", "eval_temperature", "eval_sampled_episodes"),
        *("max_recent_turns", "learning_rate_warmup_steps", "learning_rate_schedule"),
        "min_learning_rate_ratio",
    }
)
"""Fields of sampling and learning, which the scripted policy ignores."""


def check_served(config: ConfigFields) -> None:
    """UsageError for what an evaluation of a policy that only a server has cannot have."""
    changed = {name for name in type(config).model_fields if _is_changed(config, name)}
    problems = _unmet(SERVED, config, changed)
    if config.model_name == DEMO_POLICY:
        problems.append("model_name: give the policy's name on the server at base_url")
    if "," in str(config.base_url):
        problems.append("base_url: an evaluation takes one server; give one URL")
    if problems:
        raise UsageError("; ".join(problems))


def config_problems(config: ConfigFields) -> list[str]:
    """`field: what is wrong; what to do` for each broken rule."""
    changed = {name for name in type(config).model_fields if _is_changed(config, name)}
    problems = [_no_default_tasks(config)] if config.tasks is None else []
    problems += _unmet(REQUIREMENTS, config, changed)
    return problems + [
        _line(field, problem, config)
        for field, condition, problem in CONFLICTS
        if condition(config)
    ]


def check_effects(config: ConfigFields, given: Collection[str]) -> None:
    """UsageError for fields of `given` that have no effect on a run of `config`."""
    changed = {name for name in given if _is_changed(config, name)}
    if problems := _unmet(EFFECTS, config, changed):
        raise UsageError("\n  ".join(problems))


def fields_without_network(config: ConfigFields, given: Collection[str]) -> list[str]:
    """Fields of `given` that a policy without weights ignores."""
    if config.model_name != ORACLE_POLICY:
        return []
    return sorted(name for name in OF_A_NETWORK & {*given} if _is_changed(config, name))


def _unmet(
    requirements: tuple[Requirement, ...], config: ConfigFields, changed: Collection[str]
) -> list[str]:
    """A line for each changed field: its first requirement that does not hold."""
    found: dict[str, str] = {}
    for fields, condition, otherwise in requirements:
        for name in fields.split():
            if name in changed and name not in found and not condition(config):
                found[name] = _line(name, otherwise, config)
    return list(found.values())


def _line(field: str, text: str, config: ConfigFields) -> str:
    return f"{field}: {text.format(c=config, advantage=ADVANTAGES[config.advantage])}"


def _is_changed(config: ConfigFields, name: str) -> bool:
    field = type(config).model_fields.get(name)
    return field is not None and getattr(config, name) != field.default


def _no_default_tasks(config: ConfigFields) -> str:
    """What to give if neither the policy nor its agent has default tasks."""
    source, own = next(iter(config.agent.task_sources.items()))
    required = own.required_field()
    example = {"source_type": source} | ({required: "..."} if required else {})
    built_in = (DEMO_POLICY, ORACLE_POLICY)
    if config.model_name in built_in:  # they take the environment's own
        return (
            f"tasks: environment {config.environment} has no default tasks; give some, for example"
            f" {json.dumps(example)}"
        )
    where = "" if config.environment == DEFAULT_AGENT else f" in environment {config.environment}"
    return (
        f"tasks: {config.model_name!r} has no default tasks{where}; give some, for example"
        f" {json.dumps(example)}{did_you_mean(config.model_name, built_in).replace(' ', '. ', 1)}"
    )
