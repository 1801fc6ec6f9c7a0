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

from consumers.commands.parked_output import print_array, print_unapplied, unapplied_json
from consumers.commands.unapplied_options import take_filter, unapplied_options
from consumers.console import is_terminal, sanitize
from consumers.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from consumers.projection.decisions import Decision
    from consumers.projection.operators import Operator, RetryResult
    from consumers.projection.unapplied_filter import UnappliedFilter
    from consumers.projection.unapplied_records import UnappliedCount

logger = logging.getLogger(__name__)

LISTED = 100
"""Records of a list, unless more are asked for."""
MAX_REASON_CHARS = 1_000


@contextmanager
def _operator() -> Iterator["Operator"]:
    from consumers.database.connection import connected, join_group, session_group
    from consumers.database.lease import new_holder
    from consumers.database.location import is_embedded, resolve_database
    from consumers.database.readiness import make_ready
    from consumers.home import open_installation
    from consumers.projection.lock_watch import LockWatch
    from consumers.projection.operators import OPERATOR_SETTINGS, Operator
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
        yield Operator(connection, SCHEMA, watch=watch)


def _report(result: "RetryResult", *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(result._asdict()))
    else:
        click.echo(
            f"streams tried: {result.streams}, events applied: {result.events}, records still"
            f" parked: {result.still_parked}"
        )


class ParkedGroup(click.RichGroup):
    """Takes `redrive` for `retry` too."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name; None if it does not exist."""
        return super().get_command(ctx, "retry" if cmd_name == "redrive" else cmd_name)


@click.group(cls=ParkedGroup)
def command() -> None:
    """List records that are not applied, try them again or give them up.

    A record that cannot be applied is parked together with everything later in its stream; other
    streams go on.

    Examples:
        cua-project parked list
        cua-project parked show cua.rollouts/3@1841
        cua-project parked retry
        cua-project parked drop cua.rollouts/3@1841 --reason "broken build"
        cua-project parked drop --undo rollout/2f0c...
    """


@command.command("list")
@click.option(
    "--state",
    type=click.Choice(["waiting", "parked", "refused"]),
    help="Only records in this state. [default: all]",
)
@unapplied_options
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
    state: str | None,
    limit: int,
    everything: bool,
    as_json: bool,
    **options: str | None,
) -> None:
    """List records that are not applied; the first 100.

    waiting: a record before it in its stream is missing; it is applied when that one comes.
    parked: it cannot be applied, or is behind such a record; an operator has to look. refused: it
    will not be applied, because an old owner of the stream wrote it, it is outside of its stream's
    home partition, or an operator gave it up (`parked drop --rest`).

    `cua-project tail --type 'cua.operator.*'` shows who gave up what, when and why.
    """
    wanted = take_filter(options, state)
    with _operator() as operator:
        wanted = operator.resolve(wanted)
        pages = operator.unapplied_pages(wanted, None if everything else limit)
        num_left = 0 if everything else operator.count_unapplied(wanted).records - limit
        if as_json:
            print_array(map(unapplied_json, chain.from_iterable(pages)))
        elif not print_unapplied(pages):
            logger.info("no unapplied record matches")
    if num_left > 0:
        logger.warning("%s more records are not listed; --all lists them", f"{num_left:,}")


@command.command()
@click.argument("record", metavar="RECORD")
@click.option("--json", "as_json", is_flag=True, help="Print one object, the value as text.")
def show(record: str, *, as_json: bool) -> None:
    """Show one RECORD (topic/partition@offset) that is not applied, with its value.

    Decisions name a record by `value_sha256`: `cua-project tail --type 'cua.operator.*'`.
    """
    from schemas.decision import value_hash

    with _operator() as operator:
        summary, value = operator.show(record)
    text = value.decode(errors="replace")
    facts = unapplied_json(summary) | {"value_sha256": value_hash(value)}
    if as_json:
        click.echo(json.dumps(facts | {"value": text}))
        return
    for name, content in facts.items():
        click.echo(sanitize(f"{name}: {content}"))
    click.echo("\n".join(map(sanitize, text.splitlines())) if is_terminal() else text)


@command.command()
@click.argument("streams", nargs=-1, metavar="[STREAM]...")
@unapplied_options
@click.option("--dry-run", is_flag=True, help="Only count them.")
@click.option(
    "--json", "as_json", is_flag=True, help='Print {"streams", "events", "still_parked"}.'
)
def retry(streams: tuple[str, ...], *, dry_run: bool, as_json: bool, **options: str | None) -> None:
    """Try parked records again: those of the named streams (rollout/<uuid>), or all.

    With a filter: the streams that have a parked record which it means.
    """
    wanted = take_filter(options)
    if streams and (dry_run or not wanted.is_everything):
        message = "name streams, or give a filter or --dry-run; not both"
        raise UsageError(message)
    with _operator() as operator:
        wanted = operator.resolve(wanted)
        if dry_run:
            found = operator.count_unapplied(wanted._replace(state="parked"))
            _report_count(found, "parked", as_json=as_json)
            return
        if wanted.is_everything:
            result = operator.retry(list(streams) or None)
        else:
            result = operator.retry_matching(wanted)
    if streams and not result.streams:
        message = (
            f"nothing is parked in {', '.join(streams)}; `cua-project parked list` shows the"
            " streams"
        )
        raise NotFoundError(message)
    _report(result, as_json=as_json)


