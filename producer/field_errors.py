"""pydantic's validation errors in plain words: of a configuration, and of a nested object."""

import json
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from producer.errors import UsageError
from schemas.advice import did_you_mean

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
"""First word of pydantic's error type -> expected value."""
BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}
"""pydantic's error type -> the key of its bound, and how to say it."""
_NAMES_ELSEWHERE = {
    "advantage": "adv_estimator algorithm",
    "clip_ratio_high": "clip_range clip_ratio cliprange epsilon",
    "entropy_coef": "ent_coef entropy_coeff",
    "environment": "env env_name",
    "eval_every": "eval_steps test_freq",
    "eval_tasks": "eval_dataset val_files",
    "gae_gamma": "gamma",
    "gae_lambda": "lam",
    "group_size": "n num_generations rollout_n",
    "groups_per_batch": "batch_size per_device_train_batch_size train_batch_size",
    "kl_penalty_coef": "beta kl_coef kl_loss_coef",
    "learning_rate": "lr",
    "learning_rate_schedule": "lr_scheduler_type warmup_style",
    "learning_rate_warmup_steps": "warmup_steps",
    "log_path": "output_dir",
    "lora_alpha": "alpha",
    "lora_dropout": "dropout",
    "lora_rank": "lora_r rank",
    "loss_fn": "loss loss_type",
    "max_gradient_norm": "grad_clip max_grad_norm",
    "max_tokens": "max_completion_length max_new_tokens max_response_length",
    "model_name": "base_model model model_name_or_path model_path",
    "num_steps": "epochs max_steps num_epochs num_train_epochs steps total_epochs total_steps",
    "num_substeps": "mini_batch_size ppo_mini_batch_size",
    "ppo_epochs": "num_iterations num_ppo_epochs",
    "reward": "reward_fn reward_func reward_funcs",
    "save_every": "save_freq save_steps",
    "tasks": "data_path dataset train_files",
    "training_name": "experiment_name name run_name",
    "value_coef": "vf_coef",
}
OTHER_NAMES = {name: ours for ours, names in _NAMES_ELSEWHERE.items() for name in names.split()}
"""Name of a field in TRL, verl and others -> ours, or the nearest one."""
UNION_TAGS = ("str", "int", "bool")
"""What pydantic appends to the location of a field that is a union."""
SECRET_NAME = re.compile(
    r"(?i:(^|[_-])((api|access|auth)?key|api_?keys|secret|token|password|passwd|authorization"
    r"|cookie|credentials?))$|[a-z](Key|Secret|Token|Password)$"
)
"""Names of what is secret inside an object, as `api_key`, `apiKey` and `Authorization`."""
SHOWN_CHARACTERS = 80
"""Of a wrong value that a message repeats."""
LINE_CHARACTERS = 76

SchemaT = TypeVar("SchemaT", bound=BaseModel)


def did_you_mean_field(name: str, fields: Collection[str]) -> str:
    """As `did_you_mean`, also for names of other trainers."""
    other = OTHER_NAMES.get(name.lower())
    return f" Did you mean {other!r}?" if other in fields else did_you_mean(name, fields)


def invalid(problems: list[str]) -> UsageError:
    """The error for the problems of a configuration, one per line."""
    if len(problems) == 1:
        return UsageError(problems[0])
    return UsageError("\n  ".join(["the configuration is not valid:", *problems]))


def read_as(
    schema: type[SchemaT], given: Mapping[str, Any], names: Mapping[str, str] | None = None
) -> SchemaT:
    """The given fields as `schema`, validated.

    UsageError lists every problem, one per line, under what the user calls the field: `names`, by
    the schema's.
    """
    try:
        return schema.model_validate(given)
    except ValidationError as error:
        problems = field_problems(error, schema.model_fields)
        raise invalid(under_given_names(problems, names or {})) from None


def field_problems(error: ValidationError, fields: Collection[str]) -> list[str]:
    """One line per problem, starting with the field. An unknown field adds the list of `fields`."""
    details = error.errors(include_url=False)
    problems = [line for item in details for line in _problem(item, fields).splitlines()]
    if any(item["type"] == "extra_forbidden" for item in details):
        listed = f"the fields are: {', '.join(fields)}"
        problems += textwrap.wrap(listed, LINE_CHARACTERS, subsequent_indent="  ")
    return problems


def under_given_names(problems: Iterable[str], names: Mapping[str, str]) -> list[str]:
    """The problems, each starting with what the user calls its field; `names`: by our field."""
    shown = []
    for line in problems:
        field, colon, rest = line.partition(":")
        root, dot, part = field.partition(".")
        shown.append(f"{names.get(root, root)}{dot}{part}{colon}{rest}")
    return shown


def _problem(item: ErrorDetails, fields: Collection[str]) -> str:
    field = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        return f"{field}: there is no such field.{did_you_mean_field(field, fields)}"
    if item["type"] == "value_error" and not field:
        # A rule over several fields names them itself.
        return str(item["ctx"]["error"])
    return f"{field}: {value_problem(item)}"


def value_problem(item: ErrorDetails) -> str:
    """The problem of a value without its field: `0 is out of range; ...`."""
    kind, context, value = item["type"], item.get("ctx", {}), _shortened(item["input"])
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


def without_secrets(value: object) -> object:
    """The value with every secret in its objects replaced by ***."""
    if isinstance(value, dict):
        return {
            name: "***" if SECRET_NAME.search(str(name)) else without_secrets(item)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [without_secrets(item) for item in value]
    return value


def _shortened(value: object) -> str:
    text = json.dumps(without_secrets(value), ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."


def explain_mistake(error: ValidationError, schema: type[BaseModel]) -> str:  # noqa: PLR0911  # one per kind
    """The first mistake, led by the path of its field: `.limit: 0 is out of range`."""
    first = error.errors()[0]
    location, value = tuple(part for part in first["loc"] if part not in UNION_TAGS), first["input"]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    match first["type"]:
        case "value_error":
            return path + explain_reason(first["msg"].removeprefix("Value error, "))
        case "extra_forbidden":
            fields = list(_schema_at(schema, location[:-1]).model_fields)
            hint = did_you_mean(str(location[-1]), fields)
            return f"{path}: unknown field.{hint} The fields are {', '.join(fields)}"
        case "literal_error":
            choices = re.findall("'([^']+)'", first["ctx"]["expected"])
            hint = did_you_mean(str(value), choices)
            return (
                f"{path}: unknown value {_shortened(value)}.{hint} Use one of {', '.join(choices)}"
            )
        case "missing":
            return f"{path}: required"
        case "too_short" | "string_too_short":
            return f"{path}: must not be empty"
        case "json_invalid":
            return ": contains text that is not valid Unicode"
        case _:
            return f"{path}: {value_problem(first)}"


def explain_reason(reason: str) -> str:
    """What follows a path: a rule over several fields starts with the name of its field."""
    return ("." if re.match(r"\w+: ", reason) else ": ") + reason


def _schema_at(schema: type[BaseModel], location: tuple[int | str, ...]) -> type[BaseModel]:
    """The schema of the object at a location inside `schema`."""
    for part in location:
        if isinstance(part, str):
            schema = next(_schemas_in(schema.model_fields[part].annotation))
    return schema


def _schemas_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _schemas_in(argument)
