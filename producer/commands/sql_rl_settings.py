"""Settings of a text-to-SQL training from flags and verl's file; flags win."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from producer.agents.text_to_sql.data.verl_prompts import ENDING
from producer.commands.given_fields import with_absolute_paths
from producer.config import RunConfig
from producer.errors import UsageError
from producer.foreign_files.verl_trainer import OF_THE_COMMAND, TrainerFile

logger = logging.getLogger(__name__)

FOUR: Final = ("grpo", "ppo", "rloo", "prime")
"""Algorithms with their own advantages."""
DAPO: Final[dict[str, Any]] = {
    "clip_ratio_low": 0.2,
    "clip_ratio_high": 0.28,
    "dual_clip": 10.0,
    "remove_constant_reward_groups": True,
}
"""verl's DAPO, with the advantages of grpo; the file and flags win."""
OWN_REWARDS: Final = ("reward_module", "reward_function", "reward_manager")
"""Without any of them, rewards are executed here and the file's port is ignored."""
OWN_ADVANTAGES: Final = ("ppo", "prime", "remax")
"""RewardSQL calls a file's core_function for grpo alone."""
DEFAULTS: Final[dict[str, Any]] = {
    "environment": "text_to_sql",
    "max_turns": 1,
    "group_size": 8,
    "max_tokens": 512,
    "loss_fn": "ppo",
    "loss_aggregation": "token_mean",
    "remove_constant_reward_groups": False,
}
"""verl's defaults; the file and flags win."""


def settings_of(
    flags: Mapping[str, Any],
    file: TrainerFile | None,
    *,
    algorithm: str | None,
    data_path: Path | None,
    epochs: int | None,
    skip_invalid: bool = False,
) -> dict[str, Any]:
    """Fields of the configuration of a new training. UsageError, NotFoundError.

    `flags`: only the given fields. `skip_invalid`: of the task sources.
    """
    from producer.fine_tuning.named_policy import policy_fields

    read = dict(file.given) if file is not None else {}
    of_file = {name: read.pop(name, None) for name in OF_THE_COMMAND}
    folder = _folder(data_path, of_file["train_files"], file)
    chosen = algorithm or of_file["algorithm"] or "grpo"
    given = {**DEFAULTS, **read, **flags}
    if chosen == "dapo":
        chosen, given = "grpo", {**DEFAULTS, **DAPO, **read, **flags}
    if not any(given.get(name) for name in OWN_REWARDS) and "reward_port" not in flags:
        given.pop("reward_port", None)
    # If it names an adapter, the adapter's base is the policy.
    if "model_name" not in given:
        message = "--model-name: name the policy to train: a folder or a Hugging Face id"
        raise UsageError(message)
    given |= policy_fields(given["model_name"])
    if "train_type" not in flags and (
        {"lora_rank"} & flags.keys() or "load_checkpoint_path" in given
    ):
        given.pop("train_type", None)
    given |= _questions(folder, of_file["val_files"], given, skip_invalid=skip_invalid)
    given |= _advantages(chosen, of_file, flags, given)
    given |= _length(given, flags, of_file, epochs)
    return with_absolute_paths({k: v for k, v in given.items() if v is not None})


