"""`cua-project parked`: records that were not applied; try them again or give them up."""

import getpass
import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING

import rich_click as click

from consumers.commands.held_options import held_options, take_filter
from consumers.commands.parked_output import (
    abandoned_json,
    held_json,
    print_abandoned,
    print_array,
    print_held,
)
from consumers.console import is_terminal, sanitize
from consumers.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from consumers.projection.held_filter import HeldFilter
    from consumers.projection.held_records import HeldCount
    from consumers.projection.redrive import Operator, Redriven

logger = logging.getLogger(__name__)

LISTED = 100
"""Records of a list, unless more are asked for."""


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
@held_options
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    default=LISTED,
    show_default=True,
    help="How many records.",
)
@click.option("--all", "everything", is_flag=True, help="Every record.")
@click.option("--json", "as_json", is_flag=True, help="Print an array of objects.")
def list_command(
    *,
    held_as: str | None,
    limit: int,
    everything: bool,
    as_json: bool,
    **options: str | None,
) -> None:
    """List records that are parked, wait for a gap to fill, or were refused; the first 100.

    Streams whose rest was given up (`parked drop --rest`) are listed too, with since when and by
    whom, unless a filter is given.
    """
    from consumers.projection.abandoned import abandoned_streams
    from consumers.projection.held_filter import HeldFilter

    wanted = take_filter(options, held_as)
    with _operator() as operator:
        with operator.connection, operator.connection.cursor() as cursor:
            takes = wanted in {HeldFilter(), HeldFilter("abandoned")}
            abandoned = abandoned_streams(cursor) if takes else []
        wanted = operator.resolve(wanted)
        pages = operator.held_pages(wanted, None if everything else limit)
        held = chain.from_iterable(pages)
        listed = abandoned if everything else abandoned[:limit]
        num_left = 0 if everything else operator.count_held(wanted) - limit
        if as_json:
            print_array(chain(map(held_json, held), map(abandoned_json, listed)))
        elif not print_held(pages) and not abandoned:
            logger.info("no records are held")
    if not as_json:
        print_abandoned(listed)
    for number, what in (
        (num_left, "records"),
        (len(abandoned) - len(listed), "abandoned streams"),
    ):
        if number > 0:
            logger.warning("%s more %s are not listed; --all lists them", f"{number:,}", what)


@command.command()
@click.argument("record", metavar="RECORD")
@click.option("--json", "as_json", is_flag=True, help="Print one object, the value as text.")
def show(record: str, *, as_json: bool) -> None:
    """Show one held RECORD (topic/partition@offset) with its value."""
    with _operator() as operator:
        summary, value = operator.show(record)
    text = value.decode(errors="replace")
    if as_json:
        click.echo(json.dumps(held_json(summary) | {"value": text}))
        return
    for name, content in held_json(summary).items():
        click.echo(sanitize(f"{name}: {content}"))
    click.echo("\n".join(map(sanitize, text.splitlines())) if is_terminal() else text)


@command.command()
@click.argument("streams", nargs=-1, metavar="[STREAM]...")
@held_options
@click.option("--dry-run", is_flag=True, help="Only count them.")
@click.option(
    "--json", "as_json", is_flag=True, help='Print {"streams", "events", "still_parked"}.'
)
def redrive(
    streams: tuple[str, ...], *, dry_run: bool, as_json: bool, **options: str | None
) -> None:
    """Try parked records again: those of the named streams (rollout/<uuid>), or all.

    With a filter: the streams that have a parked record which it means.
    """
    from consumers.projection.bulk import count, redrive_matching

    wanted = take_filter(options)
    if streams and (dry_run or not wanted.is_everything):
        message = "name streams, or give a filter or --dry-run; not both"
        raise UsageError(message)
    with _operator() as operator:
        wanted = operator.resolve(wanted)
        if dry_run:
            _report_count(count(operator, wanted), as_json=as_json)
            return
        if wanted.is_everything:
            result = operator.redrive(list(streams) or None)
        else:
            result = redrive_matching(operator, wanted)
    if streams and not result.streams:
        message = (
            f"nothing is parked in {', '.join(streams)}; `cua-project parked list` shows the"
            " streams"
        )
        raise NotFoundError(message)
    _report(result, as_json=as_json)


@command.command()
@click.argument("what", metavar="[RECORD|STREAM]", required=False)
@held_options
@click.option("--rest", is_flag=True, help="Give up RECORD and everything after it in its stream.")
@click.option("--gap", is_flag=True, help="Give up the missing records that STREAM waits for.")
@click.option("--reason", metavar="TEXT", help="Stored with the decision.")
@click.option("--dry-run", is_flag=True, help="Only count what a filter means.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask before giving up what a filter means.")
@click.option(
    "--json", "as_json", is_flag=True, help='Print {"streams", "events", "still_parked"}.'
)
def drop(
    what: str | None,
    *,
    rest: bool,
    gap: bool,
    reason: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **options: str | None,
) -> None:
    """Give up a parked RECORD (topic/partition@offset) and apply what follows it in its stream.

    With --gap: give up the gap of a STREAM (rollout/<uuid>). With a filter instead of either: every
    parked record that it means; a record that only waits behind a parked one is applied instead,
    unless --kind behind is given. Asks first. Rebuilds honour the decisions.

    Examples:
        cua-project parked drop cua.rollouts/3@1841 --reason "broken build"
        cua-project parked drop --training demo --kind invalid --dry-run
        cua-project parked drop --training demo --kind invalid --yes
    """
    if rest and gap:
        message = "--rest and --gap exclude each other; give one of them"
        raise UsageError(message)
    wanted = take_filter(options)
    if (what is None) == wanted.is_everything:
        message = (
            "give a RECORD or STREAM, or say which records with --training, --kind, --matching or"
            " --type; not both"
        )
        raise UsageError(message)
    made_by = getpass.getuser()
    if what is None:
        if gap:
            message = "--gap is for one STREAM; name it"
            raise UsageError(message)
        if not (dry_run or yes or sys.stdin.isatty()):
            message = (
                "drop needs confirmation for many records, and there is no terminal; give --yes or"
                " --dry-run"
            )
            raise UsageError(message)
        _drop_many(wanted, rest=rest, reason=reason, dry_run=dry_run, yes=yes, as_json=as_json)
        return
    with _operator() as operator:
        if gap:
            result = operator.drop_gap(what, made_by=made_by, reason=reason)
        else:
            result = operator.drop_record(what, rest=rest, made_by=made_by, reason=reason)
    _report(result, as_json=as_json)


def _drop_many(
    wanted: "HeldFilter",
    *,
    rest: bool,
    reason: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    from consumers.projection.bulk import count_culprits, drop_matching

    with _operator() as operator:
        wanted = operator.resolve(wanted)
        found = count_culprits(operator, wanted)
        if dry_run:
            _report_count(found, as_json=as_json)
            return
        if found.records and not yes:
            what = f"Give up {found.records:,} records of {found.streams:,} streams?"
            click.confirm(what, abort=True, err=True)
        made_by = getpass.getuser()
        dropped = drop_matching(operator, wanted, rest=rest, made_by=made_by, reason=reason)
    if as_json:
        click.echo(json.dumps(dropped._asdict()))
    else:
        click.echo(
            f"records given up: {dropped.records}, streams: {dropped.streams}, events applied:"
            f" {dropped.events}, records still parked: {dropped.still_parked}"
        )


def _report_count(found: "HeldCount", *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"dry_run": True} | found._asdict()))
    else:
        click.echo(f"parked records: {found.records:,}, of streams: {found.streams:,}")


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
