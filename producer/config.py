"""The configuration of a run: frozen, validated once, recorded in the training's first event.

Without a `model_name`, or with `demo`, the preset replaces some defaults (`DEMO_PRESET`). Fields
that are given win over both. Secrets are no part of it.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from producer.errors import UsageError, did_you_mean
from producer.field_errors import field_problems
from producer.tasks.preset import PRESET_TASK_IDS
from producer.training_name import check_training_name
from schemas.training import Recipe

DEMO_POLICY = "demo"
"""`model_name` of the small policy that is built and warmed up on this machine."""
ORACLE_POLICY = "oracle"
"""`model_name` of the scripted policy: solves tasks with random actions mixed in, learns nothing,
needs no torch."""

DEMO_PRESET: dict[str, JsonValue] = {
    "model_name": DEMO_POLICY,
    "lora_rank": 16,
    "max_turns": 6,
    "group_size": 8,
    "groups_per_batch": 16,
    "num_steps": 20,
    "learning_rate": 1.5e-3,
    "max_tokens": 14,
    "num_substeps": 2,
    "parse_error_cost": 0.1,
    "max_concurrent_rollouts": 128,
    "eval_every": 10,
    "eval_episodes": 384,
    "save_every": 10,
    "tasks": {"source_type": "ids", "task_ids": list(PRESET_TASK_IDS)},
    "eval_temperature": 1.0,
}
"""Defaults for the small policy: 1 M parameters need other settings than 30 B."""

PositiveInt = Annotated[int, Field(ge=1, le=1_000_000)]
NonNegativeInt = Annotated[int, Field(ge=0, le=1_000_000)]
"""The tables' integers have 32 bits: a larger number would park the training's stream."""
BatchPart = Annotated[int, Field(ge=1, le=10_000)]
"""The product of two of them, the batch size, has a column too."""
Seed = Annotated[int, Field(ge=0, lt=2**63)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class RunConfig(BaseModel):
    """Every setting of `cua-train run`; the command line has one flag for each field."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    training_name: Annotated[str, AfterValidator(check_training_name)] | None = Field(
        None, description="Name of the training. The same name continues the same training."
    )
    model_name: str = Field(
        "Qwen/Qwen3-VL-30B-A3B-Instruct",
        description=(
            "Policy to train: a folder, a Hugging Face id, `demo` (small, built on this machine)"
            " or `oracle` (scripted, learns nothing)."
        ),
    )
    lora_rank: PositiveInt = Field(32, description="Rank of the LoRA adapters.")
    renderer_name: Literal["auto", "compact", "qwen"] = Field(
        "auto", description="Format of prompts and actions; auto chooses by the policy."
    )
    load_checkpoint_path: Path | None = Field(
        None, description="Start from this adapter (PEFT layout)."
    )
    box_type: Literal["android", "linux"] = Field("android", description="Type of device.")
    max_turns: PositiveInt = Field(
        20, description="Turns per episode; a task may set a lower limit."
    )
    tasks: JsonValue = Field(
        None, description="Training tasks: a task source or a list of task sources."
    )
    eval_tasks: JsonValue = Field(
        None, description="Evaluation tasks: a task source or a list of task sources."
    )
    seed: Seed = Field(
        0, description="Seed of everything random: device states, sampling, weights."
    )
    group_size: BatchPart = Field(
        4, description="Rollouts per group: attempts at the same task, compared with each other."
    )
    groups_per_batch: BatchPart = Field(10, description="Groups per training step.")
    num_steps: NonNegativeInt = Field(100, description="Training steps in total.")
    learning_rate: NonNegativeFloat = Field(1e-5, description="Learning rate of Adam.")
    max_tokens: PositiveInt = Field(2048, description="Maximum length of a completion, in tokens.")
    temperature: NonNegativeFloat = Field(1.0, description="Sampling temperature in training.")
    eval_temperature: NonNegativeFloat = Field(
        0.0, description="Sampling temperature in evaluations; 0 is greedy."
    )
    kl_penalty_coef: NonNegativeFloat = Field(
        0.0, description="Weight of the KL penalty against the policy without its adapter."
    )
    num_substeps: PositiveInt = Field(1, description="Optimiser steps per batch.")
    loss_fn: Literal["importance_sampling", "ppo", "cispo"] = Field(
        "importance_sampling", description="Loss function of the policy update."
    )
    advantage_by_std: bool = Field(
        False, description="Divide advantages by the standard deviation of their group (+ 0.05)."
    )
    turn_cost: NonNegativeFloat = Field(0.0, description="Reward subtracted for each turn.")
    parse_error_cost: NonNegativeFloat = Field(
        0.0, description="Reward subtracted for each action that cannot be parsed."
    )
    max_concurrent_rollouts: PositiveInt = Field(
        8, description="Episodes that run at the same time, over all groups."
    )
    max_task_time_seconds: PositiveFloat = Field(
        1800.0, description="Time limit of an episode; reaching it ends the episode unsolved."
    )
    max_turn_time_seconds: PositiveFloat = Field(
        300.0, description="Time limit of one call to the device; reaching it fails the attempt."
    )
    failure_policy: Literal["retry", "fail_fast", "min_viable_group"] = Field(
        "retry",
        description=(
            "When a rollout fails: retry with a new device, stop the run (fail_fast), or continue"
            " with the rest of its group (min_viable_group)."
        ),
    )
    max_attempts: PositiveInt = Field(3, description="Attempts per rollout with retry.")
    min_group_size: PositiveInt = Field(
        2, description="Scored rollouts that a group needs; with fewer it fails."
    )
    eval_every: NonNegativeInt = Field(
        10, description="Steps between evaluations; 0: only after the last step."
    )
    eval_episodes: PositiveInt = Field(
        100, description="Episodes per evaluation, spread over its tasks."
    )
    save_every: NonNegativeInt = Field(
        10, description="Steps between checkpoints; 0: only after the last step."
    )
    skip_baseline: bool = Field(False, description="Do not evaluate before the first step.")
    baseline_only: bool = Field(False, description="Stop after the evaluation before step 1.")
    ablate: Literal["none", "blank-screenshots"] = Field(
        "none", description="Control experiment: show the policy blank screenshots."
    )
    oracle_noise: Annotated[float, Field(ge=0, le=1)] = Field(
        0.3, description="Share of random actions of the policy `oracle`."
    )
    log_path: Path | None = Field(None, description="Folder of resume states and checkpoints.")
    behavior_if_log_dir_exists: Literal["ask", "resume", "overwrite", "skip", "raise"] = Field(
        "ask",
        description=(
            "When the training exists. ask: ask on a terminal, otherwise resume; overwrite: start"
            " again as a new generation, keeping the old one."
        ),
    )

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
        if self.box_type == "linux":
            problems.append("box_type: linux is not supported yet; use android")
        if self.min_group_size > self.group_size:
            problems.append(
                f"min_group_size: {self.min_group_size} is more than group_size"
                f" ({self.group_size}), so every group would fail"
            )
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


