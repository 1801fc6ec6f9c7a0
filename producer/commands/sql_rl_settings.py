"""Settings of a text-to-SQL training from flags and a file; flags take precedence."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from producer.agents.text_to_sql.data.verl_prompts import ENDING
from producer.algorithms.advantages import ADVANTAGES
from producer.commands.given_fields import with_absolute_paths
from producer.commands.sql_rl_fields import COMMAND_FIELDS, read_sql_rl
from producer.config import RunConfig, without_unset
from producer.errors import UsageError
from producer.foreign_files.convert import Converted

logger = logging.getLogger(__name__)

FOUR: Final = ("grpo", "ppo", "rloo", "prime")
"""Algorithms that compute their own advantages."""
DAPO: Final[dict[str, Any]] = {
    "clip_ratio_low": 0.2,
    "clip_ratio_high": 0.28,
    "dual_clip": 10.0,
    "remove_constant_reward_groups": True,
}
"""Settings of verl's DAPO, which uses grpo's advantages. The file and flags take precedence."""
OWN_REWARDS: Final = ("reward_module", "reward_function", "reward_manager")
"""Settings for custom rewards. Without any, rewards are executed here and the file's port is
ignored."""
WITH_FILES_FUNCTION: Final = ("grpo", "dapo")
"""The only algorithms for which RewardSQL calls a file's core_function."""
DEFAULTS: Final[dict[str, Any]] = {
    "environment": "text_to_sql",
    "max_turns": 1,
    "group_size": 8,
    "max_tokens": 512,
    "loss_fn": "ppo",
    "loss_aggregation": "token_mean",
    "remove_constant_reward_groups": False,
}
"""verl's defaults. The file and flags take precedence."""


CORE: Final = ("core_function", "core_algos")
ADVANTAGE_OF_SETTING: Final = {
    field: name
    for name, advantage in ADVANTAGES.items()
    if advantage.learned is not None
    for field in advantage.learned.settings.model_fields
}
"""Maps a setting of an advantage with weights of its own to that advantage."""


def settings_of(flags: Mapping[str, Any], file: Converted | None = None) -> dict[str, Any]:
    """Configuration fields of a new training. Raises UsageError, NotFoundError.

    `flags` holds only the flags that were given.
    """
    from producer.fine_tuning.named_policy import policy_fields

    of_file = {} if file is None else {k: v for k, v in file.fields.items() if k not in flags}
    names = {} if file is None else {name: file.name_of(name) for name in of_file}
    read = read_sql_rl({**of_file, **flags}, names)
    algorithm = str(read.get("algorithm", "grpo"))
    is_dapo = algorithm == "dapo"
    given = {**DEFAULTS, **(DAPO if is_dapo else {}), **read}
    own = {name: given.pop(name, None) for name in COMMAND_FIELDS}
    for name in CORE:
        own[name] = given.pop(name, None) if name in of_file else None
    if algorithm == "grpo" and own["normalize_by_std"] is False:
        own["core_function"] = own["core_function"] or "compute_dr_grpo_outcome_advantage"
    if not any(given.get(name) for name in OWN_REWARDS) and "reward_port" not in flags:
        given.pop("reward_port", None)
    folder = _folder(own["data_path"], None if "data_path" in flags else file)
    # If model_name is an adapter, the adapter's base is the policy.
    if "model_name" not in given:
        message = "--model-name: name the policy to train: a folder or a Hugging Face id"
        raise UsageError(message)
    given |= policy_fields(given["model_name"])
    if "train_type" not in flags and (
        {"lora_rank"} & flags.keys() or "load_checkpoint_path" in given
    ):
        given.pop("train_type", None)
    given |= _questions(folder, own, given)
    given |= _advantages("grpo" if is_dapo else algorithm, own, flags, given)
    for name in of_file.keys() & ADVANTAGE_OF_SETTING.keys():
        if ADVANTAGE_OF_SETTING[name] != given.get("advantage"):
            logger.debug(
                "%s: no effect without the advantage %s", names[name], ADVANTAGE_OF_SETTING[name]
            )
            del given[name]
    given |= _length(given, own, flags)
    return with_absolute_paths(without_unset(given))


