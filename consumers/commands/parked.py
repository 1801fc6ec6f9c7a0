"""`cua-project parked`: records that were not applied; try them again or give them up."""

import getpass
import json
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING

import rich_click as click

from consumers.console import is_terminal, sanitize
from consumers.errors import NotFoundError

if TYPE_CHECKING:
    from consumers.projection.abandoned import AbandonedStream
    from consumers.projection.redrive import HeldSummary, Operator, Redriven

logger = logging.getLogger(__name__)


@contextmanager
def _operator() -> Iterator["Operator"]:
    from consumers.database.connection import connected, join_group, session_group
    from consumers.database.lease import new_holder
    from consumers.database.location import is_embedded, resolve_database
    from consumers.database.readiness import make_ready
    from consumers.home import open_installation
    from consumers.projection.drops_file import copy_drops
    from consumers.projection.lock_watch import LockWatch
    from consumers.projection.redrive import OPERATOR_SETTINGS, Operator
    from consumers.tables import SCHEMA

    installation = open_installation(os.environ)
    url = resolve_database(os.environ, installation)
    make_ready(url, embedded=is_embedded(os.environ))
    group = session_group(new_holder())
    with (
        connected(url, "parked", OPERATOR_SETTINGS) as connection,
        LockWatch(url, group) as watch,
    ):
        join_group(connection, group)
        try:
            yield Operator(connection, SCHEMA, watch=watch)
        finally:
            # Also after an interruption: what is decided by then must be known to a trainer.
            if not connection.closed:
                connection.rollback()
                with connection, connection.cursor() as cursor:
                    copy_drops(cursor, installation.operator_drops_path)


def _json(summary: "HeldSummary") -> dict[str, object]:
    times = {
        "event_time": summary.event_time,
        "appended_at": summary.appended_at,
        "since": summary.since,
    }
    return summary._asdict() | {
        name: None if time is None else time.isoformat() for name, time in times.items()
    }


def _abandoned_json(abandoned: "AbandonedStream") -> dict[str, object]:
    """With the keys of a held record; there is none to name."""
    from consumers.projection.held_records import HeldSummary

    since = None if abandoned.since is None else abandoned.since.isoformat()
    return dict.fromkeys(HeldSummary._fields) | {
        "held_as": "abandoned",
        "kind": "rest",
        "reason": abandoned.reason or "its rest was given up",
        "stream": abandoned.stream,
        "epoch": abandoned.epoch,
        "sequence": abandoned.sequence,
        "since": since,
        "made_by": abandoned.made_by,
    }


def _print_array(entries: Iterable[dict[str, object]]) -> None:
    """As json.dumps writes the whole, which may be hundreds of megabytes, one after the other."""
    out = sys.stdout
    before = "["
    for entry in entries:
        out.write(before + json.dumps(entry))
        before = ", "
    out.write("[]\n" if before == "[" else "]\n")
    out.flush()


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
        cua-project parked undrop rollout/2f0c...
    """


@command.command("list")
@click.option(
    "--as",
    "held_as",
    type=click.Choice(["parked", "waiting", "refused", "abandoned"]),
    help="Only these. [default: all]",
)
@click.option("--json", "as_json", is_flag=True, help="Print an array of objects.")
def list_command(*, held_as: str | None, as_json: bool) -> None:
    """List records that are parked, wait for a gap to fill, or were refused.

    Streams whose rest was given up (`parked drop --rest`) are listed too, with since when and by
    whom.
    """
    from consumers.projection.abandoned import abandoned_streams

    with _operator() as operator:
        summaries = operator.list_held(held_as)
        with operator.connection, operator.connection.cursor() as cursor:
            abandoned = abandoned_streams(cursor) if held_as in {None, "abandoned"} else []
    if as_json:
        _print_array(chain(map(_json, summaries), map(_abandoned_json, abandoned)))
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
    for one in abandoned:
        click.echo(sanitize(one.stream))
        since = "" if one.since is None else f" since {one.since:%Y-%m-%d %H:%M:%S}"
        by = "" if one.made_by is None else f" by {one.made_by}"
        reason = "" if one.reason is None else f": {one.reason}"
        after = f"epoch {one.epoch}, sequence {one.sequence}"
        click.echo(sanitize(f"  abandoned{since}{by}, after {after}{reason}"))
    if not summaries and not abandoned:
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


@command.command()
@click.option("--json", "as_json", is_flag=True, help='Print {"fetched"}.')
def sync(*, as_json: bool) -> None:
    """Fetch operators' decisions from the database into CUA_HOME, where trainers read them.

    A training that is continued does so itself when DATABASE_URL or POSTGRES_* is set.
    Never makes a database; where there is none, there are no decisions. A newer version's is read,
    too: a trainer may be older than the projector.
    """
    from consumers.database.location import is_embedded, resolve_database
    from consumers.home import open_installation
    from consumers.projection.drops_file import fetch_drops

    installation = open_installation(os.environ)
    fetched = 0
    if not is_embedded(os.environ) or installation.database_dir.is_dir():
        url = resolve_database(os.environ, installation)
        fetched = fetch_drops(url, installation.operator_drops_path)
    click.echo(json.dumps({"fetched": fetched}) if as_json else f"new decisions: {fetched}")


@command.command()
@click.argument("stream", metavar="STREAM")
@click.option(
    "--json", "as_json", is_flag=True, help='Print {"streams", "events", "still_parked"}.'
)
def undrop(stream: str, *, as_json: bool) -> None:
    """Take back `drop --rest`: read the abandoned STREAM again from the log and apply it.

    To take back another drop, set undone_at in its row of cua_ops.operator_drop, and rebuild.
    """
    from consumers.home import open_installation
    from consumers.log.open import open_reader
    from consumers.projection.abandoned import take_up_again

    installation = open_installation(os.environ)
    reader = open_reader(installation)
    try:
        with _operator() as operator:
            result = take_up_again(
                operator,
                reader,
                stream,
                topic_prefix=installation.topic_prefix,
                made_by=getpass.getuser(),
            )
    finally:
        reader.close()
    _report(result, as_json=as_json)
