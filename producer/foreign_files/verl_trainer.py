"""Reads RewardSQL's grpo_trainer.yaml, verl's trainer file, as it is.

Known fields become settings of `cua-train sql rl`. Unknown fields and fields without effect are
named. A value that cannot be honoured is an error that names file and field.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from producer.errors import UsageError
from producer.foreign_files.reading import Reading, flattened
from producer.foreign_files.verl_trainer_fields import (
    ACTOR,
    ALIASES,
    ESTIMATORS,
    HONOURED,
    IGNORED,
    POLICY,
)

SECTIONS: Final = frozenset({"actor_rollout_ref", "algorithm", "trainer"})
"""Any of them identifies such a file."""
TABLE: Final = HONOURED | IGNORED
KL_IN_LOSS: Final = f"{ACTOR}use_kl_loss"
KL_IN_REWARD: Final = "algorithm.use_kl_in_reward"
ADAPTER: Final = tuple(f"{POLICY}{name}" for name in ("lora_rank", "lora_alpha", "target_modules"))

WRAPPED: Final = re.compile(r"^\w+ (raised )?while resolving interpolation: ")
"""The name of a Python error in OmegaConf's message."""

Flat = dict[str, Any]
"""Dotted name -> value."""


OF_THE_COMMAND: Final = (
    *("algorithm", "core_function", "core_algos", "warmup_ratio", "mini_batch", "epochs"),
    *("output_dir", "train_files", "val_files"),
)
"""Of `TrainerFile.given`, what the command makes fields of the configuration from."""


@dataclass(slots=True)
class TrainerFile(Reading):
    """What a file sets: fields of the configuration, and those of `OF_THE_COMMAND`."""

    path: Path = Path()


def is_grpo_trainer(fields: Mapping[str, Any]) -> bool:
    """Whether the fields are those of verl's trainer."""
    return any(isinstance(fields.get(name), dict) for name in SECTIONS)


def read_grpo_trainer(
    path: Path,
    fields: dict[str, Any],
    *,
    algorithm: str | None = None,
    core_function: str | None = None,
) -> TrainerFile:
    """The settings; `algorithm` overrides the file's. UsageError lists every problem.

    `core_function`: that of the command line, whose advantages take the place of the algorithm's.
    """
    flat = flattened(resolved(fields, path.name), TABLE)
    flat = {name: value for name, value in flat.items() if value not in (None, {})}
    for name, own in ALIASES.items():
        if name in flat:
            flat.setdefault(own, flat.pop(name))
    for side in (f"{ACTOR}clip_ratio_low", f"{ACTOR}clip_ratio_high"):
        if f"{ACTOR}clip_ratio" in flat:
            flat.setdefault(side, flat[f"{ACTOR}clip_ratio"])
    flat.pop(f"{ACTOR}clip_ratio", None)
    if algorithm is not None:
        flat["algorithm.adv_estimator"] = algorithm
    read = TrainerFile(path=path)
    read.read(flat, TABLE, _unmet(flat, core_function))
    _together(read, flat)
    if read.problems:
        lines = [f"--config: {path} cannot be honoured (--omit FIELD leaves one out):"]
        raise UsageError("\n  ".join([*lines, *read.problems]))
    return read


def _unmet(flat: Flat, core_function: str | None) -> dict[str, str]:
    """Condition of the table that does not hold -> the reason."""
    algorithm = ESTIMATORS.get(str(flat.get("algorithm.adv_estimator")))
    own = f"advantages are those of --core-function {core_function}" if core_function else ""
    loggers = flat.get("trainer.logger", [])
    has_wandb = "wandb" in (loggers if isinstance(loggers, list) else [loggers])
    is_wandb_there = find_spec("wandb") is not None
    conditions = {
        "ppo": (algorithm == "ppo" and not core_function, own or "only ppo (gae) has values"),
        "prime": (
            algorithm == "prime" and not core_function,
            own or "only prime trains a reward model",
        ),
        "cosine": (
            flat.get(f"{ACTOR}optim.warmup_style") == "cosine",
            "only a cosine schedule has a lowest rate",
        ),
        "adapter": (_has_adapter(flat), "a lora_rank of 0 is no adapter"),
        "reward model": (flat.get("reward_model.enable"), "reward_model.enable is not true"),
        "kl in loss": (flat.get(KL_IN_LOSS), f"{KL_IN_LOSS} is not true"),
        "kl in reward": (
            flat.get(KL_IN_REWARD) and not flat.get(KL_IN_LOSS),
            f"{KL_IN_REWARD} is not true",
        ),
        "wandb": (
            has_wandb and is_wandb_there,
            "wandb is not installed" if has_wandb else "trainer.logger has no wandb",
        ),
    }
    return {name: why for name, (holds, why) in conditions.items() if not holds}


def _together(read: TrainerFile, flat: Flat) -> None:
    """Settings that depend on several fields."""
    given = read.given
    if given.get("algorithm") == "grpo" and not flat.get("algorithm.norm_adv_by_std_in_grpo", True):
        given.setdefault("core_function", "compute_dr_grpo_outcome_advantage")
    if flat.get("reward_model.enable") and "reward_model.model.path" not in flat:
        read.problems.append("reward_model.enable: true needs reward_model.model.path")
    if not _has_adapter(flat):
        read.take(ADAPTER[0], "train_type", "full")
    if flat.get(KL_IN_LOSS) and flat.get(KL_IN_REWARD):
        read.problems.append(
            f"{KL_IN_REWARD}: the KL penalty is in one place; leave it out, or {KL_IN_LOSS}"
        )
    elif given.get("kl_penalty_coef"):
        in_loss = bool(flat.get(KL_IN_LOSS))
        read.take(
            KL_IN_LOSS if in_loss else KL_IN_REWARD, "kl_in", "loss" if in_loss else "advantage"
        )
    else:
        given.pop("kl_penalty_coef", None)
        given.pop("kl_estimator", None)


def _has_adapter(flat: Flat) -> bool:
    """Whether the file sets an adapter, with a rank other than 0."""
    return any(name in flat for name in ADAPTER) and flat.get(ADAPTER[0]) != 0


def resolved(fields: dict[str, Any], file: str) -> dict[str, Any]:
    """The fields with `${a.b}` replaced by OmegaConf. UsageError names file and field."""
    # Imported here to keep --help quick.
    from omegaconf import OmegaConf
    from omegaconf.errors import InterpolationKeyError, OmegaConfBaseException

    # A configuration is recorded: it must not contain variables of the environment.
    OmegaConf.clear_resolver("oc.env")
    try:
        whole = OmegaConf.to_container(OmegaConf.create(fields), resolve=True)
    except RecursionError:
        message = f"--config: {file} is nested too deeply"
        raise UsageError(message) from None
    except OmegaConfBaseException as error:
        problem = str(error.msg or error).splitlines()[0]
        if isinstance(error, InterpolationKeyError):
            target = problem.removeprefix("Interpolation key ").removesuffix(" not found")
            problem = f"there is no field {target} to take the value of"
        elif problem.startswith(("Recursive interpolation", "Interpolation to parent node")):
            problem = "refers to itself"
        problem = WRAPPED.sub("", problem)
        where = f"{error.full_key}: " if error.full_key else ""
        message = f"--config: {file}: {where}{problem}"
        raise UsageError(message) from None
    return {str(name): value for name, value in whole.items()} if isinstance(whole, dict) else {}