def continued(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Configuration fields of a continuing training; the log has the others."""
    from producer.fine_tuning.named_policy import policy_fields

    return with_absolute_paths({**fields, **policy_fields(fields.get("model_name"))})


def _folder(named: str | None, file: Converted | None) -> Path:
    """The data set's folder. `file` is the file that names it, or None if a flag does."""
    if named is None:
        message = (
            "--data-path: name the data set's folder, in BIRD's or Spider's layout, or verl's"
            " Parquet file of prompts"
        )
        raise UsageError(message)
    if file is None:
        return Path(named)
    path = Path(named).expanduser()
    if path.is_dir() or (path.suffix == ENDING and path.is_file()):
        return path
    if path.suffix == ".json" and path.is_file():
        return path.parent
    message = (
        f"{file.path}: {file.name_of('data_path')}: there is no {named}, the folder of a data"
        " set or a Parquet file of prompts; give one with --data-path"
    )
    raise UsageError(message)


def _questions(folder: Path, own: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The training questions and the evaluation questions, by default all of dev."""
    from producer.fine_tuning.named_policy import held_out_split, num_questions, questions_of

    skip_invalid = bool(own["skip_invalid"])
    tasks = questions_of(folder, "train", skip_invalid=skip_invalid)
    num_questions(tasks)
    named = own["eval_data_path"]
    other = None if named is None else Path(named).expanduser()
    asked = folder if folder.is_dir() else folder.parent
    if other is not None and (other.is_dir() or (other.suffix == ENDING and other.is_file())):
        asked = other
    split = held_out_split(asked)
    held_out = tasks if split is None else questions_of(asked, split, skip_invalid=skip_invalid)
    if split is None and "eval_tasks" not in given:
        logger.warning("%s has no dev or test questions: training questions are evaluated", asked)
    found: dict[str, Any] = {"tasks": tasks, "eval_tasks": given.get("eval_tasks", held_out)}
    if "eval_episodes" not in given:
        found["eval_episodes"] = num_questions(found["eval_tasks"])
    return found


def _advantages(
    algorithm: str, own: dict[str, Any], flags: Mapping[str, Any], given: dict[str, Any]
) -> dict[str, Any]:
    """The core function or the advantage, from the flags, else the file, else the algorithm."""
    from producer.algorithms.core_functions import choose_core_function, named_core_function
    from producer.process_rewards.registry import public_names
    from producer.process_rewards.user_module import is_stand_in, load_user_module

    named = flags.get("core_function") or _files_function(algorithm, own["core_function"])
    algos = flags.get("core_algos") or own["core_algos"]
    if algorithm == "remax" and named is None:
        # ReMax's baseline is a greedy rollout that the trainer samples, not a function of rewards.
        return {"advantage": "remax", "core_algos": None}
    if algorithm not in FOUR and named is None:
        return {"core_function": _own_function(algorithm), "core_algos": None}
    try:
        loaded = None if algos is None else load_user_module(algos)
        if loaded is not None and is_stand_in(loaded):
            logger.info("core_algos: there is no %s here; ours of the same names are used", algos)
            algos = loaded = None
        module = {} if loaded is None else public_names(loaded)
    except ValueError as error:
        message = f"core_algos: {error}"
        raise UsageError(message) from error
    chosen = named or choose_core_function(
        algorithm if algorithm in FOUR else "grpo",  # type: ignore[arg-type]  # one of FOUR
        module,
        has_process_rewards="process_reward_model" in given or "reward_manager" in given,
    )
    if not named and chosen in ADVANTAGES:
        if algos is not None:
            message = (
                f"core_algos: {algos} has no core function for {algorithm}, which uses {chosen}"
            )
            raise UsageError(message)
        return {"advantage": chosen, "core_algos": None}
    try:
        named_core_function(chosen, module)
    except ValueError as error:
        message = f"core_function: {error}"
        raise UsageError(message) from error
    logger.info("core function: %s", chosen)
    if algos is not None and chosen not in module:
        logger.warning("core_algos has no effect: %s is a built-in function", chosen)
    return {"core_function": chosen, "core_algos": algos if chosen in module else None}


def _files_function(algorithm: str, named: str | None) -> str | None:
    """The function that the file names, if it applies to this algorithm."""
    if named is None or algorithm in WITH_FILES_FUNCTION or named == _own_function(algorithm):
        return named
    logger.warning(
        "the file's core_function has no effect: %s computes its own advantages; if you want the"
        " function, add --core-function %s",
        *(algorithm, named),
    )
    return None


def _own_function(algorithm: str) -> str:
    """The name of the algorithm's outcome-advantage function, which may not exist."""
    return f"compute_{algorithm}_outcome_advantage"


def _length(given: dict[str, Any], own: dict[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """Number of steps, of warm-up steps and of optimiser steps per step."""
    from producer.fine_tuning.named_policy import num_questions

    groups = int(given.get("groups_per_batch", RunConfig.model_fields["groups_per_batch"].default))
    found: dict[str, Any] = {}
    is_given = "num_steps" in flags or ("num_steps" in given and "epochs" not in flags)
    if not is_given and own["epochs"] is not None:
        each = num_questions(given["tasks"]) // groups
        if not each:
            logger.warning("the data set has fewer questions than a batch: an epoch is one step")
        found["num_steps"] = own["epochs"] * max(1, each)
    steps = int(found.get("num_steps", given.get("num_steps", 100)))
    if own["warmup_ratio"] and "learning_rate_warmup_steps" not in given:
        found["learning_rate_warmup_steps"] = int(own["warmup_ratio"] * steps)
    size = own["mini_batch_size"]
    if size is not None and "num_substeps" not in given:
        found["num_substeps"] = -(-groups // size)
        if groups > size and groups % size:
            logger.info(
                "mini_batch_size %d does not divide the %d prompts of a step: %d optimiser steps of"
                " about equal size",
                *(size, groups, found["num_substeps"]),
            )
    return found
