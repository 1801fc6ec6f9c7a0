"""The configuration of a run.

One frozen tree, checked once, recorded whole in the training's first event.

Defaults are the recipe's. Without a `model_name`, or with `demo`, the preset replaces some of them
(`DEMO_PRESET`). What is given explicitly wins. Secrets are no part of it.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from producer.errors import UsageError
from producer.tasks.preset import PRESET_TASK_IDS
from schemas.training import Recipe

DEMO_POLICY = "demo"
"""`model_name` of the small policy that is built and warmed on this machine."""
ORACLE_POLICY = "oracle"
"""`model_name` of the scripted policy: solves tasks with deliberate noise, learns nothing, needs no
torch."""

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
"""What the preset changes: a policy of 1 M parameters wants other settings than one of 30 B."""

PositiveInt = Annotated[int, Field(ge=1)]
NonNegativeInt = Annotated[int, Field(ge=0)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class RunConfig(BaseModel):
    """Everything that `cua-train run` can be told; the command line has one flag per field."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    training_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")] | None = (
        Field(
            None,
            description=(
                "The training's identity: the same name continues the same training. None: a new"
                " name is made."
            ),
        )
    )
    model_name: str = Field(
        "Qwen/Qwen3-VL-30B-A3B-Instruct",
        description="Policy: a folder or a hub id; without it the preset demo builds a small one.",
    )
    lora_rank: PositiveInt = Field(32, description="Rank of the LoRA adapters.")
    renderer_name: Literal["auto", "compact", "qwen"] = Field(
        "auto", description="How prompts and actions are written."
    )
    load_checkpoint_path: Path | None = Field(
        None, description="Start from this adapter (PEFT layout) instead of a fresh one."
    )
    box_type: Literal["android", "linux"] = Field("android", description="Kind of device.")
    max_turns: PositiveInt = Field(
        20, description="Turns per episode; a task's own max_steps bounds it too."
    )
    tasks: JsonValue = Field(
        None, description="Training tasks: a source or a list of sources, as JSON."
    )
    eval_tasks: JsonValue = Field(
        None, description="Evaluation tasks, as JSON. None: the training tasks on unseen seeds."
    )
    seed: NonNegativeInt = Field(0, description="Of everything random.")
    group_size: PositiveInt = Field(
        4, description="Rollouts of one task that are compared with each other."
    )
    groups_per_batch: PositiveInt = Field(10, description="Groups per step.")
    num_steps: NonNegativeInt = Field(100, description="Steps in all.")
    learning_rate: NonNegativeFloat = Field(1e-5, description="Adam's step size.")
    max_tokens: PositiveInt = Field(2048, description="Upper bound of one completion.")
    temperature: NonNegativeFloat = Field(1.0, description="Of sampling during training.")
    eval_temperature: NonNegativeFloat = Field(
        0.0, description="Of sampling during evaluation; 0 is greedy."
    )
    kl_penalty_coef: NonNegativeFloat = Field(
        0.0, description="Weight of the KL penalty against the policy without adapter."
    )
    num_substeps: PositiveInt = Field(1, description="Optimiser steps per batch.")
    loss_fn: Literal["importance_sampling", "ppo", "cispo"] = Field(
        "importance_sampling", description="Loss of the update."
    )
    advantage_by_std: bool = Field(
        False, description="Divide advantages by the group's standard deviation (+ 0.05)."
    )
    turn_cost: NonNegativeFloat = Field(0.0, description="Taken off the reward for each turn.")
    parse_error_cost: NonNegativeFloat = Field(
        0.0, description="Taken off the reward for each action that cannot be understood."
    )
    max_concurrent_rollouts: PositiveInt = Field(
        8, description="Episodes that run at once, over all groups."
    )
    max_task_time_seconds: Annotated[float, Field(gt=0)] = Field(
        1800.0, description="Time of one episode; an outcome when over."
    )
    max_turn_time_seconds: Annotated[float, Field(gt=0)] = Field(
        300.0, description="Time for one answer of the device; a failure when over."
    )
    failure_policy: Literal["retry", "fail_fast", "min_viable_group"] = Field(
        "retry",
        description=(
            "When an attempt fails: try again with a fresh device, stop the run, or go on with the"
            " others."
        ),
    )
    max_attempts: PositiveInt = Field(
        3, description="Attempts per place in a group under the policy retry."
    )
    min_group_size: PositiveInt = Field(2, description="A group with fewer scored rollouts fails.")
    eval_every: NonNegativeInt = Field(
        10, description="Steps between evaluations; 0: only after the last."
    )
    eval_episodes: PositiveInt = Field(
        100, description="Episodes of each evaluation, spread over its tasks."
    )
    save_every: NonNegativeInt = Field(
        10, description="Steps between checkpoints that are kept; 0: only after the last."
    )
    skip_baseline: bool = Field(False, description="Do not evaluate before the first step.")
    baseline_only: bool = Field(False, description="Stop after the baseline.")
    ablate: Literal["none", "blank-screenshots"] = Field(
        "none", description="Show the policy blank screens (a control experiment)."
    )
    oracle_noise: Annotated[float, Field(ge=0, le=1)] = Field(
        0.3, description="Share of random actions of the scripted policy `oracle`."
    )
    log_path: Path | None = Field(
        None, description="Folder of the run's state and checkpoints. None: below CUA_HOME/runs."
    )
    behavior_if_log_dir_exists: Literal["ask", "resume", "overwrite", "skip", "raise"] = Field(
        "ask",
        description=(
            "When the training exists: ask asks on a terminal and resumes elsewhere; overwrite"
            " begins a new generation."
        ),
    )

    _explicit: frozenset[str] = PrivateAttr(default=frozenset())

    @model_validator(mode="wrap")
    @classmethod
    def _apply_preset(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:  # noqa: ANN401  # whatever was passed
        if not isinstance(given, dict):
            return handler(given)
        said = {name: value for name, value in given.items() if value is not None}
        config = handler(
            {**DEMO_PRESET, **said} if said.get("model_name", DEMO_POLICY) == DEMO_POLICY else said
        )
        config._explicit = frozenset(said)
        return config

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.tasks is None and self.model_name == ORACLE_POLICY:
            object.__setattr__(self, "tasks", DEMO_PRESET["tasks"])
        if self.tasks is None:
            message = (
                'tasks: expected at least one source, found none; for example {"source_type":'
                ' "demo_training"}'
            )
            raise ValueError(message)
        if self.box_type == "linux":
            message = "box_type: expected android (no linux device is built in yet), found linux"
            raise ValueError(message)
        if self.min_group_size > self.group_size:
            message = (
                f"min_group_size: expected at most group_size ({self.group_size}), found"
                f" {self.min_group_size}"
            )
            raise ValueError(message)
        return self

    @property
    def explicit(self) -> frozenset[str]:
        """Fields that were given, as opposed to defaults and the preset's."""
        return self._explicit

    def named(self, training_name: str) -> "RunConfig":
        """The same with this name."""
        named = self.model_copy(update={"training_name": training_name})
        named._explicit = self._explicit
        return named

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
"""Fields that may differ when a training is continued: they change how long or how observed it is,
not what it is."""


def read_config(given: dict[str, Any]) -> RunConfig:
    """Check a configuration; UsageError names the field, what was expected and what was found."""
    try:
        return RunConfig.model_validate(given)
    except ValidationError as error:
        problems = []
        for item in error.errors(include_url=False):
            field = ".".join(str(part) for part in item["loc"])
            if item["type"] == "extra_forbidden":
                problems.append(f"{field}: there is no such field; see cua-train run --help")
            elif item["type"] == "value_error":
                problems.append(str(item["ctx"]["error"]))
            else:
                problems.append(f"{field}: {item['msg']}, found {item['input']!r}")
        raise UsageError("configuration: " + "; ".join(problems)) from None


def differences(recorded: dict[str, JsonValue], asked: dict[str, JsonValue]) -> list[str]:
    """Fields that keep `asked` from continuing what was `recorded`, as `field.

    Recorded -> asked`.
    """
    names = sorted((recorded.keys() | asked.keys()) - CHANGEABLE)
    return [
        f"{name}: {recorded.get(name)!r} -> {asked.get(name)!r}"
        for name in names
        if recorded.get(name) != asked.get(name)
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
