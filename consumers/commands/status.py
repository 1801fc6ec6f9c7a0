"""`cua-project status`: the trainings, how far the tables lag, and what could not be applied."""

import json
import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import rich_click as click

from consumers.commands.duration import Duration
from consumers.errors import LimitExceededError, UnreachableError, UsageError

if TYPE_CHECKING:
    from consumers.status import ProjectionStatus
    from schemas.installation import Installation

MAX_LAG = timedelta(seconds=30)


@click.command()
@click.option(
    "--all",
    "show_all",
    is_flag=True,
    help="List every training, hidden ones too. [default: 10 finished and 50 others]",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as one object.")
@click.option(
    "--check",
    is_flag=True,
    help="Print ok, or one line per reason for an alert and exit with 6.",
)
@click.option(
    "--max-lag",
    type=Duration(),
    metavar="DURATION",
    help="With --check: allowed age of the oldest event not yet in the tables. [default: 30s]",
)
def command(*, show_all: bool, as_json: bool, check: bool, max_lag: timedelta | None) -> None:
    """Show every training, how far the tables lag behind the log, and what could not be applied.

    Unfinished trainings come first, then the newest finished ones. --check is for alerts: exit 0
    if all is well; 6 if the tables are behind, a training is stale (no heartbeat for 60 s), or
    records are parked or wait in this home's spool; 5 if the log or the database is unreachable; 4
    if the tables belong to another log or version.

    Examples:
        cua-project status
        cua-project status --check --max-lag 5m
        cua-project status --json | jq .lag_events
    """
    if max_lag is not None and not check:
        message = "--max-lag belongs to --check; give both"
        raise UsageError(message)
    status = _read(is_brief=check)
    if check:
        _check(status, max_lag if max_lag is not None else MAX_LAG, as_json=as_json)
    elif as_json:
        click.echo(json.dumps(_report(status)))
    else:
        from consumers.commands.status_text import print_status

        print_status(status, show_all=show_all)


def _read(*, is_brief: bool) -> "ProjectionStatus":
    from consumers.database.location import is_embedded, resolve_database
    from consumers.database.readiness import make_ready, naming_what_is_missing
    from consumers.home import open_installation
    from consumers.log.open import open_reader
    from consumers.status import read_status

    installation = open_installation(os.environ)
    # The log first: without Kafka there is no need to start the embedded database.
    try:
        reader = open_reader(installation)
    except UnreachableError as error:
        raise _with_waiting(error, installation) from None
    try:
        url = resolve_database(os.environ, installation)
        make_ready(url, embedded=is_embedded(os.environ))
        with naming_what_is_missing(url):
            return read_status(reader, url, installation=installation, is_brief=is_brief)
    finally:
        reader.close()


def _with_waiting(error: UnreachableError, installation: "Installation") -> UnreachableError:
    """The error of a Kafka that is away, with what of this home waits for it."""
    from consumers.log.waiting import read_waiting

    if installation.kafka_bootstrap_servers is None:
        return error
    waiting = read_waiting(installation.local_log_path, None, datetime.now(UTC))
    if not waiting.num_records:
        return error
    return UnreachableError(f"{error} {waiting.num_records:,} events of this home wait for it")


def _check(status: "ProjectionStatus", max_lag: timedelta, *, as_json: bool) -> None:
    from consumers.console import sanitize
    from consumers.status import alerts

    reasons = alerts(status, max_lag)
    if as_json:
        click.echo(json.dumps({"ok": not reasons, "reasons": reasons}))
    else:
        for line in reasons or ["ok"]:
            click.echo(sanitize(line))
    if reasons:
        raise SystemExit(LimitExceededError.exit_code)


def _report(status: "ProjectionStatus") -> dict[str, object]:
    assert status.disk is not None  # noqa: S101  # asked for
    return {
        "log": {
            "kind": status.log_kind,
            "partitions": [partition._asdict() for partition in status.partitions],
        },
        "lag_events": status.lag_events,
        "lag_seconds": status.lag_seconds,
        "needs_rebuild": status.needs_rebuild,
        **status.unapplied._asdict(),
        "projector": status.projector._asdict(),
        "disk": status.disk._asdict(),
        "leaked_devices": status.leaked_devices,
        "trainings": [training._asdict() for training in status.trainings],
        "held_in_spool": [
            {**stream._asdict(), "since": stream.since.isoformat()}
            for stream in status.held_in_spool
        ],
        "waiting_in_spool": status.waiting.num_records,
        "parked_streams": [
            {**stream._asdict(), "since": stream.since.isoformat()}
            for stream in status.parked.first
        ],
        "num_parked_streams": status.parked.total,
    }
