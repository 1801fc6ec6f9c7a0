"""One command-line flag for each field of the configuration, made from the field itself."""

from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import rich_click as click
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from producer.config import DEMO_PRESET, NONE_IS_A_VALUE, TOPICS, RunConfig
from producer.numbers import NONE

DEFAULTS = {
    "model_name": "demo",
    "tasks": "with demo and oracle built-in tasks, otherwise required",
    "eval_tasks": "the held-out split of the training tasks, or without one those themselves",
    "training_name": "a new name",
    "log_path": "CUA_HOME/runs/NAME",
    "judge": "required for custom tasks without a validator",
    "screen_cache_bytes": "2 GiB",
    "kv_cache_bytes": "all",
    "lora_alpha": "2 x lora_rank",
    "target_modules": "all",
    "log_dir": "CUA_HOME/runs",
    "reward_sha256": "of the file as it is",
    "core_algos_sha256": "of the file as it is",
    "reward_module_sha256": "of the file as it is",
    "clip_ratio_low": "0.2 for ppo and cispo, 3e-4 for gspo",
    "clip_ratio_high": "0.2 for ppo and cispo, 4e-4 for gspo",
}
"""Defaults that are not a value of the field."""
METAVARS = {
    "model_name": "NAME|FOLDER",
    "training_name": "NAME",
    "wandb_project": "NAME",
    "wandb_name": "NAME",
    "device": "auto|cpu|cuda|cuda:N",
    "target_modules": "all|attention|mlp|JSON",
    "core_function": "NAME",
    "core_algos": "FILE|MODULE",
    "core_algos_sha256": "SHA256",
    "reward_module": "FILE|MODULE",
    "reward_module_sha256": "SHA256",
    "reward_function": "NAME",
    "reward_manager": "NAME",
    "skill_sequence": "NAME[,NAME]",
    "dbbench_database": "URL",
    "base_url": "URL",
    "judge": "agent|none|URL",
    "renderer_name": "FORMAT",
    "judge_model": "NAME",
    "reward": "NAME|MODULE:FUNCTION",
    "reward_sha256": "SHA256",
}
"""What the help calls the value of a text field; the last word of its name where it is missing."""
WIDEST_CHOICE = 36
"""Characters that fit beside a flag in 80 columns; the help's text lists longer choices."""
LONG_CHOICE = "NAME"
JSON_FIELDS = frozenset({"tasks", "eval_tasks"})


class FieldChoice(click.Choice[str]):
    """A choice whose error names the values as the field has them, in their one spelling."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:  # noqa: ARG002  # click's signature
        """What is wrong, with every choice."""
        return f"{value!r} is not one of {', '.join(map(repr, self.choices))}."


class IntegerOrNone(click.ParamType[Any]):
    """A whole number, or the word none, which stays a word: None is a flag that is not given."""

    name = "integer"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """The number or `none`."""
        if value == NONE:
            return NONE
        try:
            return int(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a whole number or {NONE}.", param, ctx)


def config_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add every flag; the command gets them as keyword arguments, None where one was not given."""
    for panel, topic in reversed(TOPICS.items()):
        for name in reversed(topic.model_fields):
            command = field_flag(name, panel=panel)(command)
    return command


def field_flag(
    name: str,
    *,
    panel: str,
    flag: str | None = None,
    text: str | None = None,
    default: str | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The flag of one field; what else is given replaces the flag's name, its help, its default."""
    field = RunConfig.model_fields[name]
    flag = flag or "--" + name.replace("_", "-")
    text = f"{text or field.description} [default: {default or shown_default(name)}]"
    if field.annotation is bool:
        return click.option(f"{flag}/--no-{flag[2:]}", name, default=None, help=text, panel=panel)
    kind, metavar = _type(name, field)
    if isinstance(kind, click.Choice) and metavar == LONG_CHOICE:
        text = text.replace(" [default:", f" One of {', '.join(kind.choices)}. [default:")
    return click.option(flag, name, type=kind, metavar=metavar, help=text, panel=panel)


def shown_default(name: str) -> str:
    """The default of a field as the help shows it, with the preset's where it differs."""
    if name in DEFAULTS:
        return DEFAULTS[name]
    default = RunConfig.model_fields[name].default
    preset = DEMO_PRESET.get(name, default)
    return _word(default) if preset == default else f"{_word(default)}; demo: {_word(preset)}"


def _word(value: object) -> str:
    if value is None or value is PydanticUndefined:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _type(name: str, field: FieldInfo) -> tuple[click.ParamType[Any], str]:
    """How click parses the field, and what the help calls its value."""
    annotation = field.annotation
    if name in JSON_FIELDS:
        return click.STRING, "JSON"
    if get_origin(annotation) in {Union, UnionType}:
        annotation = next(get_arg for get_arg in get_args(annotation) if get_arg is not type(None))
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is Literal:
        choices = tuple(map(str, get_args(annotation)))
        joined = "|".join(choices)
        shown = joined if len(joined) <= WIDEST_CHOICE else LONG_CHOICE
        return FieldChoice(choices), METAVARS.get(name, shown)
    if annotation is Path:
        return click.Path(path_type=Path), METAVARS.get(name, "FOLDER")
    if annotation is int:
        return (
            (IntegerOrNone(), "INTEGER|none") if name in NONE_IS_A_VALUE else (click.INT, "INTEGER")
        )
    if annotation is float:
        return click.FLOAT, "FLOAT"
    # pydantic parses every other type from its text.
    return click.STRING, METAVARS.get(name) or name.rpartition("_")[2].upper()
