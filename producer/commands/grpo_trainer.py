"""Reads RewardSQL's grpo_trainer.yaml, verl's trainer file, as it is.

Known fields become settings of `cua-train sql rl`. One without effect here is named with the
reason, one that is not known is named too; neither is an error. A value that cannot be honoured is,
with file and field.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from producer.commands.grpo_trainer_fields import (
    ACTOR,
    AGGREGATIONS,
    ALIASES,
    ESTIMATORS,
    KL_ESTIMATORS,
    LOSSES,
    MANAGERS,
    OF_PRIME,
    OF_VALUES,
    ONLY,
    POLICY,
    SAME,
    WEIGHT_DECAY,
    WITHOUT_EFFECT,
)
from producer.commands.interpolations import flattened, resolved
from producer.errors import UsageError

FLOAT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")
SECTIONS = frozenset({"actor_rollout_ref", "algorithm", "trainer"})
"""Any of them tells such a file from one of our own fields."""


@dataclass(slots=True)
class TrainerFile:
    """What a file says."""

    path: Path
    given: dict[str, Any] = field(default_factory=dict)
    """Fields of the configuration, and `epochs`, `output_dir`, `train_files`, `val_files`."""
    names: dict[str, str] = field(default_factory=dict)
    """Field -> the name that the file has for it."""
    algorithm: str | None = None
    core_function: str | None = None
    core_algos: str | None = None
    warmup_ratio: float = 0.0
    mini_batch: int | None = None
    """Prompts of an optimiser step."""
    without_effect: dict[str, str] = field(default_factory=dict)
    """Name of a field that is not honoured -> why."""
    unknown: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def take(self, name: str, ours: str, value: object) -> None:
        """Keep a value; two that differ are a problem."""
        if ours in self.given and self.given[ours] != value:
            self.problems.append(f"{name}: contradicts {self.names[ours]}; give one of them")
        self.given[ours] = value
        self.names[ours] = name

    def remarks(self) -> list[str]:
        """What is not honoured, one line for each reason."""
        reasons = dict.fromkeys(self.without_effect.values())
        lines = []
        for reason in reasons:
            names = sorted(name for name, why in self.without_effect.items() if why == reason)
            lines.append(f"without effect here: {', '.join(names)} ({reason})")
        if self.unknown:
            lines.append(f"these fields are not known and are ignored: {', '.join(self.unknown)}")
        return lines


def is_grpo_trainer(fields: Mapping[str, Any]) -> bool:
    """Whether a file's fields are those of verl's trainer."""
    return any(isinstance(fields.get(name), dict) for name in SECTIONS)


def read_grpo_trainer(
    path: Path, fields: dict[str, Any], *, omit: tuple[str, ...] = (), algorithm: str | None = None
) -> TrainerFile:
    """The settings. `algorithm` wins over the file's. UsageError lists every problem."""
    flat = flattened(resolved(fields, path.name))
    for name in omit:
        known = [item for item in flat if item == name or item.startswith(f"{name}.")]
        if not known:
            message = f"--omit: {path.name} has no field {name!r}"
            raise UsageError(message)
        for item in known:
            del flat[item]
    read = TrainerFile(path)
    flat = {
        name: _number(value) for name, value in flat.items() if value is not None and value != {}
    }
    for name, own in ALIASES.items():
        if name in flat:
            flat.setdefault(own, flat.pop(name))
            flat.pop(name, None)
    _algorithm(read, flat, algorithm)
    _reward_model(read, flat)
    _kl(read, flat)
    _updates(read, flat)
    _trainer(read, flat)
    _trained(read, flat)
    for name, value in flat.items():
        _field(read, name, value)
    if read.problems:
        lines = [f"--config: {path} cannot be honoured (--omit FIELD leaves one out):"]
        raise UsageError("\n  ".join([*lines, *read.problems]))
    return read


def _field(read: TrainerFile, name: str, value: object) -> None:
    """A field that stands alone."""
    if name in SAME:
        read.take(name, SAME[name], value)
    elif name in OF_VALUES:
        if read.algorithm == "ppo":
            read.take(name, OF_VALUES[name], value)
        else:
            read.without_effect[name] = "only ppo (gae) has values"
    elif name in OF_PRIME:
        if read.algorithm == "prime":
            read.take(name, OF_PRIME[name], value)
        else:
            read.without_effect[name] = "only prime trains a reward model beside the policy"
    elif name in ONLY:
        only = ONLY[name]
        if value not in only.values:
            read.problems.append(f"{name}: {value!r} cannot be honoured: {only.instead}")
    elif (reason := _reason(name)) is not None:
        read.without_effect[name] = reason
    else:
        read.unknown.append(name)


def _reason(name: str) -> str | None:
    if name in WITHOUT_EFFECT:
        return WITHOUT_EFFECT[name]
    parts = name.split(".")
    sections = (".".join(parts[:end]) + "." for end in range(len(parts) - 1, 0, -1))
    return next(
        (WITHOUT_EFFECT[section] for section in sections if section in WITHOUT_EFFECT), None
    )


