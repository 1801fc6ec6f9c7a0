"""Reads RewardSQL's grpo_trainer.yaml, verl's trainer file, unchanged."""

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from producer.errors import UsageError
from producer.foreign_files.reading import Reading, flattened
from producer.foreign_files.verl_trainer_fields import (
    ACTOR,
    ALIASES,
    HONOURED,
    IGNORED,
    POLICY,
)
from producer.json_text import TOO_DEEP

SECTIONS: Final = frozenset({"actor_rollout_ref", "algorithm", "trainer"})
"""Sections that identify such a file; any of them suffices."""
TABLE: Final = HONOURED | IGNORED
KL_IN_LOSS: Final = f"{ACTOR}use_kl_loss"
KL_IN_REWARD: Final = "algorithm.use_kl_in_reward"
ADAPTER: Final = tuple(f"{POLICY}{name}" for name in ("lora_rank", "lora_alpha", "target_modules"))

WRAPPED: Final = re.compile(r"^\w+ (raised )?while resolving interpolation: ")
"""Matches the Python error's name at the start of OmegaConf's message."""

Flat = dict[str, Any]
"""Maps dotted names to values."""


def is_verl_trainer(fields: Mapping[str, Any]) -> bool:
    """Whether the fields are those of verl's trainer."""
    return any(isinstance(fields.get(name), dict) for name in SECTIONS)


def read_verl_trainer(read: Reading, path: Path, fields: dict[str, Any]) -> None:
    """Read the fields as those of `cua-train sql rl`.

    Settings of advantages with weights of their own (ppo's, prime's) are read whatever the file's
    algorithm is, because a flag may choose another. Raises UsageError for an interpolation that
    fails.
    """
    flat = flattened(resolved(fields, path), TABLE)
    flat = {name: value for name, value in flat.items() if value not in (None, {})}
    for name, own in ALIASES.items():
        if name in flat:
            flat.setdefault(own, flat.pop(name))
    for side in (f"{ACTOR}clip_ratio_low", f"{ACTOR}clip_ratio_high"):
        if f"{ACTOR}clip_ratio" in flat:
            flat.setdefault(side, flat[f"{ACTOR}clip_ratio"])
    flat.pop(f"{ACTOR}clip_ratio", None)
    read.read(flat, TABLE, _unmet(flat))
    _together(read, flat)


def _unmet(flat: Flat) -> dict[str, str]:
    """Map conditions of the table that do not hold to reasons."""
    loggers = flat.get("trainer.logger", [])
    has_wandb = "wandb" in (loggers if isinstance(loggers, list) else [loggers])
    is_wandb_there = find_spec("wandb") is not None
    conditions = {
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


def _together(read: Reading, flat: Flat) -> None:
    """Derive settings that depend on several fields."""
    given = read.given
    if flat.get("reward_model.enable") and "reward_model.model.path" not in flat:
        read.problems.append("reward_model.enable: true needs reward_model.model.path")
    if not _has_adapter(flat):
        read.absent |= {ADAPTER[0]} - flat.keys()
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
    """Whether the file sets an adapter with a rank other than 0."""
    return any(name in flat for name in ADAPTER) and flat.get(ADAPTER[0]) != 0


def resolved(fields: dict[str, Any], path: Path) -> dict[str, Any]:
    """The fields with `${a.b}` resolved by OmegaConf.

    Raises UsageError that names file and field.
    """
    # Imported here to keep --help quick.
    from omegaconf import OmegaConf
    from omegaconf.errors import InterpolationKeyError, OmegaConfBaseException

    # A configuration is recorded, so it must not contain environment variables.
    OmegaConf.clear_resolver("oc.env")
    try:
        whole = OmegaConf.to_container(OmegaConf.create(fields), resolve=True)
    except RecursionError:
        message = f"{path}: {TOO_DEEP}"
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
        message = f"{path}: {where}{problem}"
        raise UsageError(message) from None
    return {str(name): value for name, value in whole.items()} if isinstance(whole, dict) else {}
