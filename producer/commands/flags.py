"""Command-line flags made from the fields of the configuration, and the short help of `run`.

A command with such flags also accepts the CUA recipe's spelling, unchanged:

compute_post_kl=True            ->  --compute-post-kl
--compute_post_kl False         ->  --no-compute-post-kl
--renderer_name qwen3_vl        ->  --renderer_name recipe
--gbox_api_key KEY              ->  refused, without the key
use_default_eval_tasks=True     ->  nothing, the default
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import rich_click as click
from click import Context
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from producer.algorithms.controls import BLANK_SCREENS
from producer.commands.options import (
    DEVICE,
    FILE,
    Decorator,
    EnvironmentChoice,
    FieldChoice,
    option,
    with_options,
)
from producer.config import DEMO_PRESET, NONE_IS_A_VALUE, TOPICS, RunConfig
from producer.config.recipe_names import EVAL_TASKS, KEYS, control_of, in_our_names, renderer_of
from producer.errors import UsageError
from producer.numbers import NONE

DEFAULTS = {
    "model_name": "demo",
    "tasks": "built-in tasks for demo and oracle, otherwise required",
    "eval_tasks": "the training tasks' held-out split if there is one, else the training tasks",
    "training_name": "a new name",
    "log_path": "CUA_HOME/runs/NAME",
    "judge": "agent for instructions; required for other custom tasks without a validator",
    "judge_model": "the only one that it lists",
    "dbbench_database": "SQLite in child processes",
    "env_screen": "none: words alone",
    "max_steps_off_policy": "none, always the newest version",
    "num_minibatches": "none",
    "max_gradient_norm": "no clipping",
    "loss_aggregation": "sum; gspo: sequence_mean",
    "reward_function": "the one that reward_module registers",
    "reward_manager": "the one that reward_module registers",
    "cpu_threads": "the machine's cores, or OMP_NUM_THREADS",
    "screen_cache_bytes": "2 GiB",
    "kv_cache_bytes": "no limit",
    "lora_alpha": "2 x lora_rank",
    "target_modules": "all",
    "log_dir": "CUA_HOME/runs",
    "reward_sha256": "computed",
    "core_algos_sha256": "computed",
    "reward_module_sha256": "computed",
    "clip_ratio_low": "0.2 for ppo and cispo, 3e-4 for gspo",
    "clip_ratio_high": "0.2 for ppo and cispo, 4e-4 for gspo",
}
"""Descriptions of defaults that the fields themselves do not hold."""
_METAVARS = {
    "NAME": "training_name wandb_project wandb_name judge_model core_function reward_function"
    " reward_manager",
    "NAME|FOLDER": "model_name",
    "FILE|MODULE": "core_algos reward_module",
    "SHA256": "core_algos_sha256 reward_module_sha256 reward_sha256",
    "URL": "dbbench_database",
    "URL[,URL]": "env_url base_url",
    "FOLDER|URL": "load_checkpoint_path",
    DEVICE: "device",
    "all|attention|mlp|JSON": "target_modules",
    "NAME[,NAME]": "skill_sequence",
    "WIDTHxHEIGHT": "env_screen",
    "SERIAL[,SERIAL]": "adb_serials",
    "HOST:PORT": "adb_server",
    "agent|none|URL": "judge",
    "FORMAT": "renderer_name",
    "NAME|MODULE:FUNCTION": "reward",
}
METAVARS = {name: metavar for metavar, names in _METAVARS.items() for name in names.split()}
"""Metavars of text fields; otherwise the metavar is the last word of the field's name."""
WIDEST_CHOICE = 35
"""Maximum characters of a metavar in 80 columns; longer choices are listed in the text."""
LONG_CHOICE = "NAME"
PANELS = {name: panel for panel, topic in TOPICS.items() for name in topic.model_fields}
"""Maps a field to its panel in the help."""
JSON_FIELDS = frozenset({"tasks", "eval_tasks"})
COMMON: Final = frozenset(
    {
        *("model_name", "lora_rank", "load_checkpoint_path", "max_tokens", "temperature"),
        *("tasks", "eval_tasks", "judge", "environment", "seed"),
        *("max_turns", "max_concurrent_rollouts", "reward"),
        *("num_steps", "group_size", "groups_per_batch", "learning_rate"),
        *("advantage", "loss_fn", "kl_penalty_coef"),
        *("device", "dtype"),
        *("eval_every", "eval_episodes", "skip_baseline", "baseline_only"),
        *("training_name", "log_path", "save_every", "failure_policy", "wandb_project"),
    }
)
"""Fields whose flags `run --help` explains; `--help-all` explains all flags."""
ALL: Final = f"{__name__}.all"
"""Key in the context's `meta`."""
SWITCHES: Final = frozenset(
    name for name, field in RunConfig.model_fields.items() if field.annotation is bool
)
WORDS: Final = {"true": True, "1": True, "false": False, "0": False}
with_config_file = option(
    "--config config_file",
    "JSON, TOML or YAML file of fields, named as the flags; flags win.",
    FILE,
    panel="Output",
)


