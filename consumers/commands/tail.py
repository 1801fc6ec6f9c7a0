"""`cua-project tail`: look at the log, once or as it grows."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from consumers.errors import UsageError
from consumers.log.open import open_reader
from consumers.log.reader import TopicPartition
from consumers.tail.cursor import Cursor
from consumers.tail.machine import Formatter, json_line, parse_format
from consumers.tail.offsets import parse_offset
from consumers.tail.selection import EventFilter
from consumers.tail.session import Tail, TailSession
from consumers.tail.text import line
from schemas.catalogue import TOPIC_NAMES
from schemas.ids import training_id
from schemas.installation import read_installation

HELP = """Show the log's records: all of them in the order of appending, or with --follow as they come.

\b
--offset says where to begin, and where to stop, in every partition:
  start, end         the beginning; the end (only what comes from now on)
  N, +N, -N          offset N; N after the beginning; N before the end
  N:M, N:, :M, :end  from offset N up to, without, offset M
  10m, 1h30m         what was appended since that long ago
  @T, @T:T, @:T      by time of appending; T is 2026-11-21, 2026-11-21T03:14:15Z,
                     seconds or milliseconds since 1970, -10m (ago);
                     the second T also 10m (after the first) or end

\b
--format prints what it says, without a line's end of its own:
  %t topic  %p partition  %o offset  %k key  %v value  %T type  %s subject
  %d time of appending  %e epoch  %q sequence  %i number  %%  \\n \\t \\r \\\\ \\xNN
"""


def _renderer(*, as_json: bool, format_: str | None) -> Formatter:
    if as_json and format_ is not None:
        message = "--json and --format exclude each other"
        raise UsageError(message)
    if as_json:
        return json_line
    if format_ is not None:
        return parse_format(format_)
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return lambda seen, _: line(seen, colour=colour).encode(errors="replace") + b"\n"


def _topics(named: tuple[str, ...], prefix: str) -> set[str]:
    known = {prefix + name for name in TOPIC_NAMES}
    chosen = {name if name in known else prefix + name for name in named}
    if unknown := chosen - known:
        message = f"no topic {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}"
        raise UsageError(message)
    return chosen or known


@click.command(help=HELP)
@click.option(
    "--topic",
    "-t",
    multiple=True,
    help="Only this topic, with or without the prefix; repeat for more.",
)
@click.option(
    "--partition",
    "-p",
    type=click.IntRange(min=0),
    multiple=True,
    help="Only this partition; repeat for more.",
)
@click.option("--training", metavar="NAME", help="Only what belongs to this training.")
@click.option("--stream", metavar="GLOB", help="Only this stream: rollout/<id>, 'environment/*'.")
@click.option(
    "--type",
    "types",
    metavar="GLOB",
    multiple=True,
    help="Only these types, with or without cua.: 'rollout.*', '*failed'.",
)
@click.option(
    "--offset",
    "-o",
    metavar="SPEC",
    help="Begin and stop, see above. Default: start; end for --follow without --cursor.",
)
@click.option(
    "--num",
    "-n",
    type=click.IntRange(min=1),
    help="At most so many; without --offset, --cursor and --follow: the last so many.",
)
@click.option("--follow", "-f", is_flag=True, help="Go on with what comes.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="One JSON object per line: the envelope with topic, partition and offset.",
)
@click.option("--format", "format_", metavar="F", help="A format string; see above.")
@click.option(
    "--cursor",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Begin where the last tail with this file ended, and remember where this one does.",
)
def command(
    topic: tuple[str, ...],
    partition: tuple[int, ...],
    training: str | None,
    stream: str | None,
    types: tuple[str, ...],
    offset: str | None,
    num: int | None,
    *,
    follow: bool,
    as_json: bool,
    format_: str | None,
    cursor: Path | None,
) -> int:
    """Show the log's records."""
    installation = read_installation(os.environ)
    topics = _topics(topic, installation.topic_prefix)
    partitions = set(partition)

    def is_wanted(place: TopicPartition) -> bool:
        return place.topic in topics and (not partitions or place.partition in partitions)

    tail = Tail(
        offset=None if offset is None else parse_offset(offset, datetime.now(UTC)),
        limit=num,
        follow=follow,
        selection=EventFilter(
            training_id=None if training is None else training_id(training),
            stream=stream,
            types=types,
        ),
        is_wanted=is_wanted,
    )
    render = _renderer(as_json=as_json, format_=format_)
    reader = open_reader(installation)
    try:
        TailSession(
            reader, tail, render, sys.stdout.buffer, None if cursor is None else Cursor(cursor)
        ).run()
    except BrokenPipeError:
        # Whoever read our output (head, less) has enough. Python would complain once more when it
        # closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    finally:
        reader.close()
    return 0
