"""pydantic's validation errors in plain words, one line for each problem."""

import json
import textwrap
from collections.abc import Collection

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from producer.errors import did_you_mean

TYPES = {
    "bool": "true or false",
    "int": "an integer",
    "float": "a number",
    "finite": "a finite number",
    "string": "text",
    "path": "a path",
    "list": "a list",
    "tuple": "a list",
    "dict": "an object",
    "model": "an object",
}
"""First word of pydantic's error type -> what the field takes."""
BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}
"""pydantic's error type -> the key of its bound, and its words."""
OTHER_NAMES = {
    "adv_estimator": "advantage",
    "algorithm": "advantage",
    "alpha": "lora_alpha",
    "base_model": "model_name",
    "batch_size": "groups_per_batch",
    "beta": "kl_penalty_coef",
    "clip_range": "clip_ratio_high",
    "clip_ratio": "clip_ratio_high",
    "cliprange": "clip_ratio_high",
    "data_path": "tasks",
    "dataset": "tasks",
    "dropout": "lora_dropout",
    "ent_coef": "entropy_coef",
    "entropy_coeff": "entropy_coef",
    "env": "environment",
    "env_name": "environment",
    "epochs": "num_steps",
    "epsilon": "clip_ratio_high",
    "eval_dataset": "eval_tasks",
    "eval_steps": "eval_every",
    "experiment_name": "training_name",
    "gamma": "gae_gamma",
    "grad_clip": "max_gradient_norm",
    "kl_coef": "kl_penalty_coef",
    "kl_loss_coef": "kl_penalty_coef",
    "lam": "gae_lambda",
    "lora_r": "lora_rank",
    "loss": "loss_fn",
    "loss_type": "loss_fn",
    "lr": "learning_rate",
    "lr_scheduler_type": "learning_rate_schedule",
    "max_completion_length": "max_tokens",
    "max_grad_norm": "max_gradient_norm",
    "max_new_tokens": "max_tokens",
    "max_response_length": "max_tokens",
    "max_steps": "num_steps",
    "mini_batch_size": "num_minibatches",
    "model": "model_name",
    "model_name_or_path": "model_name",
    "model_path": "model_name",
    "n": "group_size",
    "name": "training_name",
    "num_epochs": "num_steps",
    "num_generations": "group_size",
    "num_iterations": "ppo_epochs",
    "num_ppo_epochs": "ppo_epochs",
    "num_train_epochs": "num_steps",
    "output_dir": "log_path",
    "per_device_train_batch_size": "groups_per_batch",
    "ppo_mini_batch_size": "num_minibatches",
    "rank": "lora_rank",
    "reward_fn": "reward",
    "reward_func": "reward",
    "reward_funcs": "reward",
    "rollout_n": "group_size",
    "run_name": "training_name",
    "save_freq": "save_every",
    "save_steps": "save_every",
    "steps": "num_steps",
    "test_freq": "eval_every",
    "total_epochs": "num_steps",
    "total_steps": "num_steps",
    "train_batch_size": "groups_per_batch",
    "train_files": "tasks",
    "val_files": "eval_tasks",
    "vf_coef": "value_coef",
    "warmup_steps": "learning_rate_warmup_steps",
    "warmup_style": "learning_rate_schedule",
}
"""What TRL, verl and others call a field -> our name of the nearest one."""
SHOWN_CHARACTERS = 80
LINE_CHARACTERS = 76


def did_you_mean_field(name: str, fields: Collection[str]) -> str:
    """As `did_you_mean`, for the name that another trainer gives one of the fields too."""
    other = OTHER_NAMES.get(name.lower())
    return f" Did you mean {other!r}?" if other in fields else did_you_mean(name, fields)


def field_problems(error: ValidationError, fields: Collection[str]) -> list[str]:
    """One line for each problem, led by the field; unknown fields bring the list of `fields`."""
    details = error.errors(include_url=False)
    problems = [line for item in details for line in _problem(item, fields).splitlines()]
    if any(item["type"] == "extra_forbidden" for item in details):
        listed = f"the fields are: {', '.join(fields)}"
        problems += textwrap.wrap(listed, LINE_CHARACTERS, subsequent_indent="  ")
    return problems


def _problem(item: ErrorDetails, fields: Collection[str]) -> str:
    field = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        return f"{field}: there is no such field.{did_you_mean_field(field, fields)}"
    if item["type"] == "value_error" and not field:
        # A rule over several fields names its fields itself.
        return str(item["ctx"]["error"])
    return f"{field}: {what_is_wrong(item)}"


def what_is_wrong(item: ErrorDetails) -> str:
    """What is wrong with one value, without its field: `0 is out of range; ...`."""
    kind, context, value = item["type"], item.get("ctx", {}), _shown(item["input"])
    if kind == "value_error":
        return str(context["error"])
    if kind == "missing":
        return "is missing"
    if kind == "literal_error":
        choices = str(context["expected"]).replace("'", "").replace(" or ", ", ")
        meant = did_you_mean(str(item["input"]), choices.split(", "))
        return f"{value} is not one of {choices}" + (f".{meant}" if meant else "")
    if kind in BOUNDS:
        key, words = BOUNDS[kind]
        return f"{value} is out of range; it must be {words} {_number(context[key])}"
    wanted = TYPES.get("int" if kind == "int_from_float" else kind.partition("_")[0])
    return f"{value} is not {wanted}" if wanted else f"{value} is not valid ({kind})"


def _number(bound: float) -> str:
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."
