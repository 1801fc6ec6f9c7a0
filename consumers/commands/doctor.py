"""`cua-project doctor`: whether this machine has what an installation needs."""

import json
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import rich_click as click

from consumers.errors import CuaProjectError

if TYPE_CHECKING:
    from consumers.doctor.finding import Finding


@click.command()
@click.option("--json", "as_json", is_flag=True, help='Print {"ok", "checks"}.')
def command(*, as_json: bool) -> None:
    """Check disk, packages, GPU, locks, the log, the database and the blobs.

    Each line is ok, a warning or failed, with what to do. Exit 1 when something failed. Changes
    nothing, but starts the embedded database if it is not running.

    Examples:
        cua-project doctor
        cua-project doctor --json | jq '.checks[] | select(.level != "ok")'
    """
    from consumers.console import Cell, Column, print_table

    findings = list(_look())
    has_failed = any(finding.level == "failed" for finding in findings)
    if as_json:
        checks = [finding._asdict() for finding in findings]
        click.echo(json.dumps({"ok": not has_failed, "checks": checks}))
    else:
        styles = {"ok": "green", "warning": "yellow", "failed": "bold red"}
        print_table(
            [Column("check"), Column("is"), Column("found"), Column("do")],
            [
                [
                    finding.check,
                    Cell(finding.level, styles[finding.level]),
                    finding.message,
                    finding.advice or "",
                ]
                for finding in findings
            ],
        )
    if has_failed:
        raise SystemExit(CuaProjectError.exit_code)


def _look() -> "Iterator[Finding]":
    from consumers.doctor import machine, services
    from consumers.home import open_installation

    installation = open_installation(os.environ)
    looks: dict[str, Callable[[], Iterator[Finding]]] = {
        "home": lambda: machine.look_at_home(installation),
        "disk": lambda: machine.look_at_disk(installation),
        "packages": machine.look_at_packages,
        "gpu": machine.look_at_gpu,
        "locks": lambda: machine.look_at_stopped_holders(installation),
        "log": lambda: services.look_at_log(installation),
        "database": lambda: services.look_at_database(os.environ, installation),
        "blobs": lambda: services.look_at_blobs(installation),
    }
    for name, look in looks.items():
        yield from _safely(name, look)


def _safely(name: str, look: "Callable[[], Iterator[Finding]]") -> "Iterator[Finding]":
    """One broken thing does not keep the others from being looked at."""
    from consumers.database.forbidden import forbidden
    from consumers.database.lost_session import lost_session
    from consumers.doctor.finding import failed

    try:
        yield from look()
    except CuaProjectError as error:
        # Our messages say first what is wrong and then what to do.
        text = str(error)
        problem, _, advice = text.partition("; " if "; " in text else ". ")
        yield failed(name, problem, advice or "correct it, then run `cua-project doctor` again")
    except Exception as error:  # noqa: BLE001  # the boundary of one check
        problem, _, advice = (lost_session(error) or forbidden(error) or "").partition("; ")
        text = " ".join(f"{type(error).__name__}: {error}".split())
        yield failed(name, problem or text, advice or "look at it by hand")
