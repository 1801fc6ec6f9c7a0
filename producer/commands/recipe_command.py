"""A command that also takes the CUA recipe's spelling of its flags."""

import click
from rich_click import RichCommand

from producer.foreign_files.cua_command_line import from_recipe


class RecipeCommand(RichCommand):
    """`cua-train run compute_post_kl=True` is `cua-train run --compute-post-kl`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click, after rewriting. UsageError for a key of a service."""
        return super().parse_args(ctx, list(from_recipe(args)))