@command.command()
@click.argument("what", metavar="[RECORD|STREAM]", required=False)
@unapplied_options
@click.option("--rest", is_flag=True, help="Give up RECORD and everything after it in its stream.")
@click.option("--gap", is_flag=True, help="Give up the missing records that STREAM waits for.")
@click.option("--undo", is_flag=True, help="Undo --rest: try again the records that it gave up.")
@click.option(
    "--reason",
    metavar="TEXT",
    help=f"Recorded with the decision; at most {MAX_REASON_CHARS:,} characters.",
)
@click.option("--dry-run", is_flag=True, help="Only count the records that a filter matches.")
@click.option("-y", "--yes", is_flag=True, help="With a filter: do not ask for confirmation.")
@click.option(
    "--json", "as_json", is_flag=True, help='Print {"decisions", "streams", "positions"}.'
)
def drop(
    what: str | None,
    *,
    rest: bool,
    gap: bool,
    undo: bool,
    reason: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **options: str | None,
) -> None:
    """Give up a parked RECORD (topic/partition@offset) and apply what follows it in its stream.

    With --gap: give up the gap of a STREAM (rollout/<uuid>). With a filter instead of either: give
    up every record that it matches, except those that only wait behind a parked one. Asks first.
    Only --rest can be undone: --undo takes a STREAM or a filter.

    The decision is an event in the log, in the stream that it concerns. Projectors apply it when
    they read it, and so do rebuilds and trainers.

    Examples:
        cua-project parked drop cua.rollouts/3@1841 --reason "broken build"
        cua-project parked drop --undo rollout/2f0c...
        cua-project parked drop --training demo --kind invalid --dry-run
        cua-project parked drop --training demo --kind invalid --yes
        cua-project parked drop --training demo --undo --dry-run
    """
    wanted = take_filter(options)
    if reason is not None and len(reason) > MAX_REASON_CHARS:
        message = (
            f"--reason has {len(reason):,} characters; give at most {MAX_REASON_CHARS:,}, for"
            " example where the whole story is"
        )
        raise UsageError(message)
    _check_drop(what, wanted, rest=rest, gap=gap, undo=undo, dry_run=dry_run, yes=yes)
    from consumers.projection import decisions
    from consumers.projection.positions import read_state
    from consumers.tables import SCHEMA

    made_by = getpass.getuser()
    with _operator() as operator:
        if what is None:
            wanted = operator.resolve(wanted)
            if undo:
                found = operator.count_unapplied(decisions.dropped_rests(wanted))
                question = f"Try again what `drop --rest` gave up of {found.streams:,} streams?"
            else:
                parked = wanted._replace(state="parked")
                found = operator.count_unapplied(parked, decisions.CULPRITS)
                question = f"Give up {found.records:,} records of {found.streams:,} streams?"
            if dry_run:
                _report_count(found, "dropped" if undo else "parked", as_json=as_json)
                return
            if found.records and not yes:
                click.confirm(question, abort=True, err=True)
        with operator.connection, operator.connection.cursor() as cursor:
            log_id = read_state(cursor, SCHEMA).log_id
            if what is None and undo:
                decided = decisions.undo_matching(cursor, wanted, made_by=made_by, reason=reason)
            elif what is None:
                decided = decisions.drop_matching(
                    cursor, wanted, rest=rest, made_by=made_by, reason=reason
                )
            elif gap:
                decided = [decisions.drop_gap(cursor, what, made_by=made_by, reason=reason)]
            elif undo:
                decided = [decisions.undo_rest(cursor, what, made_by=made_by, reason=reason)]
            else:
                decided = [
                    decisions.drop_record(cursor, what, rest=rest, made_by=made_by, reason=reason)
                ]
    nothing = (
        "no dropped stream matches; nothing was taken back"
        if undo
        else "no parked record matches; nothing was given up"
    )
    _append(decided, log_id, nothing, as_json=as_json)


def _check_drop(
    what: str | None,
    wanted: "UnappliedFilter",
    *,
    rest: bool,
    gap: bool,
    undo: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """UsageError for options that exclude each other."""
    if rest + gap + undo > 1:
        message = "--rest, --gap and --undo exclude each other; give one of them"
        raise UsageError(message)
    if (what is None) == wanted.is_everything:
        message = (
            "give a RECORD or STREAM, or say which records with --training, --kind or --type; not"
            " both"
        )
        raise UsageError(message)
    if what is not None and dry_run:
        message = "--dry-run counts what a filter matches; give a filter, or leave --dry-run out"
        raise UsageError(message)
    if what is None and gap:
        message = "--gap is for one STREAM; name it"
        raise UsageError(message)
    if undo and wanted.kind is not None:
        message = "--undo applies to records of every kind that `drop --rest` gave up; omit --kind"
        raise UsageError(message)
    if what is None and not (dry_run or yes) and not sys.stdin.isatty():
        message = "drop with a filter asks first, and there is no terminal; give --yes or --dry-run"
        raise UsageError(message)


def _append(
    decisions: "Sequence[Decision]", log_id: str | None, nothing: str, *, as_json: bool
) -> None:
    """Into the log, and say where; `nothing` if there are none."""
    from consumers.shipping import append_decisions

    appended = append_decisions(decisions, log_id) if decisions else []
    streams = {decision.stream for decision in decisions}
    if as_json:
        positions = [at._asdict() for at in appended]
        answer = {"decisions": len(appended), "streams": len(streams), "positions": positions}
        click.echo(json.dumps(answer))
        return
    if not appended:
        click.echo(nothing)
        return
    last = "{}/{}@{}".format(*appended[-1])
    click.echo(
        f"decisions in the log: {len(appended)}, about streams: {len(streams)}; the last is {last}."
        " Projectors apply them when they read them"
    )


def _report_count(found: "UnappliedCount", state: str, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"dry_run": True} | found._asdict()))
    else:
        click.echo(f"{state} records: {found.records:,}, of streams: {found.streams:,}")