CHANGEABLE = frozenset(
    {
        "num_steps",
        "log_path",
        "max_concurrent_rollouts",
        "save_every",
        "eval_every",
        "behavior_if_log_dir_exists",
    }
)
"""Fields that may differ when a training is continued: its length and how it is observed."""


def read_config(given: dict[str, Any]) -> RunConfig:
    """Validate a configuration; UsageError lists every problem, one per line."""
    try:
        return RunConfig.model_validate(given)
    except ValidationError as error:
        problems = field_problems(error, RunConfig.model_fields)
    if len(problems) == 1:
        raise UsageError(problems[0])
    raise UsageError("\n  ".join(["the configuration is not valid:", *problems]))


def differences(recorded: dict[str, JsonValue], requested: dict[str, JsonValue]) -> list[str]:
    """Fields that keep `requested` from continuing `recorded`: `field: old -> new`."""
    names = sorted((recorded.keys() | requested.keys()) - CHANGEABLE)
    return [
        f"{name}: {recorded.get(name)!r} -> {requested.get(name)!r}"
        for name in names
        if recorded.get(name) != requested.get(name)
    ]


def recipe(config: RunConfig, log_path: Path) -> Recipe:
    """The settings that have columns of their own."""
    return Recipe(
        log_path=str(log_path),
        model_name=config.model_name,
        lora_rank=config.lora_rank,
        learning_rate=config.learning_rate,
        batch_size=config.batch_size,
        group_size=config.group_size,
        groups_per_batch=config.groups_per_batch,
        max_tokens=config.max_tokens,
        temperature=config.temperature,
        kl_penalty_coef=config.kl_penalty_coef,
        num_substeps=config.num_substeps,
        max_turns=config.max_turns,
        seed=config.seed,
        box_type=config.box_type,
        renderer_name=config.renderer_name,
    )
