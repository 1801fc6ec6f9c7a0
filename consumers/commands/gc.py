"""`cua-project gc`: delete what nothing needs any more."""

import json
import logging
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from consumers.errors import UsageError

if TYPE_CHECKING:
    from consumers.garbage.collection import Found

logger = logging.getLogger(__name__)

PARTS = ("blobs", "spool")


@click.command()
@click.option("--dry-run", "-n", is_flag=True, help="Print what would be deleted; delete nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option(
    "--only",
    type=click.Choice(PARTS),
    metavar="blobs|spool",
    multiple=True,
    help="Delete only from this part. Repeatable. [default: all]",
)
@click.option(
    "--keep-days",
    type=click.IntRange(0, 36500),
    metavar="DAYS",
    default=7,
    show_default=True,
    help="Days to keep spooled records after Kafka acknowledged them.",
)
@click.option(
    "--store-is-ours",
    is_flag=True,
    help=(
        "Confirm that no other installation uses CUA_BLOBS; needed if that is outside of CUA_HOME."
    ),
)
@click.option(
    "--archive",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Archive that has the beginning of the log, made by `cua-project archive`.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one object with counts and bytes.")
def command(
    *,
    dry_run: bool,
    yes: bool,
    only: tuple[str, ...],
    keep_days: int,
    store_is_ours: bool,
    archive: Path | None,
    as_json: bool,
) -> None:
    """Delete what nothing needs: blobs that no event names, and spooled records that Kafka has.

    Reads the whole log and this machine's spool to find the blobs that are named. Blobs that a
    saved state names are kept too, and so are those of the last hour. Asks before it deletes.
    Interrupted, it has deleted a part of that, and nothing else.

    Examples:
        cua-project gc --dry-run
        cua-project gc --yes --only blobs
    """
    if not (dry_run or yes or sys.stdin.isatty()):
        message = "gc needs confirmation, and there is no terminal; give --yes or --dry-run"
        raise UsageError(message)
    from consumers.console import format_bytes
    from consumers.garbage.collection import Collection
    from consumers.home import open_installation

    collection = Collection(open_installation(os.environ), only or PARTS, archive)
    try:
        if not dry_run:
            collection.require_own_store(is_ours=store_is_ours)
        found = collection.find(keep=timedelta(days=keep_days))
        if not as_json:
            for line in _lines(found):
                click.echo(line)
        is_deleted = not dry_run and bool(found.size or found.count)
        if is_deleted:
            if not yes:
                click.confirm(f"Delete {format_bytes(found.size)}?", abort=True, err=True)
            found = collection.delete(found)
            logger.info("deleted %s", format_bytes(found.size))
    finally:
        collection.close()
    if as_json:
        click.echo(json.dumps({"dry_run": dry_run, "deleted": is_deleted, **found.report()}))


def _lines(found: "Found") -> list[str]:
    from consumers.console import format_bytes

    names = {
        "blobs": ("blobs", "that no event names"),
        "spool": ("records", "of the spool, shipped"),
    }
    return [
        f"{part:<9} {amount.num_things:,} {names[part][0]} {names[part][1]},"
        f" {format_bytes(amount.bytes)}"
        for part, amount in found.parts.items()
    ]