def continued(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of the configuration of a training that continues; the log has the others."""
    from producer.fine_tuning.named_policy import policy_fields

    return with_absolute_paths({**flags, **policy_fields(flags.get("model_name"))})


def _folder(data_path: Path | None, files: object, file: TrainerFile | None) -> Path:
    """The data set's folder."""
    if data_path is not None:
        return data_path
    if file is None or files is None:
        message = (
            "--data-path: name the data set's folder, in BIRD's or Spider's layout, or verl's"
            " Parquet file of prompts"
        )
        raise UsageError(message)
    named = files[0] if isinstance(files, list) and len(files) == 1 else files
    path = Path(str(named)).expanduser()
    is_prompts = path.suffix == ENDING and path.is_file()
    if isinstance(named, str) and (path.is_dir() or is_prompts):
        return path
    if isinstance(named, str) and path.suffix == ".json" and path.is_file():
        return path.parent
    message = (
        f"--config: {file.path}: data.train_files: there is no {named}, a folder of questions"
        " and databases or a Parquet file of prompts; name it with --data-path"
    )
    raise UsageError(message)


def _questions(
    folder: Path, val_files: object, given: dict[str, Any], *, skip_invalid: bool
) -> dict[str, Any]:
    """Training questions and evaluation questions: by default all of dev."""
    from producer.fine_tuning.named_policy import held_out_split, num_questions, questions_of

    tasks = questions_of(folder, "train", skip_invalid=skip_invalid)
    num_questions(tasks)
    other = Path(str(val_files)).expanduser() if isinstance(val_files, str) else None
    asked = folder if folder.is_dir() else folder.parent
    if other is not None and (other.is_dir() or (other.suffix == ENDING and other.is_file())):
        asked = other
    split = held_out_split(asked)
    held_out = tasks if split is None else questions_of(asked, split, skip_invalid=skip_invalid)
    found: dict[str, Any] = {"tasks": tasks, "eval_tasks": given.get("eval_tasks", held_out)}
    if "eval_episodes" not in given:
        found["eval_episodes"] = num_questions(found["eval_tasks"])
    return found


def _advantages(
    algorithm: str, of_file: dict[str, Any], flags: Mapping[str, Any], given: dict[str, Any]
) -> dict[str, Any]:
    """The core function or the advantage, by flags, then the file, then the algorithm."""
    from producer.algorithms.core_functions import UnknownFunctionError, choose_core_function
    from producer.process_rewards.registry import public_names
    from producer.process_rewards.user_module import is_stand_in, load_user_module

    configured = of_file["core_function"]
    if configured is not None and algorithm in OWN_ADVANTAGES:
        logger.warning(
            "algorithm.core_function: without effect: %s has advantages of its own", algorithm
        )
        configured = None
    algos = flags.get("core_algos") or of_file["core_algos"]
    named = flags.get("core_function") or configured
    if algorithm == "remax" and named is None:
        # Its baseline is a greedy rollout, which the trainer samples: no function of rewards alone.
        return {"advantage": "remax"}
    if algorithm not in FOUR and named is None:
        return {"core_function": f"compute_{algorithm}_outcome_advantage"}
    try:
        loaded = None if algos is None else load_user_module(algos)
        if loaded is not None and is_stand_in(loaded):
            logger.info("core_algos: there is no %s here; ours of the same names are used", algos)
            algos = loaded = None
        module = None if loaded is None else public_names(loaded)
    except ValueError as error:
        message = f"core_algos: {error}"
        raise UsageError(message) from error
    try:
        chosen = choose_core_function(
            algorithm if algorithm in FOUR else "grpo",  # type: ignore[arg-type]  # one of FOUR
            command_line=flags.get("core_function"),
            configured=configured,
            module=module,
            has_process_rewards="process_reward_model" in given or "reward_manager" in given,
        )
    except UnknownFunctionError as error:
        message = f"core_function: {error}"
        raise UsageError(message) from error
    if chosen.function is None:
        if algos is not None:
            message = (
                f"core_algos: {algos} has no core function for {algorithm}, which uses"
                f" {chosen.name}"
            )
            raise UsageError(message)
        return {"advantage": chosen.name}
    logger.info("core function: %s (by the %s)", chosen.name, chosen.origin)
    is_own = module is not None and chosen.name in module
    if algos is not None and not is_own:
        logger.warning("core_algos: without effect: %s is ours", chosen.name)
    return {"core_function": chosen.name, "core_algos": algos if is_own else None}


def _length(
    given: dict[str, Any], flags: Mapping[str, Any], of_file: dict[str, Any], epochs: int | None
) -> dict[str, Any]:
    """Number of steps, of warm-up steps and of optimiser steps per step; `epochs`: the flag."""
    from producer.fine_tuning.named_policy import num_questions

    groups = int(given.get("groups_per_batch", RunConfig.model_fields["groups_per_batch"].default))
    found: dict[str, Any] = {}
    is_given = "num_steps" in flags or ("num_steps" in given and epochs is None)
    epochs = epochs or of_file["epochs"]
    if not is_given and epochs is not None:
        each = num_questions(given["tasks"]) // groups
        if not each:
            logger.warning("the data set has fewer questions than a batch: an epoch is one step")
        found["num_steps"] = int(epochs) * max(1, each)
    steps = int(found.get("num_steps", given.get("num_steps", 100)))
    if of_file["warmup_ratio"] and "learning_rate_warmup_steps" not in given:
        found["learning_rate_warmup_steps"] = int(of_file["warmup_ratio"] * steps)
    size = of_file["mini_batch"]
    if size is not None and "num_substeps" not in flags:
        found["num_substeps"] = -(-groups // size)
        if groups > size and groups % size:
            logger.info(
                "ppo_mini_batch_size: %d prompts in parts of %d are %d optimiser steps of one size",
                *(groups, size, found["num_substeps"]),
            )
    return found