def _algorithm(read: TrainerFile, flat: dict[str, Any], algorithm: str | None) -> None:
    name = "algorithm.adv_estimator"
    estimator = flat.pop(name, None)
    if algorithm is not None:
        read.algorithm = algorithm
    elif estimator in ESTIMATORS:
        read.algorithm = ESTIMATORS[estimator]
    elif estimator is not None:
        read.problems.append(f"{name}: {estimator!r} is not one of {', '.join(ESTIMATORS)}")
    read.core_function = flat.pop("algorithm.core_function", None)
    read.core_algos = flat.pop("algorithm.core_algos", None)
    by_std = flat.pop("algorithm.norm_adv_by_std_in_grpo", True)
    if not by_std and read.algorithm == "grpo" and read.core_function is None:
        read.core_function = "compute_dr_grpo_outcome_advantage"


def _reward_model(read: TrainerFile, flat: dict[str, Any]) -> None:
    section = "reward_model."
    is_used = bool(flat.pop(f"{section}enable", False))
    path = flat.pop(f"{section}model.path", None)
    if is_used and path is None:
        read.problems.append(f"{section}enable: true needs reward_model.model.path")
    elif is_used:
        read.take(f"{section}model.path", "process_reward_model", Path(str(path)))
        sees = flat.pop(f"{section}enable_EXreward", False)
        read.take(f"{section}enable_EXreward", "reward_model_sees_results", bool(sees))
    else:
        off = f"{section}enable is not true"
        if path is not None:
            read.without_effect[f"{section}model.path"] = off
        for name in ("rm_coef", "enable_EXreward"):
            if flat.pop(f"{section}{name}", None) is not None:
                read.without_effect[f"{section}{name}"] = off
    manager = flat.pop(f"{section}reward_manager", None)
    from producer.process_rewards.registry import registry

    if manager in registry.names("reward manager"):
        read.take(f"{section}reward_manager", "reward_manager", manager)
    elif manager is not None and manager not in MANAGERS:
        read.problems.append(
            f"{section}reward_manager: {manager!r} is not registered; register it in a file for"
            f" --reward-module, or use one of {', '.join(sorted(MANAGERS))}"
        )


def _kl(read: TrainerFile, flat: dict[str, Any]) -> None:
    """In the loss with use_kl_loss, in the rewards with use_kl_in_reward; else there is none."""
    in_loss = bool(flat.pop(f"{ACTOR}use_kl_loss", False))
    in_reward = bool(flat.pop("algorithm.use_kl_in_reward", False))
    places = (
        (in_loss, f"{ACTOR}kl_loss_coef", f"{ACTOR}kl_loss_type", "loss", f"{ACTOR}use_kl_loss"),
        (
            *(in_reward, "algorithm.kl_ctrl.kl_coef", "algorithm.kl_penalty", "advantage"),
            "algorithm.use_kl_in_reward",
        ),
    )
    if in_loss and in_reward:
        read.problems.append(
            "algorithm.use_kl_in_reward: the KL penalty is in one place; leave it out, or"
            f" {ACTOR}use_kl_loss"
        )
        return
    for is_used, weight_name, kind_name, place, switch in places:
        weight, kind = flat.pop(weight_name, None), flat.pop(kind_name, None)
        if not is_used:
            for name, value in ((weight_name, weight), (kind_name, kind)):
                if value is not None:
                    read.without_effect[name] = f"{switch} is not true"
            continue
        weight = 0.001 if weight is None else weight
        kind = ("low_var_kl" if place == "loss" else "kl") if kind is None else kind
        if kind not in KL_ESTIMATORS:
            known = ", ".join(KL_ESTIMATORS)
            read.problems.append(f"{kind_name}: {kind!r} cannot be honoured; use one of {known}")
        elif place == "loss" and kind == "kl":
            read.problems.append(
                f"{kind_name}: 'kl' has an expected gradient of 0 in the loss; use low_var_kl"
            )
        elif weight:
            read.take(weight_name, "kl_penalty_coef", weight)
            read.take(kind_name, "kl_estimator", KL_ESTIMATORS[kind])
            read.take(switch, "kl_in", place)


