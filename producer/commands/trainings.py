"""`cua-train trainings`: list this home's trainings; rename, tag, note and hide any of them."""

import json
import os
import unicodedata
from typing import TYPE_CHECKING, Any

import rich_click as click

from producer.commands.options import (
    Command,
    examples,
    given_training_name,
    option,
    switch,
    with_json,
)
from producer.console import print_report
from producer.errors import UsageError
from schemas.installation import read_installation

if TYPE_CHECKING:
    from producer.training.kept_trainings import Change
    from schemas.annotation import TrainingAnnotated

MAX_NAME = 200
"""Maximum characters of a display name and of a tag."""
MAX_NOTE = 10_000


def _of_training(command: Command) -> Command:
    return click.argument("training_name", metavar="NAME")(with_json(command))


@click.group()
def command() -> None:
    """List trainings; rename, tag, note and hide them.

    These annotations are events of the training, also while it runs; `cua-project status` and the
    monitor show them. The training's name, its identity, does not change.
    """


@command.command(
    "list",
    epilog=examples("$ cua-train trainings list", "$ cua-train trainings list --all --json"),
)
@switch("--all show_all", "List hidden trainings too.", "Output")
@with_json
def list_trainings(*, show_all: bool, as_json: bool) -> None:
    """List the trainings with saved states in this home, newest first."""
    from producer.training.kept_trainings import list_kept

    kept = [
        item for item in list_kept(read_installation(os.environ)) if show_all or not item.hidden
    ]
    rows = [
        [
            *(item.training_name, item.display_name, ", ".join(item.tags), item.status),
            f"{item.step}/{item.total_steps}",
            None if item.success is None else f"{item.success:.3f}",
            f"{item.saved_at:%Y-%m-%d %H:%M}",
            (item.note or "").partition("\n")[0][:60],
        ]
        for item in kept
    ]
    columns = ["training", "name", "tags", "status", "step", "success", "last saved (UTC)", "note"]
    print_report([item.as_json() for item in kept], columns, rows, as_json=as_json)


@command.command(
    "rename",
    epilog=examples(
        '$ cua-train trainings rename first "First try, small batch"',
        '$ cua-train trainings rename first ""   # removes the display name',
    ),
)
@_of_training
@click.argument("display_name", metavar="DISPLAY_NAME")
def rename(training_name: str, display_name: str, *, as_json: bool) -> None:
    """Give a training a display name."""
    shown = _one_line("DISPLAY_NAME", display_name.strip()) or None
    _annotate(training_name, lambda old: old.model_copy(update={"display_name": shown}), as_json)


@command.command(
    "tag",
    epilog=examples(
        "$ cua-train trainings tag first baseline small",
        "$ cua-train trainings tag first good --remove small",
    ),
)
@_of_training
@click.argument("tags", metavar="[TAG]...", nargs=-1)
@option("--remove", "Remove this tag; repeatable.", metavar="TAG", multiple=True)
def tag(
    training_name: str, tags: tuple[str, ...], remove: tuple[str, ...], *, as_json: bool
) -> None:
    """Add and remove tags of a training."""
    added, removed = {_tag(item) for item in tags}, {_tag(item) for item in remove}
    if not added | removed:
        message = "give a tag to add, or --remove TAG"
        raise UsageError(message)
    if both := added & removed:
        message = f"tag {min(both)!r} is both added and removed"
        raise UsageError(message)

    def change(old: "TrainingAnnotated") -> "TrainingAnnotated":
        return old.model_copy(update={"tags": tuple(sorted({*old.tags, *added} - removed))})

    _annotate(training_name, change, as_json)


@command.command(
    "note",
    epilog=examples(
        '$ cua-train trainings note first "Diverged after step 12: learning rate too high."',
        '$ cua-train trainings note first ""   # removes it',
    ),
)
@_of_training
@click.argument("text", metavar="TEXT")
def note(training_name: str, text: str, *, as_json: bool) -> None:
    """Write a training's note, replacing the previous one."""
    if len(text) > MAX_NOTE:
        message = f"the note has {len(text)} characters; at most {MAX_NOTE} are allowed"
        raise UsageError(message)
    if "\x00" in text:
        message = "the note has a NUL character; remove it"
        raise UsageError(message)
    written = text.strip() or None
    _annotate(training_name, lambda old: old.model_copy(update={"note": written}), as_json)


@command.command("hide", epilog=examples("$ cua-train trainings hide first"))
@_of_training
def hide(training_name: str, *, as_json: bool) -> None:
    """Leave a training out of lists. Nothing is deleted."""
    _annotate(training_name, lambda old: old.model_copy(update={"hidden": True}), as_json)


@command.command("unhide", epilog=examples("$ cua-train trainings unhide first"))
@_of_training
def unhide(training_name: str, *, as_json: bool) -> None:
    """List a hidden training again."""
    _annotate(training_name, lambda old: old.model_copy(update={"hidden": False}), as_json)


def _annotate(training_name: str, change: "Change", as_json: bool) -> None:  # noqa: FBT001  # a flag of the command line
    from producer.training.kept_trainings import annotate

    name = given_training_name(training_name, "NAME")
    done = annotate(read_installation(os.environ), name, change)
    annotation: dict[str, Any] = done.annotation.model_dump(mode="json")
    if as_json:
        click.echo(json.dumps({"training_name": name, **annotation, "changed": done.changed}))
        return
    shown = {
        "name": annotation["display_name"],
        "tags": ", ".join(annotation["tags"]),
        "note": annotation["note"],
        "hidden": "yes" if annotation["hidden"] else None,
    }
    parts = [f"{field}: {value}" for field, value in shown.items() if value]
    click.echo(f"{name}{'' if done.changed else ' (unchanged)'}: {'; '.join(parts) or 'nothing'}")


def _one_line(argument: str, text: str) -> str:
    text = unicodedata.normalize("NFC", text)
    if any(unicodedata.category(item) in {"Cc", "Zl", "Zp"} for item in text):
        message = f"{argument}: {text!r} has a line break or a control character; remove it"
        raise UsageError(message)
    if len(text) > MAX_NAME:
        message = f"{argument}: {len(text)} characters are too many; at most {MAX_NAME} are allowed"
        raise UsageError(message)
    return text


def _tag(text: str) -> str:
    text = _one_line("TAG", text.strip())
    if not text or "," in text:
        message = f"TAG: {text!r} is not a tag; use text without commas"
        raise UsageError(message)
    return text