class IntegerOrNone(click.ParamType[Any]):
    """An integer or the word `none`, which is kept as a word, because None means no flag."""

    name = "integer"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: Context | None
    ) -> int | str:
        """Convert to a number, or return `none`."""
        if value == NONE:
            return NONE
        try:
            return int(str(value))
        except ValueError:
            self.fail(f"{value!r} is neither an integer nor {NONE}.", param, ctx)


def field_flags(
    names: Iterable[str],
    default: str | None = None,
    **changed: Mapping[str, str | None],
) -> Decorator:
    """Add the flags of fields. The command gets them as keyword arguments, None if not given.

    `changed` maps a field to arguments of `field_flag`.
    """
    return with_options(
        *(field_flag(name, **{"default": default, **changed.get(name, {})}) for name in names)
    )


def field_flag(
    name: str,
    of: type[BaseModel] | None = None,
    /,
    flag: str | None = None,
    text: str | None = None,
    default: str | None = None,
    panel: str | None = None,
) -> Decorator:
    """Add the flag of a field of `of`, by default of `RunConfig`.

    The other arguments replace its name, help, default and panel.
    """
    panel = panel or PANELS.get(name, "Options")
    field = (of or RunConfig).model_fields[name]
    flag = flag or "--" + name.replace("_", "-")
    text = f"{text or description_of(field)} [default: {default or shown_default(name)}]"
    if field.annotation is bool:
        return click.option(f"{flag}/--no-{flag[2:]}", name, default=None, help=text, panel=panel)
    kind, metavar = _type(name, field)
    if isinstance(kind, click.Choice) and metavar == LONG_CHOICE:
        text = text.replace(" [default:", f" One of {', '.join(kind.choices)}. [default:")
    return click.option(flag, name, type=kind, metavar=metavar, help=text, panel=panel)


def description_of(field: FieldInfo) -> str:
    """The field's docstring as one line."""
    return " ".join(str(field.description).split())


def shown_default(name: str) -> str:
    """A field's default as the help shows it, and the preset's default if that differs."""
    if name in DEFAULTS:
        return DEFAULTS[name]
    default = RunConfig.model_fields[name].default
    preset = DEMO_PRESET.get(name, default)
    shown = in_words(default)
    return shown if preset == default else f"{shown}; demo: {in_words(preset)}"


def in_words(value: object) -> str:
    """Format a default for the help."""
    if value is None or value is PydanticUndefined:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _type(name: str, field: FieldInfo) -> tuple[click.ParamType[Any], str]:
    """How click parses the field, and its metavar."""
    annotation = field.annotation
    if name in JSON_FIELDS:
        return click.STRING, "FILE|JSON"
    if get_origin(annotation) in {Union, UnionType}:
        annotation = next(arg for arg in get_args(annotation) if arg is not type(None))
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is Literal:
        more = (BLANK_SCREENS,) if name == "control" else ()
        choices = (*map(str, get_args(annotation)), *more)
        joined = "|".join(choices)
        shown = joined if len(joined) <= WIDEST_CHOICE else LONG_CHOICE
        kind = EnvironmentChoice if name == "environment" else FieldChoice
        return kind(choices), METAVARS.get(name, shown)
    if annotation is Path:
        return click.Path(path_type=Path), METAVARS.get(name, "FOLDER")
    if annotation is int:
        return (
            (IntegerOrNone(), "INTEGER|none") if name in NONE_IS_A_VALUE else (click.INT, "INTEGER")
        )
    if annotation is float:
        return click.FLOAT, "FLOAT"
    # pydantic parses all other types.
    return click.STRING, METAVARS.get(name) or name.rpartition("_")[2].upper()