def _updates(read: TrainerFile, flat: dict[str, Any]) -> None:
    read.mini_batch = flat.pop(f"{ACTOR}ppo_mini_batch_size", None)
    if read.mini_batch is not None and not _is_count(read.mini_batch):
        read.problems.append(f"{ACTOR}ppo_mini_batch_size: {read.mini_batch!r} is no whole number")
    loss = flat.pop(f"{ACTOR}policy_loss.loss_mode", "vanilla")
    aggregation = flat.pop(f"{ACTOR}loss_agg_mode", "token-mean")
    for name, value, known, ours in (
        (f"{ACTOR}policy_loss.loss_mode", loss, LOSSES, "loss_fn"),
        (f"{ACTOR}loss_agg_mode", aggregation, AGGREGATIONS, "loss_aggregation"),
    ):
        if value in known:
            read.take(name, ours, known[value])
        else:
            known_names = ", ".join(known)
            read.problems.append(f"{name}: {value!r} cannot be honoured; use one of {known_names}")
    clip = flat.pop(f"{ACTOR}clip_ratio", None)
    for side in ("clip_ratio_low", "clip_ratio_high"):
        if clip is not None and flat.get(f"{ACTOR}{side}") is None:
            read.take(f"{ACTOR}clip_ratio", side, clip)
    steps = flat.pop(f"{ACTOR}optim.lr_warmup_steps", -1)
    ratio = flat.pop(f"{ACTOR}optim.lr_warmup_steps_ratio", 0)
    if _is_count(steps):
        read.take(f"{ACTOR}optim.lr_warmup_steps", "learning_rate_warmup_steps", steps)
    elif not isinstance(ratio, int | float) or not 0 <= ratio <= 1:
        read.problems.append(f"{ACTOR}optim.lr_warmup_steps_ratio: {ratio!r} is no share")
    else:
        read.warmup_ratio = ratio
    _schedule(read, flat)
    saves_memory = flat.pop(f"{POLICY}enable_gradient_checkpointing", None)
    if saves_memory is not None:
        name = f"{POLICY}enable_gradient_checkpointing"
        read.take(name, "gradient_checkpointing", "on" if saves_memory else "off")


def _schedule(read: TrainerFile, flat: dict[str, Any]) -> None:
    """The rate after the warm-up, and verl's weight decay where none is given."""
    flat.setdefault(f"{ACTOR}optim.weight_decay", WEIGHT_DECAY)
    name = f"{ACTOR}optim.warmup_style"
    style = flat.pop(name, flat.pop(f"{ACTOR}optim.lr_scheduler_type", "constant"))
    lowest = flat.pop(f"{ACTOR}optim.min_lr_ratio", 0.0)
    if style not in {"constant", "cosine"}:
        read.problems.append(f"{name}: {style!r} is not one of constant, cosine")
        return
    read.take(name, "learning_rate_schedule", style)
    if style == "cosine":
        read.take(f"{ACTOR}optim.min_lr_ratio", "min_learning_rate_ratio", lowest)
    elif lowest:
        reason = "only a cosine schedule has a lowest rate"
        read.without_effect[f"{ACTOR}optim.min_lr_ratio"] = reason


def _trainer(read: TrainerFile, flat: dict[str, Any]) -> None:
    for name, ours in (("save_freq", "save_every"), ("test_freq", "eval_every")):
        value = flat.pop(f"trainer.{name}", None)
        if value is not None:
            read.take(f"trainer.{name}", ours, 0 if value == -1 else value)
    if (first := flat.pop("trainer.val_before_train", None)) is not None:
        read.take("trainer.val_before_train", "skip_baseline", not first)
    mode = flat.pop("trainer.resume_mode", "auto")
    if mode == "disable":
        read.take("trainer.resume_mode", "behavior_if_log_dir_exists", "raise")
    elif mode != "auto":
        read.problems.append(
            f"trainer.resume_mode: {mode!r} cannot be honoured: the training's name continues it;"
            " use auto or disable"
        )
    for name in ("train_files", "val_files"):
        if (files := flat.pop(f"data.{name}", None)) is not None:
            read.take(f"data.{name}", name, files)
    _project(read, flat)


def _project(read: TrainerFile, flat: dict[str, Any]) -> None:
    project = flat.pop("trainer.project_name", None)
    loggers = flat.get("trainer.logger", [])
    if "wandb" in (loggers if isinstance(loggers, list) else [loggers]) and project is not None:
        if find_spec("wandb") is not None:
            read.take("trainer.project_name", "wandb_project", project)
        else:
            read.without_effect["trainer.project_name"] = "wandb is not installed"
    elif project is not None:
        read.without_effect["trainer.project_name"] = "trainer.logger has no wandb"


def _trained(read: TrainerFile, flat: dict[str, Any]) -> None:
    """All weights, unless the file has settings of an adapter and no rank of 0."""
    settings = [f"{POLICY}{name}" for name in ("lora_rank", "lora_alpha", "target_modules")]
    rank, given = flat.get(settings[0]), [name for name in settings if name in flat]
    if flat.get(settings[2]) == "all-linear":
        flat[settings[2]] = "all"
    if given and rank != 0:
        return
    read.take(settings[0], "train_type", "full")
    for name in given:
        del flat[name]
        if name != settings[0]:
            read.without_effect[name] = "a lora_rank of 0 is no adapter"


def _number(value: Any) -> Any:  # whatever a file holds
    """1e-6 is a text in YAML 1.1, and a number in the original's reader."""
    if isinstance(value, str) and FLOAT.fullmatch(value):
        return float(value)
    return value


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
