"""`cua-project parked`: records that were not applied; try them again or give them up."""

import getpass
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import rich_click as click

from consumers.console import is_terminal, sanitize
from consumers.errors import NotFoundError

if TYPE_CHECKING:
    from consumers.projection.redrive import HeldSummary, Operator, Redriven

logger = logging.getLogger(__name__)


@contextmanager
def _operator() -> Iterator["Operator"]:
    from consumers.database.connection import connected, join_group, session_group
    from consumers.database.lease import new_holder
    from consumers.database.location import is_embedded, resolve_database
    from consumers.database.readiness import make_ready
    from consumers.home import open_installation
    from consumers.projection.lock_watch import LockWatch
    from consumers.projection.redrive import OPERATOR_SETTINGS, Operator
    from consumers.tables import SCHEMA

    url = resolve_database(os.environ, open_installation(os.environ))
    make_ready(url, embedded=is_embedded(os.environ))
    group = session_group(new_holder())
    with (
        connected(url, "parked", OPERATOR_SETTINGS) as connection,
        LockWatch(url, group) as watch,
    ):
        join_group(connection, group)
        yield Operator(connection, SCHEMA, watch=watch)


def _json(summary: "HeldSummary") -> dict[str, object]:
    times = {"event_time": summary.event_time, "appended_at": summary.appended_at}
    return summary._asdict() | {
        name: None if time is None else time.isoformat() for name, time in times.items()
    }


def _report(result: "Redriven", *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(result._asdict()))
    else:
        click.echo(
            f"streams tried: {result.streams}, events applied: {result.events}, records still"
            f" parked: {result.still_parked}"
        )


@click.group()
def command() -> None:
    """List records that were not applied, try them again or give them up.

    A record that cannot be applied is parked together with everything later in its stream; other
    streams go on.

    Examples:
        cua-project parked list
        cua-project parked show cua.rollouts/3@1841
        cua-project parked redrive
        cua-project parked drop cua.rollouts/3@1841 --reason "broken build"
    """


@command.command("list")
@click.option(
    "--as",
    "held_as",
    type=click.Choice(["parked", "waiting", "refused"]),
    help="Only these. [default: all]",
)
@click.option("--json", "as_json", is_flag=True, help="Print an array of objects.")
def list_command(*, held_as: str | None, as_json: bool) -> None:
    """List records that are parked, wait for a gap to fill, or were refused."""
    with _operator() as operator:
        summaries = operator.list_held(held_as)
    if as_json:
        click.echo(json.dumps([_json(summary) for summary in summaries]))
        return
    by_stream: dict[str, list[HeldSummary]] = {}
    for summary in summaries:
        by_stream.setdefault(summary.stream or "(no stream)", []).append(summary)
    for stream, held in by_stream.items():
        click.echo(sanitize(stream))
        for summary in held:
            name = (
                f"{summary.type} {summary.epoch}/{summary.sequence}"
                if summary.type
                else "unreadable"
            )
            click.echo(sanitize(f"  {summary.held_as}  {summary.id}  {name}: {summary.reason}"))
    if not summaries:
        logger.info("no records are held")


@command.command()
@click.argument("record", metavar="RECORD")
@click.option("--json", "as_json", is_flag=True, help="Print one object, the value as text.")
def show(record: str, *, as_json: bool) -> None:
    """Show one held RECORD (topic/partition@offset) with its value."""
    with _operator() as operator:
        summary, value = operator.show(record)
    text = value.decode(errors="replace")
    if as_json:
        click.echo(json.dumps(_json(summary) | {"value": text}))
        return
    for name, content in _json(summary).items():
        click.echo(sanitize(f"{name}: {content}"))
    click.echo("\n".join(map(sanitize, text.splitlines())) if is_terminal() else text)


@command.command()
@click.argument("streams", nargs=-1, metavar="[STREAM]...")
@click.option(
    "--json", "as_json", is_flag=True, help='Print {"streams", "events", "still_parked"}.'
)
def redrive(streams: tuple[str, ...], *, as_json: bool) -> None:
    """Try parked records again: those of the named streams (rollout/<uuid>), or all."""
    with _operator() as operator:
        result = operator.redrive(list(streams) or None)
    if streams and not result.streams:
        message = (
            f"nothing is parked in {', '.join(streams)}; `cua-project parked list` shows the"
            " streams"
        )
        raise NotFoundError(message)
    _report(result, as_json=as_json)


@command.command()
@click.argument("what", metavar="RECORD|STREAM")
@click.option("--rest", is_flag=True, help="Give up RECORD and everything after it in its stream.")
@click.option("--gap", is_flag=True, help="Give up the missing records that STREAM waits for.")
@click.option("--reason", metavar="TEXT", help="Stored with the decision.")
@click.option(
    "--json", "as_json", is_flag=True, help='Print {"streams", "events", "still_parked"}.'
)
def drop(what: str, *, rest: bool, gap: bool, reason: str | None, as_json: bool) -> None:
    """Give up a parked RECORD (topic/partition@offset) and apply what follows it in its stream.

    With --gap: give up the gap of a STREAM (rollout/<uuid>). Rebuilds honour the decision.
    """
    from consumers.errors import UsageError

    if rest and gap:
        message = "--rest and --gap exclude each other; give one of them"
        raise UsageError(message)
    made_by = getpass.getuser()
    with _operator() as operator:
        if gap:
            result = operator.drop_gap(what, made_by=made_by, reason=reason)
        else:
            result = operator.drop_record(what, rest=rest, made_by=made_by, reason=reason)
    _report(result, as_json=as_json)