class RecipeCommand(click.RichCommand):
    """A command that also accepts the recipe's spelling of its flags."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse as click does, after converting the recipe's spelling."""
        return super().parse_args(ctx, list(from_recipe(args)))


def from_recipe(words: Sequence[str]) -> Iterator[str]:
    """Convert words to our spelling; other words are unchanged.

    Raises UsageError for an invalid switch value or a key.
    """
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, has_value, value = word.removeprefix("--").partition("=")
        name = name.replace("-", "_")
        if name in {*KEYS, EVAL_TASKS} and (has_value or word.startswith("--")):
            following = _next_word if name == EVAL_TASKS else _next
            try:
                in_our_names({name: value if has_value else following(rest)})
            except ValueError as error:
                raise UsageError(str(error)) from None
        elif name not in RunConfig.model_fields or not (has_value or word.startswith("--")):
            yield word
        elif name in SWITCHES:
            yield _switch(name, value if has_value else _next_word(rest))
        elif name == "renderer_name":
            yield from ("--renderer-name", renderer_of(value if has_value else _next(rest)))
        elif name == "control":
            field, meant = control_of(value if has_value else _next(rest))
            yield from (f"--{field}", meant)
        elif has_value and not word.startswith("--"):
            yield from ("--" + name.replace("_", "-"), value)
        else:
            yield word
            if not has_value:  # the next word is its value, even `seed=3`
                yield from rest[:1]
                del rest[:1]


def _next(rest: list[str]) -> str:
    return rest.pop(0) if rest else ""


def _next_word(rest: list[str]) -> str:
    return rest.pop(0) if rest and rest[0].lower() in WORDS else "true"


def _switch(name: str, value: str) -> str:
    flag = name.replace("_", "-")
    if value.lower() not in WORDS:
        message = f"{name}: {value!r} is neither True nor False"
        raise UsageError(message)
    return f"--{flag}" if WORDS[value.lower()] else f"--no-{flag}"


def _show_all(ctx: Context, _param: click.Parameter, value: bool) -> None:  # noqa: FBT001  # click's signature
    if value and not ctx.resilient_parsing:
        ctx.meta[ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


class ShortHelpCommand(RecipeCommand):
    """A command with a flag per field; --help shows the common ones, --help-all shows all."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        help_all = click.RichOption(
            ["--help-all"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_all,
            panel="Output",
            help="Show every option and exit.",
        )
        self.params.append(help_all)

    def format_help(self, ctx: click.RichContext, formatter: Any) -> None:  # type: ignore[override]  # as RichCommand's
        """Write the short help, unless `--help-all` was given."""
        if ctx.meta.get(ALL):
            super().format_help(ctx, formatter)
            return
        with self._shortened():
            super().format_help(ctx, formatter)

    @contextmanager
    def _shortened(self) -> Iterator[None]:
        options = [item for item in self.params if isinstance(item, click.Option)]
        before = [(item, item.hidden, item.help) for item in options]
        epilog = self.epilog
        for item in options:
            if item.name in RunConfig.model_fields:
                item.hidden = item.name not in COMMON
            item.help = _first_sentence(item.help or "")
        others = " ".join(item.opts[-1] for item in options if item.hidden)
        self.epilog = f"More options, explained by --help-all: {others}\n\n{epilog or ''}"
        try:
            yield
        finally:
            self.epilog = epilog
            for item, hidden, text in before:
                item.hidden, item.help = hidden, text


def _first_sentence(text: str) -> str:
    """The first sentence of a help text, with its choices and its default."""
    sentences, mark, default = text.partition(" [default: ")
    first, *others = sentences.rstrip(".").split(". ")
    choices = [sentence for sentence in others if sentence.startswith("One of ")]
    return ". ".join([first, *choices]) + "." + mark + default
