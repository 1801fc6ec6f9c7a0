"""The configuration of a run: frozen, validated once, recorded in the training's first event.

Without a `model_name`, or with `demo`, the preset replaces some defaults (`DEMO_PRESET`). Fields
that are given win over both. Secrets are no part of it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    JsonValue,
    ModelWrapValidatorHandler,
    PrivateAttr,
    model_validator,
)

from producer.algorithms.advantages import ADVANTAGES
from producer.config.checks import config_problems
from producer.config.continuing import CHANGEABLE, check_same, inherited
from producer.config.fields import ConfigFields
from producer.config.policy import PolicyFields
from producer.config.preset import (
    DEMO_POLICY,
    ORACLE_POLICY,
    agent_defaults,
    demo_preset,
    held_out_source,
)
from producer.config.recipe_names import in_our_names
from producer.config.reward import AGENT_REWARDS, checked_sha256, module_hash, named_reward
from producer.config.sql_agents import ContinualFields, ProcessRewardFields, num_steps_of
from producer.config.tasks import EpisodeFields, FailureFields, TaskFields
from producer.config.training import (
    CheckpointFields,
    EvaluationFields,
    OptimisationFields,
    ReportingFields,
)
from producer.errors import UsageError
from producer.field_errors import read_as
from producer.policy.adapter_settings import AdapterSettings
from producer.policy.compute_settings import ComputeSettings
from producer.rewards import Reward
from schemas.training import RECORDED_BY, Recipe

TOPICS: dict[str, type[BaseModel]] = {
    "Policy": PolicyFields,
    "Tasks and devices": TaskFields,
    "Episodes": EpisodeFields,
    "Optimisation": OptimisationFields,
    "Continual learning": ContinualFields,
    "Process rewards": ProcessRewardFields,
    "Computation": ComputeSettings,
    "Evaluation": EvaluationFields,
    "Checkpoints and resume": CheckpointFields,
    "Failures": FailureFields,
    "Reports": ReportingFields,
}
"""Panel of the help -> its fields, in the order shown."""


NONE_IS_A_VALUE = frozenset({"max_recent_turns"})
"""Fields with another default than None that accept None."""


def without_unset(given: dict[str, Any]) -> dict[str, Any]:
    """The given fields; None means not given, except in `NONE_IS_A_VALUE`."""
    return {
        name: value for name, value in given.items() if value is not None or name in NONE_IS_A_VALUE
    }


def _defaults_of(given: dict[str, Any]) -> dict[str, JsonValue]:
    """Other defaults that come with an advantage or a loss."""
    defaults: dict[str, JsonValue] = {}
    known = next((own for name, own in ADVANTAGES.items() if name == given.get("advantage")), None)
    if known is not None and not known.compares_group:
        defaults |= {"remove_constant_reward_groups": False, "min_group_size": 1}
    if given.get("advantage") == "rejection":
        defaults["loss_fn"] = "reinforce"
    if given.get("loss_fn") == "gspo":
        defaults["loss_aggregation"] = "sequence_mean"
    return defaults


class RunConfig(ConfigFields):
    """Every setting of `cua-train run`; the command line has one flag for each field."""

    _explicit: frozenset[str] = PrivateAttr(default=frozenset())

    @model_validator(mode="wrap")
    @classmethod
    def _apply_preset(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:  # noqa: ANN401  # whatever was passed
        if not isinstance(given, dict):
            return handler(given)
        explicit = without_unset(in_our_names(given))
        is_demo = explicit.get("model_name", DEMO_POLICY) == DEMO_POLICY
        defaults = demo_preset(explicit.get("environment")) if is_demo else {}
        environment = explicit.get("environment")
        of_agent = agent_defaults(environment, explicit.get("model_name"), explicit.get("seed"))
        if explicit.get("tasks") is not None:
            # Without a held-out split they are evaluated on themselves.
            of_agent["eval_tasks"] = held_out_source(explicit["tasks"])
            defaults.pop("eval_tasks", None)
        given = {**of_agent, **defaults, **_defaults_of(explicit), **explicit}
        if explicit.get("skill_sequence") is not None and "num_steps" not in explicit:
            given = {**given, "num_steps": 0}
        config = handler(given)
        if config.skill_sequence is not None and "num_steps" not in explicit:
            object.__setattr__(config, "num_steps", num_steps_of(config))
        config._explicit = frozenset(explicit)
        return config

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.tasks is None and self.model_name == ORACLE_POLICY:
            object.__setattr__(self, "tasks", self.agent.demo_preset.get("tasks"))
            if self.eval_tasks is None:
                object.__setattr__(self, "eval_tasks", self.agent.demo_preset.get("eval_tasks"))
        if problems := [*config_problems(self), *self._set_reward_sha256()]:
            raise ValueError("\n".join(problems))
        is_own = self.provider == "in_process"
        has_adapter = is_own and self.model_name != ORACLE_POLICY and self.train_type == "lora"
        if has_adapter and self.lora_alpha is None:
            object.__setattr__(self, "lora_alpha", 2.0 * self.lora_rank)
        return self

    def _set_reward_sha256(self) -> list[str]:
        """Set the hashes of the user's files; their problem, if any."""
        try:
            sha256 = checked_sha256(self.reward, self.reward_sha256)
            core_sha256 = module_hash("core_algos", self.core_algos, self.core_algos_sha256)
            own_sha256 = module_hash("reward_module", self.reward_module, self.reward_module_sha256)
        except ValueError as error:
            return [str(error)]
        object.__setattr__(self, "reward_sha256", sha256)
        object.__setattr__(self, "core_algos_sha256", core_sha256)
        object.__setattr__(self, "reward_module_sha256", own_sha256)
        return []

    @property
    def base_urls(self) -> tuple[str, ...]:
        """Of the servers that sample; empty: none does."""
        return () if self.base_url is None else tuple(self.base_url.split(","))

    def make_reward(self) -> Reward:
        """The reward of an episode's outcome. ValueError."""
        if (make := AGENT_REWARDS.get(self.reward)) is not None:
            return make(self)
        return named_reward(self.reward, self.max_turn_time_seconds)

    @property
    def concurrent_rollouts(self) -> int:
        """Episodes that run at the same time: `max_concurrent_rollouts`, or fewer devices."""
        at_most = self.agent.most_at_once(self)
        asked = self.max_concurrent_rollouts
        return asked if at_most is None else min(asked, at_most)

    @property
    def explicit(self) -> frozenset[str]:
        """Fields that were given, without defaults and the preset."""
        return self._explicit

    def named(self, training_name: str | None) -> "RunConfig":
        """A copy with this name; None: of no training."""
        return self._changed(training_name=training_name)

    def resolved(self, behavior: Literal["resume", "overwrite", "skip"]) -> "RunConfig":
        """A copy with this `behavior_if_log_dir_exists`."""
        return self._changed(behavior_if_log_dir_exists=behavior)

    def with_adapter(self, settings: AdapterSettings) -> "RunConfig":
        """A copy with the settings of the adapter of `load_checkpoint_path`.

        UsageError if others were given. Given `target_modules` are compared when it is loaded.
        """
        config = self._as_adapter(lora_rank=settings.rank, lora_alpha=settings.alpha)
        own = {} if "target_modules" in self.explicit else {"target_modules": settings.targets}
        return config._changed(**own)

    def with_rank(self, rank: int | None) -> "RunConfig":
        """A copy with the rank of the adapter at the service; None: it does not say.

        UsageError if another was given.
        """
        return self if rank is None else self._as_adapter(lora_rank=rank)

    def _as_adapter(self, **found: float) -> "RunConfig":
        problems = [
            f"{name}: the adapter {self.load_checkpoint_path} has {value:g}, not"
            f" {getattr(self, name):g}; leave {name} out"
            for name, value in found.items()
            if name in self.explicit and getattr(self, name) != value
        ]
        if problems:
            raise UsageError("; ".join(problems))
        return self._changed(**found)

    def with_cpu_threads(self, number: int) -> "RunConfig":
        """A copy with this machine's number; recorded, but not in `explicit`."""
        return self._changed(cpu_threads=number)

    def sampled_here(self) -> "RunConfig":
        """A copy whose rollouts this process runs and samples: no servers, no workers."""
        return self._changed(base_url=None, adapters_dir=None, rollouts_by="trainer")

    def _changed(self, **changes: object) -> "RunConfig":
        changed = self.model_copy(update=changes)
        changed._explicit = self._explicit
        return changed

    @property
    def run_folder(self) -> Path | None:
        """The folder that was chosen for this training, absolute; None: CUA_HOME/runs/NAME."""
        folder = self.log_path
        if self.log_dir is not None and self.training_name is not None:
            folder = self.log_dir / self.training_name
        return None if folder is None else folder.expanduser().absolute()

    @property
    def batch_size(self) -> int:
        """Rollouts per step that count in its rewards."""
        return self.group_size * self.groups_per_batch

    @property
    def rollouts_per_step(self) -> int:
        """Including remax's greedy rollout of each group."""
        return (self.group_size + (self.advantage == "remax")) * self.groups_per_batch

    @property
    def most_rollouts_per_step(self) -> int:
        """If every round samples every group again."""
        return self.rollouts_per_step * (1 + self.refill_rounds)

    @property
    def kind(self) -> Literal["rl"]:
        """As `TrainingCreated` records it."""
        return "rl"

    def recorded(self) -> dict[str, JsonValue]:
        """As JSON for the training's first event."""
        return self.model_dump(mode="json", exclude={"behavior_if_log_dir_exists"})

    def recipe(self, log_path: Path) -> Recipe:
        """The settings that have columns of their own."""
        own = {name: getattr(self, name) for name in Recipe.model_fields}
        rank = self.lora_rank if self.train_type == "lora" else None
        system = self.agent.operating_system(self)
        other = {"log_path": str(log_path), "lora_rank": rank, "box_type": system}
        return Recipe.model_validate(own | other)

    def continuing(self, recorded: dict[str, JsonValue], *, overwrite: bool) -> "RunConfig":
        """As `TrainingConfig.continuing`."""
        explicit = {name: value for name, value in self.recorded().items() if name in self.explicit}
        return read_continued(explicit, recorded, overwrite=overwrite)


