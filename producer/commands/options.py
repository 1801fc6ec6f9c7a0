"""What several commands have in common: options, checks of what was given, examples of the help."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import rich_click as click

from producer.errors import UsageError
from producer.training_name import check_training_name

Command = Callable[..., Any]


def examples(*lines: str) -> str:
    """The epilog of a command's help."""
    return "\n\n".join(["Examples:", *lines])


def with_json(command: Command) -> Command:
    """Add --json, the argument `as_json`."""
    return click.option("--json", "as_json", is_flag=True, panel="Output", help="Print JSON.")(
        command
    )


def given_training_name(text: str, option: str = "--training-name") -> str:
    """The name in its normal form. UsageError when it is none."""
    try:
        return check_training_name(text)
    except ValueError as error:
        message = f"{option}: {error}"
        raise UsageError(message) from None


def check_new_folder(output: Path) -> None:
    """UsageError when --output holds something."""
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        message = f"--output: {output} exists and is not empty; choose another folder"
        raise UsageError(message)
