"""Fields of the configuration: steps, evaluations, the training's name and folder, and reports."""

from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field

from producer.algorithms.names import AdvantageName, BaselineName, ControlName
from producer.algorithms.settings import (
    GaeSettings,
    KlSettings,
    LossSettings,
    OptimizerSettings,
    PrimeSettings,
    SettingsGroup,
)
from producer.numbers import BatchPart, NonNegativeFloat, NonNegativeInt, PositiveInt
from producer.training_name import check_training_name

SAMPLED_TEMPERATURE = 1.0
"""Temperature of the second evaluation."""
Name = Annotated[str, Field(min_length=1, max_length=128)]
IGNORED_FIELDS = frozenset({"stream_minibatch", "num_minibatches"})
"""Fields that tinker-cookbook has; they are accepted and change nothing."""


class BatchFields(SettingsGroup):
    """Batches, learning-rate schedule and advantages."""

    num_steps: NonNegativeInt = 100
    """Training steps in total."""
    groups_per_batch: BatchPart = 10
    """Groups per training step."""
    group_size: BatchPart = 4
    """Rollouts per group: attempts at the same task, which are compared with each other."""
    max_steps_off_policy: PositiveInt | None = None
    """Collect rollouts of later steps during an update. A rollout may be this many policy versions
    old when it is trained on. Cannot be changed when a training is continued."""
    stream_minibatch: bool = False
    """Ignored: an update begins when its rollouts are collected."""
    num_minibatches: PositiveInt | None = None
    """Ignored, as stream_minibatch."""
    learning_rate_schedule: Literal["constant", "cosine"] = "constant"
    """After the warm-up: constant, or half a cosine down to min_learning_rate_ratio at the last
    step, which fixes num_steps."""
    min_learning_rate_ratio: Annotated[float, Field(ge=0, le=1)] = 0.0
    """With the schedule cosine: final share of the learning rate."""
    learning_rate_warmup_steps: NonNegativeInt = 0
    """Training steps N of the linear warm-up: step n has n/N of the learning rate."""
    advantage: AdvantageName = "mean_centered"
    """How rewards become advantages; docs/algorithms.md has the formulas."""
    advantage_by_std: bool = False
    """With the advantage mean_centered: divide by the standard deviation of the group (+ 0.05)."""
    baseline: BaselineName = "none"
    """With the advantage reinforce: subtracted from the reward: nothing, a moving average of
    earlier steps' mean rewards, or the group's mean."""
    baseline_momentum: Annotated[float, Field(ge=0, lt=1)] = 0.9
    """With the baseline moving: share of the old average that a step keeps."""
    control: ControlName = "none"
    """Train a control: compute advantages from the step's rewards permuted over its rollouts
    (shuffled_rewards), as if every rollout were right (ignored_rewards), or negated (wrong_sign).
    Recorded rewards are the true ones. (`--control blank-screens` is `--ablate
    blank-screenshots`.)"""
    mask_truncated: bool = False
    """Do not train on rollouts with a completion that was cut at max_tokens. They still count in
    their group's advantages, and are recorded as dropped."""
    remove_constant_reward_groups: bool = True
    """Drop groups with all rewards equal from training; they are recorded as dropped. Off by
    default with the advantages gae, remax, reinforce and rejection, which do not compare within a
    group."""
    refill_rounds: NonNegativeInt = 0
    """Maximum extra sampling rounds of a step. Each replaces groups whose rewards are all equal by
    groups of unused tasks (DAPO's dynamic sampling)."""


class OptimisationFields(
    PrimeSettings,  # pydantic orders fields from the last base to the first
    GaeSettings,
    KlSettings,
    LossSettings,
    OptimizerSettings,
    BatchFields,
):
    """Batches and the policy's update."""


class EvaluationPass(NamedTuple):
    """One of the evaluations at a step."""

    temperature: float
    episodes: int


class EvaluationFields(SettingsGroup):
    """When and how the policy is evaluated."""

    eval_every: NonNegativeInt = 10
    """Steps between evaluations. 0: only after the last step."""
    eval_episodes: PositiveInt = 100
    """Episodes per evaluation, spread over its tasks."""
    eval_temperature: NonNegativeFloat = 0.0
    """Sampling temperature in evaluations; 0 is greedy."""
    eval_sampled_episodes: NonNegativeInt = 0
    """Episodes of a second evaluation, sampled at temperature 1. 0: none."""
    skip_baseline: bool = False
    """Do not evaluate before the first step."""
    baseline_only: bool = False
    """Stop after the evaluation before the first step."""

    @property
    def num_baselines(self) -> int:
        """Evaluations before the first step."""
        return 0 if self.skip_baseline else len(self.evaluation_passes)

    @property
    def evaluation_passes(self) -> tuple[EvaluationPass, ...]:
        """The evaluations at a step: the main one, then the sampled one if there is any."""
        main = EvaluationPass(self.eval_temperature, self.eval_episodes)
        if not self.eval_sampled_episodes or self.eval_temperature == SAMPLED_TEMPERATURE:
            return (main,)
        return (main, EvaluationPass(SAMPLED_TEMPERATURE, self.eval_sampled_episodes))


class CheckpointFields(SettingsGroup):
    """The training's name, its folder and what continues it."""

    training_name: Annotated[str, AfterValidator(check_training_name)] | None = None
    """Name of the training. The same name continues the same training."""
    log_path: Path | None = None
    """Folder of this training's resume states and checkpoints. Without training_name it continues
    the training in it."""
    log_dir: Path | None = None
    """Parent folder: a training's log_path is log_dir/NAME."""
    save_every: NonNegativeInt = 10
    """Steps between checkpoints. 0: only after the last step."""
    behavior_if_log_dir_exists: Literal["ask", "resume", "overwrite", "skip", "raise"] = "ask"
    """If the training exists: resume, overwrite (start a new generation, keeping the old one),
    skip, raise, or ask (resume without a terminal)."""


class ReportingFields(SettingsGroup):
    """What is written in addition to the log."""

    num_groups_to_log: NonNegativeInt = 1
    """Groups per step whose rollouts are also written as text to the run's folder."""
    wandb_project: Name | None = None
    """Mirror the training to this Weights & Biases project."""
    wandb_name: Name | None = None
    """Name of the run at Weights & Biases; needs wandb_project."""
