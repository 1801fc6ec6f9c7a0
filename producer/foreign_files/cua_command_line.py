"""Rewrites the CUA recipe's command line as ours, which runs its commands as written.

compute_post_kl=True            ->  --compute-post-kl
--compute_post_kl False         ->  --no-compute-post-kl
--renderer_name qwen3_vl        ->  --renderer_name recipe
--gbox_api_key KEY              ->  refused, without the key
"""

from collections.abc import Iterator, Sequence
from typing import Final

from click import Context
from rich_click import RichCommand

from producer.config import RunConfig
from producer.errors import UsageError

RENDERERS: Final = {"qwen3_vl": "recipe", "qwen3_vl_instruct": "recipe"}
"""The recipe's renderers -> ours."""
SWITCHES: Final = frozenset(
    name for name, field in RunConfig.model_fields.items() if field.annotation is bool
)
WORDS: Final = {"true": True, "1": True, "false": False, "0": False}
KEYS: Final = {
    "gbox_api_key": "GBox devices are coming; today's devices are simulated and need no key",
    "tinker_api_key": "Tinker is coming; today's policies are trained in this process",
}
"""Settings of services that are not supported yet -> what works today."""


class RecipeCommand(RichCommand):
    """A command that also takes the recipe's spelling of its flags."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """As click, after rewriting."""
        return super().parse_args(ctx, list(from_recipe(args)))


def from_recipe(words: Sequence[str]) -> Iterator[str]:
    """The words in our spelling; other words unchanged. UsageError for a bad switch or a key."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, has_value, value = word.removeprefix("--").partition("=")
        name = name.replace("-", "_")
        if name in KEYS and (has_value or word.startswith("--")):
            message = f"{name}: {KEYS[name]}. Leave it out"
            raise UsageError(message)
        if name not in RunConfig.model_fields or not (has_value or word.startswith("--")):
            yield word
        elif name in SWITCHES:
            yield _switch(name, value if has_value else _next_value(rest))
        elif name == "renderer_name":
            given = value if has_value else (rest.pop(0) if rest else "")
            yield from ("--renderer-name", RENDERERS.get(given.replace("-", "_"), given))
        elif has_value and not word.startswith("--"):
            yield from ("--" + name.replace("_", "-"), value)
        else:
            yield word


def _next_value(rest: list[str]) -> str:
    return rest.pop(0) if rest and rest[0].lower() in WORDS else "true"


def _switch(name: str, value: str) -> str:
    flag = name.replace("_", "-")
    if value.lower() not in WORDS:
        message = f"{name}: {value!r} is neither True nor False"
        raise UsageError(message)
    return f"--{flag}" if WORDS[value.lower()] else f"--no-{flag}"
