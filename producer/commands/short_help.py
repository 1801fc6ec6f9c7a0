"""`--help` with the options that most runs need; `--help-all` with every one."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import click
from rich_click import RichContext, RichOption

from producer.commands.recipe_command import RecipeCommand
from producer.config import RunConfig

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
"""Fields whose flags `--help` shows."""
ALL: Final = "producer.commands.short_help.all"
"""Key in the context's `meta`."""


def _show_all(ctx: click.Context, _param: click.Parameter, value: bool) -> None:  # noqa: FBT001  # click's signature
    if value and not ctx.resilient_parsing:
        ctx.meta[ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


class ShortHelpCommand(RecipeCommand):
    """A command with a flag for each field of the configuration, in the recipe's spelling too."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        option = RichOption(
            ["--help-all"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_all,
            panel="Output",
            help="Show every option, not the common ones alone, and exit.",
        )
        self.params.append(option)

    def format_help(self, ctx: RichContext, formatter: Any) -> None:  # type: ignore[override]  # as RichCommand's
        """Short unless `--help-all` asked for everything."""
        if ctx.meta.get(ALL):
            super().format_help(ctx, formatter)
            return
        with self._shortened():
            super().format_help(ctx, formatter)

    @contextmanager
    def _shortened(self) -> Iterator[None]:
        fields = RunConfig.model_fields.keys()
        options = [option for option in self.params if isinstance(option, click.Option)]
        before = [(option, option.hidden, option.help) for option in options]
        epilog = self.epilog
        for option in options:
            if option.name in fields:
                option.hidden = option.name not in COMMON
            option.help = _first_sentence(option.help or "")
        others = " ".join(option.opts[-1] for option in options if option.hidden)
        self.epilog = f"More options, explained by --help-all: {others}\n\n{epilog or ''}"
        try:
            yield
        finally:
            self.epilog = epilog
            for option, hidden, text in before:
                option.hidden, option.help = hidden, text


def _first_sentence(text: str) -> str:
    """Of a help text, with its choices and its default."""
    sentences, mark, default = text.partition(" [default: ")
    first, *others = sentences.rstrip(".").split(". ")
    choices = [other for other in others if other.startswith("One of ")]
    return ". ".join([first, *choices]) + "." + mark + default
