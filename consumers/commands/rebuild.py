"""`cua-project rebuild`: make the tables again from the log."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

if TYPE_CHECKING:
    from consumers.log.reader import LogReader
    from consumers.progress import ReplayProgress
    from consumers.rebuild.rebuild import RebuildReport


@click.command()
@click.option(
    "--check", is_flag=True, help="Only compare; exit 4 when the tables differ from the log."
)
@click.option(
    "--run", "run_name", metavar="NAME", help="Build only this training, into a separate schema."
)
@click.option(
    "--until",
    metavar="TIME|POSITIONS",
    help=(
        "Build from the records before a time (2026-03-01T12:00:00Z) or before positions"
        " (topic/partition=offset,...), into a separate schema."
    ),
)
@click.option(
    "--into",
    "schema",
    metavar="SCHEMA",
    help=(
        "Name of the schema that --run or --until builds. [default: cua_run, cua_until or"
        " cua_run_until]"
    ),
)
@click.option(
    "--drop",
    "dropped",
    metavar="SCHEMA",
    help="Remove a schema that --run or --until built.",
)
@click.option(
    "--from-shorter-log",
    is_flag=True,
    help=(
        "Rebuild even though the log lacks records that the tables have read, such as one restored"
        " from an older backup; rows that only those records gave are deleted."
    ),
)
@click.option(
    "--adopt-log",
    is_flag=True,
    help=(
        "Rebuild even though the tables were made from another log; rows that only that log gave"
        " are deleted."
    ),
)
@click.option(
    "--archive",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Archive that has the beginning of the log, made by `cua-project archive`.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help=(
        'Print {"events", "seconds", "equal", "changed", "changed_rows", "tables", "different",'
        ' "missing", "was_empty", "schema", "positions"}; with --drop {"dropped"}.'
    ),
)
def command(
    *,
    check: bool,
    run_name: str | None,
    until: str | None,
    schema: str | None,
    dropped: str | None,
    from_shorter_log: bool,
    adopt_log: bool,
    archive: Path | None,
    as_json: bool,
) -> None:
    """Replay the log, compare, and correct the rows that differ.

    Readers and running projectors can keep running. Views, indexes, grants and columns that users
    added stay. Missing parts of our tables are recreated. Waits while Kafka is away. If it is
    interrupted, no row has changed.

    Examples:
        cua-project rebuild
        cua-project rebuild --check
        cua-project rebuild --run demo --into only_demo
        cua-project rebuild --until 2026-03-01T12:00:00Z
        cua-project rebuild --drop only_demo
    """
    from consumers.archive.open import open_with_archive
    from consumers.database.location import is_embedded, resolve_database
    from consumers.database.readiness import make_ready
    from consumers.errors import MismatchError, UsageError
    from consumers.fold.fold import reduce_gc_frequency
    from consumers.home import open_installation
    from consumers.progress import ReplayProgress
    from consumers.rebuild.built import drop_built
    from consumers.rebuild.rebuild import compare, rebuild

    is_partial = run_name is not None or until is not None
    _refuse_contradictions(
        [check, is_partial, dropped is not None],
        {"--from-shorter-log": from_shorter_log, "--adopt-log": adopt_log},
    )
    if schema is not None and not is_partial:
        message = "--into names the schema for --run or --until; give one of them too"
        raise UsageError(message)
    installation = open_installation(os.environ)
    url = resolve_database(os.environ, installation)
    make_ready(url, embedded=is_embedded(os.environ), mends=not is_partial)
    if dropped is not None:
        drop_built(url, dropped)
        _print_dropped(dropped, as_json=as_json)
        return
    reduce_gc_frequency()
    reader = open_with_archive(installation, archive)
    try:
        with ReplayProgress() as progress:
            if is_partial:
                report = _build_into(
                    *(reader, url, schema, progress),
                    topic_prefix=installation.topic_prefix,
                    run_name=run_name,
                    until=until,
                )
            elif check:
                report = compare(reader, url, progress=progress)
            else:
                report = rebuild(
                    *(reader, url),
                    from_shorter_log=from_shorter_log,
                    adopt_log=adopt_log,
                    progress=progress,
                )
    finally:
        reader.close()
    print_report(report, url, check=check, as_json=as_json)
    if check and not report.equal:
        raise MismatchError(_difference(report))


def _refuse_contradictions(instead: list[bool], of_live: dict[str, bool]) -> None:
    """UsageError. `instead`: of rebuilding the live tables; `of_live`: flags for that alone."""
    from consumers.errors import UsageError

    if sum(instead) > 1:
        message = "--check, --drop and --run/--until exclude each other; give one of them"
        raise UsageError(message)
    if any(instead) and (given := [flag for flag, is_given in of_live.items() if is_given]):
        message = f"{given[0]} belongs to a rebuild of the live tables; leave it out"
        raise UsageError(message)


def _difference(report: "RebuildReport") -> str:
    if report.missing:
        rows = [f"rows of {', '.join(report.changed_rows)} differ"] if report.changed else []
        found = "; ".join([*report.missing, *rows])
        return f"{found}; `cua-project rebuild` repairs the tables"
    names = ", ".join(report.different)
    differ = f"tables {names} differ" if len(report.different) > 1 else f"table {names} differs"
    return f"the {differ} from the log; `cua-project verify` lists the rows"


def _build_into(
    reader: "LogReader",
    url: str,
    schema: str | None,
    progress: "ReplayProgress",
    *,
    topic_prefix: str,
    run_name: str | None,
    until: str | None,
) -> "RebuildReport":
    from consumers.rebuild.rebuild import build_into
    from consumers.rebuild.until import parse_until
    from consumers.tail.trainings import normalize_name, require_training
    from schemas.catalogue import TOPICS

    if run_name is not None:
        run_name = normalize_name(run_name)
        require_training(reader, topic_prefix + TOPICS["training"], run_name)
    parts = ["cua", *(["run"] if run_name else []), *(["until"] if until else [])]
    positions = None if until is None else parse_until(until, reader)
    return build_into(
        reader,
        url,
        schema or "_".join(parts),
        run_name=run_name,
        until=positions,
        progress=progress,
    )


def print_report(report: "RebuildReport", url: str, *, check: bool, as_json: bool) -> None:
    """The summary; without what only the database knows when that is away by now."""
    from consumers.rebuild.until import format_positions
    from consumers.status.gaps import gaps_at_end
    from consumers.tables import SCHEMA

    positions = format_positions(report.positions)
    if as_json:
        summary = report._asdict() | {
            "positions": positions,
            "seconds": round(report.seconds, 3),
        }
        click.echo(json.dumps(summary))
        return
    num_rows = sum(report.tables.values())
    lines = [f"{report.events:,} events, {num_rows:,} rows in {report.seconds:.1f} s"]
    if check:
        outcome = "equal to" if report.equal else "different from"
        changed = f" ({_by_table(report)})" if report.changed else ""
        lines.append(f"the tables are {outcome} what the log gives{changed}; nothing was changed")
    elif report.schema == SCHEMA:
        lines += _outcome(report, num_rows)
        if (gaps := gaps_at_end(url)) is not None and gaps.total:
            lines.append(f"{gaps.describe()}; see `cua-project status --check`")
    else:
        lines.append(f"the tables are in the schema {report.schema}")
    if report.schema != SCHEMA:
        lines.append(f"positions for --until: {positions}")
    click.echo("\n".join(lines))


def _outcome(report: "RebuildReport", num_rows: int) -> list[str]:
    repaired = [f"found and repaired: {'; '.join(report.missing)}"] if report.missing else []
    if report.was_empty:
        return [*repaired, f"the tables were empty; {num_rows:,} rows of the log are in them now"]
    if report.changed:
        differed = (
            "1 row differed and was"
            if report.changed == 1
            else f"{report.changed:,} rows differed and were"
        )
        return [*repaired, f"{differed} corrected ({_by_table(report)})"]
    return [*repaired, "no row differed: the tables are equal to the log"]


def _by_table(report: "RebuildReport") -> str:
    return ", ".join(f"{table} {rows:,}" for table, rows in report.changed_rows.items())


def _print_dropped(schema: str, *, as_json: bool) -> None:
    click.echo(json.dumps({"dropped": schema}) if as_json else f"the schema {schema} is dropped")
