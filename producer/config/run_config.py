"""The configuration of a run: frozen, validated once, recorded in the training's first event.

Without a `model_name`, or with `demo`, the preset replaces some defaults (`DEMO_PRESET`). Fields
that are given win over both. Secrets are no part of it.
"""

from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    JsonValue,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from producer.config.algorithm_checks import algorithm_problems
from producer.config.checkpoints import CheckpointFields
from producer.config.episodes import EpisodeFields
from producer.config.evaluation import EvaluationFields
from producer.config.failures import FailureFields
from producer.config.optimisation import OptimisationFields
from producer.config.policy import PolicyFields
from producer.config.preset import DEMO_POLICY, DEMO_PRESET, ORACLE_POLICY
from producer.config.reporting import ReportingFields
from producer.config.reward import checked_sha256
from producer.config.tasks import TaskFields
from producer.errors import UsageError, did_you_mean
from producer.field_errors import field_problems

TOPICS: dict[str, type[BaseModel]] = {
    "Policy": PolicyFields,
    "Tasks and devices": TaskFields,
    "Episodes": EpisodeFields,
    "Optimisation": OptimisationFields,
    "Evaluation": EvaluationFields,
    "Checkpoints and resume": CheckpointFields,
    "Failures": FailureFields,
    "Reports": ReportingFields,
}
"""Panel of the help -> its fields, in the order shown."""


class RunConfig(
    ReportingFields,  # pydantic orders fields from the last base to the first
    FailureFields,
    EvaluationFields,
    OptimisationFields,
    EpisodeFields,
    TaskFields,
    PolicyFields,
    CheckpointFields,
):
    """Every setting of `cua-train run`; the command line has one flag for each field."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    _explicit: frozenset[str] = PrivateAttr(default=frozenset())

    @model_validator(mode="wrap")
    @classmethod
    def _apply_preset(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:  # noqa: ANN401  # whatever was passed
        if not isinstance(given, dict):
            return handler(given)
        explicit = {name: value for name, value in given.items() if value is not None}
        is_demo = explicit.get("model_name", DEMO_POLICY) == DEMO_POLICY
        config = handler({**DEMO_PRESET, **explicit} if is_demo else explicit)
        config._explicit = frozenset(explicit)
        return config

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.tasks is None and self.model_name == ORACLE_POLICY:
            object.__setattr__(self, "tasks", DEMO_PRESET["tasks"])
        problems = []
        if self.tasks is None:
            problems.append(
                f"tasks: {self.model_name!r} has no default tasks; give some, for example"
                ' {"source_type": "demo_training"}'
                + did_you_mean(self.model_name, (DEMO_POLICY, ORACLE_POLICY)).replace(" ", ". ", 1)
            )
        if self.model_name == ORACLE_POLICY and self.load_checkpoint_path is not None:
            problems.append("load_checkpoint_path: the policy `oracle` has no adapter; omit it")
        if self.wandb_name is not None and self.wandb_project is None:
            problems.append("wandb_name: needs a wandb_project to have a run in")
        if self.box_type == "linux":
            problems.append("box_type: linux is not supported yet; use android")
        if self.min_group_size > self.group_size:
            problems.append(
                f"min_group_size: {self.min_group_size} is more than group_size"
                f" ({self.group_size}), so every group would fail"
            )
        try:
            sha256 = checked_sha256(self.reward, self.reward_sha256)
        except ValueError as error:
            problems.append(str(error))
        else:
            object.__setattr__(self, "reward_sha256", sha256)
        problems += algorithm_problems(self, min_group_size=self.min_group_size)
        if problems:
            raise ValueError("\n".join(problems))
        return self

    @property
    def explicit(self) -> frozenset[str]:
        """Fields that were given, as opposed to defaults and the preset's."""
        return self._explicit

    def named(self, training_name: str) -> "RunConfig":
        """A copy with this name."""
        return self._changed(training_name=training_name)

    def resolved(self, behavior: Literal["resume", "overwrite", "skip"]) -> "RunConfig":
        """A copy with this answer to what happens when the training exists."""
        return self._changed(behavior_if_log_dir_exists=behavior)

    def _changed(self, **changes: str) -> "RunConfig":
        changed = self.model_copy(update=changes)
        changed._explicit = self._explicit
        return changed

    @property
    def batch_size(self) -> int:
        """Rollouts per step."""
        return self.group_size * self.groups_per_batch

    def recorded(self) -> dict[str, JsonValue]:
        """As JSON for the training's first event."""
        return self.model_dump(mode="json", exclude={"behavior_if_log_dir_exists"})


def read_config(given: dict[str, Any]) -> RunConfig:
    """Validate a configuration; UsageError lists every problem, one per line."""
    try:
        return RunConfig.model_validate(given)
    except ValidationError as error:
        problems = field_problems(error, RunConfig.model_fields)
    if len(problems) == 1:
        raise UsageError(problems[0])
    raise UsageError("\n  ".join(["the configuration is not valid:", *problems]))
