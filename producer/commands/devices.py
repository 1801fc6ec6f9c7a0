"""`cua-train devices`: list rented devices that exist; close those that nothing uses."""

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import rich_click as click

from producer.commands.options import examples, switch, with_json
from producer.console import print_report, rounded
from producer.errors import CuaTrainError
from schemas.installation import read_installation

if TYPE_CHECKING:
    from producer.training.rented_devices import ListedDevice


@click.group()
def command() -> None:
    """List rented devices that exist; close those that nothing uses.

    Devices are found by the labels that trainings give them. Simulated phones, which end with
    their process, and phones of your own are not listed.
    """


@command.command(
    "list", epilog=examples("$ cua-train devices list", "$ cua-train devices list --json")
)
@with_json
def list_command(*, as_json: bool) -> None:
    """List rented devices that still exist, with their trainings; oldest first."""
    from producer.training.rented_devices import list_devices

    _show(list_devices(read_installation(os.environ), datetime.now(UTC)), as_json=as_json)


@command.command(
    "sweep",
    epilog=examples(
        "$ cua-train devices sweep --dry-run",
        "$ cua-train devices sweep",
        "$ cua-train devices sweep --unknown   # also those of trainings elsewhere",
    ),
)
@switch("--dry-run", "List what would be closed, and close nothing.", "Options")
@switch(
    "--unknown",
    "Also close devices of no training, or of one that is not in this log and may be running"
    " elsewhere.",
    "Options",
)
@with_json
def sweep_command(*, dry_run: bool, unknown: bool, as_json: bool) -> None:
    """Close devices whose training has ended, was interrupted or continues in a later process."""
    from producer.training.rented_devices import UNKNOWN, list_devices, sweep

    found = list_devices(read_installation(os.environ), datetime.now(UTC))
    closable = [
        item for item in found if item.is_left or (unknown and item.training_status == UNKNOWN)
    ]
    if dry_run:
        _show(closable, as_json=as_json)
        return
    swept = sweep(closable)
    if as_json:
        click.echo(json.dumps(rounded([item.as_json() for item in swept]), indent=2))
    else:
        for item in swept:
            if item.failure is None:
                click.echo(f"closed {item.listed.device.device_id}")
        click.echo(f"{len(found) - len(swept)} devices remain", err=True)
    if failures := [item.failure for item in swept if item.failure is not None]:
        raise CuaTrainError("; ".join(failures))


def _show(listed: "Sequence[ListedDevice]", *, as_json: bool) -> None:
    columns = ("device", "type", "status", "training", "training's status", "left", "age (min)")
    rows = [
        [
            *(item.device.device_id, item.device.box_type, item.device.status),
            *(item.device.training, item.training_status, "yes" if item.is_left else ""),
            f"{item.age_s / 60:.0f}",
            item.device.expires_at and f"{item.device.expires_at:%Y-%m-%d %H:%M}",
        ]
        for item in listed
    ]
    values = [item.as_json() for item in listed]
    print_report(values, [*columns, "expires (UTC)"], rows, as_json=as_json)