def read_config(given: dict[str, Any], names: Mapping[str, str] | None = None) -> RunConfig:
    """Validate a configuration; UsageError lists every problem, one per line.

    `names`: what the user calls a field, by ours.
    """
    return read_as(RunConfig, given, names)


def read_fields(given: dict[str, Any]) -> dict[str, JsonValue]:
    """The given fields as JSON, each validated for itself; UsageError as `read_config`."""
    fields = without_unset(given)
    return read_as(ConfigFields, fields).model_dump(mode="json", include={*fields})


def read_continued(
    given: dict[str, Any], recorded: dict[str, JsonValue], *, overwrite: bool
) -> RunConfig:
    """The configuration of a training that continues: given fields override recorded ones.

    UsageError as `read_config`, and for a field that cannot change, unless `overwrite` begins a new
    generation.
    """
    recorded = recorded_fields(recorded)
    fields = read_fields(given)
    if not overwrite:
        # The schedule ends at the last step.
        is_cosine = recorded.get("learning_rate_schedule") == "cosine"
        check_same(recorded, fields, CHANGEABLE - {"num_steps"} if is_cosine else CHANGEABLE)
    config = read_config({**inherited(recorded, fields), **fields})
    config._explicit = frozenset(fields)
    return config


def recorded_fields(recorded: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The settings of a training that `cua-train run` recorded, without those of other releases.

    UsageError if another trainer runs the training, or if it uses a setting that this release does
    not have.
    """
    if RECORDED_BY in recorded:
        message = (
            "another trainer runs this training and has its weights; only its record is here"
            " (`record.open`)"
        )
        raise UsageError(message)
    unknown = {
        name: value for name, value in recorded.items() if name not in RunConfig.model_fields
    }
    if used := [f"{name} {value!r}" for name, value in unknown.items() if value]:
        message = (
            "another release of cua-train recorded this training, with a setting that this one does"
            f" not have: {', '.join(used)}"
        )
        raise UsageError(message, ways=("use that release for it", "begin another training"))
    return {name: value for name, value in recorded.items() if name not in unknown}
