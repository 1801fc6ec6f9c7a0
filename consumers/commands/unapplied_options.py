"""Options of `cua-project parked` that say which records are meant."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, get_args

import rich_click as click

from consumers.errors import UsageError

if TYPE_CHECKING:
    from consumers.projection.unapplied_filter import UnappliedFilter

NAMES = ("training", "kind", "type_glob")


def unapplied_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add them; `take_filter` takes what was given."""
    for option in reversed(
        (
            click.option("--training", metavar="NAME", help="Only of this training."),
            click.option(
                "--kind", metavar="KIND", help="Only of this kind, as `list --json` names it."
            ),
            click.option(
                "--type",
                "type_glob",
                metavar="GLOB",
                help="Only events of this type (rollout.*), with or without `cua.`.",
            ),
        )
    ):
        command = option(command)
    return command


def take_filter(options: dict[str, str | None], state: str | None = None) -> "UnappliedFilter":
    """The filter that the options give. UsageError for a kind that does not exist."""
    from consumers.fold.unapplied import Kind
    from consumers.projection.unapplied_filter import UnappliedFilter
    from consumers.tail.trainings import normalize_name

    training, kind, type_ = (options[name] for name in NAMES)
    if kind is not None and kind not in get_args(Kind):
        message = f"--kind {kind!r} does not exist; use one of {', '.join(get_args(Kind))}"
        raise UsageError(message)
    name = None if training is None else normalize_name(training)
    return UnappliedFilter(state, name, kind, type_)
