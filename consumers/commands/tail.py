"""`cua-project tail`: print the log's records, once or as they are appended."""

import logging
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import rich_click as click

from consumers.errors import NotFoundError, UsageError
from schemas.advice import did_you_mean
from schemas.standard_streams import discard_output

if TYPE_CHECKING:
    from consumers.log.reader import LogReader, TopicPartition
    from consumers.tail.formats import Formatter

logger = logging.getLogger(__name__)

FOLLOW_LOOK_S = 2.0
"""How long --follow looks for a training's name before it follows."""

HELP = """Print the log's records in append order; with --follow, as they are appended.

\b
--offset: where to start, and where to stop, in every partition
  start, end         the beginning; the end (new records only)
  N, +N, -N          offset N; N after the beginning; N before the end
  N:M, N:, :M, :end  from offset N up to, but not including, offset M
  10m, 1h30m         appended within that time before now
  @T, @T:T, @:T      by append time; T is 2026-11-21, 2026-11-21T03:14:15Z,
                     seconds or milliseconds since 1970, or -10m (ago);
                     the second T also 10m (after the first) or end
\b
--format: %-fields and escapes; no newline is added
  %t topic  %p partition  %o offset  %k key  %v value  %T type  %s subject
  %d append time  %e epoch  %q sequence  %i number  %%  \\n \\t \\r \\\\ \\xNN
\b
Examples:
  cua-project tail -n 20
  cua-project tail --training demo --type 'rollout.*' --follow
  cua-project tail --offset 10m --json | jq .type
  cua-project tail --cursor seen.json --format '%T %s\\n'
"""


def _formatter(*, as_json: bool, format_: str | None) -> "Formatter":
    from consumers.console import is_terminal, terminal_width
    from consumers.tail.formats import json_line, parse_format
    from consumers.tail.text import format_line

    if as_json and format_ is not None:
        message = "--json and --format are mutually exclusive"
        raise UsageError(message)
    if as_json:
        return json_line
    if format_ is not None:
        return parse_format(format_)
    if not is_terminal():
        return lambda decoded, _: format_line(decoded).encode(errors="replace") + b"\n"
    colour = not os.environ.get("NO_COLOR")
    # The width is read again for each line: the terminal may be resized during --follow.
    return lambda decoded, _: (
        format_line(decoded, colour=colour, width=terminal_width()).encode(errors="replace") + b"\n"
    )


def _topics(named: tuple[str, ...], prefix: str) -> set[str]:
    from schemas.catalogue import TOPIC_NAMES

    known = {prefix + name for name in TOPIC_NAMES}
    chosen = {name if name in known else prefix + name for name in named}
    if unknown := sorted(chosen - known):
        suggestion = (
            did_you_mean(unknown[0], known) or f" The topics are {', '.join(sorted(known))}"
        )
        message = f"there is no topic {unknown[0]!r}.{suggestion}"
        raise UsageError(message)
    return chosen or known


def _check_partitions(named: set[int], reader: "LogReader") -> None:
    known = {tp.partition for tp in reader.partitions()}
    if known and not named <= known:
        message = (
            f"there is no partition {max(named - known)}; the topics have partitions"
            f" {min(known)} to {max(known)}"
        )
        raise NotFoundError(message)


class _Names(NamedTuple):
    """The filters as they were given."""

    training: str | None
    stream: str | None
    types: tuple[str, ...]

    def __str__(self) -> str:
        given = [("--training", self.training), ("--stream", self.stream)]
        given += [("--type", glob) for glob in self.types]
        return " ".join(f"{name} {value!r}" for name, value in given if value is not None)


def _unknown_names(
    reader: "LogReader", prefix: str, names: _Names, limit_s: float = float("inf")
) -> Iterator[str]:
    """What cannot match, each with the nearest name that can."""
    from consumers.tail.event_filter import unknown_stream_message, unknown_type_message
    from consumers.tail.trainings import unknown_training_message
    from schemas.catalogue import TOPICS

    yield from filter(
        None, (unknown_type_message(names.types), unknown_stream_message(names.stream))
    )
    if names.training is not None:
        topic = prefix + TOPICS["training"]
        message = unknown_training_message(reader, topic, names.training, limit_s)
        if message is not None:
            yield message


def _say_that_nothing_matched(unknown: str | None, names: _Names, cursor: Path | None) -> None:
    """NotFoundError for a name that cannot match; with a cursor, which is polled, a line."""
    if unknown is not None and cursor is None:
        raise NotFoundError(unknown)
    if given := str(names):
        logger.info("%s", unknown or f"no record matches {given}")


@click.command(help=HELP)
@click.option_panel("Which records", options=["topic", "partition", "training", "stream", "types"])
@click.option_panel("Where to start and stop", options=["offset", "num", "follow", "cursor"])
@click.option_panel("Output", options=["as_json", "format_"])
@click.option(
    "--topic",
    "-t",
    multiple=True,
    metavar="[training|rollouts]",
    help="Only this topic, with or without the prefix. Repeatable.",
)
@click.option(
    "--partition",
    "-p",
    type=click.IntRange(min=0),
    multiple=True,
    metavar="N",
    help="Only this partition. Repeatable.",
)
@click.option("--training", metavar="NAME", help="Only events of this training.")
@click.option(
    "--stream", metavar="GLOB", help="Only streams that match: rollout/ID, 'environment/*'."
)
@click.option(
    "--type",
    "types",
    metavar="GLOB",
    multiple=True,
    help="Only types that match, with or without cua.: 'rollout.*', '*failed'. Repeatable.",
)
@click.option(
    "--offset",
    "-o",
    metavar="OFFSET",
    help="Where to start and stop; see above. [default: start, or end with --follow]",
)
@click.option(
    "--num",
    "-n",
    type=click.IntRange(0, sys.maxsize),
    metavar="COUNT",
    help=(
        "The last COUNT records; with --offset, --cursor or --follow, the first COUNT. -n 0"
        " --follow prints only records appended from now on."
    ),
)
@click.option("--follow", "-f", is_flag=True, help="Wait for new records and print them too.")
@click.option(
    "--cursor",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help=(
        "Continue where the last run with this file stopped, whatever --offset is, and save where"
        " this one stops. At least once: after a broken pipe records are printed again, none is"
        " skipped."
    ),
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="One JSON object per line: the envelope with topic, partition and offset.",
)
@click.option("--format", "format_", metavar="FORMAT", help="A format string; see above.")
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
) -> None:
    """Print the log's records."""
    from consumers.home import open_installation
    from consumers.log.open import open_reader
    from consumers.tail.cursor import Cursor
    from consumers.tail.event_filter import EventFilter
    from consumers.tail.offsets import parse_offset
    from consumers.tail.session import TailRequest, TailSession
    from consumers.tail.stop import Stop
    from consumers.tail.trainings import normalize_name
    from schemas.ids import training_id

    if num == 0:
        if not follow or offset is not None or cursor is not None:
            message = (
                "-n 0 prints nothing; give at least 1, or --follow without --offset and --cursor,"
                " which prints only new records"
            )
            raise UsageError(message)
        num = None
    installation = open_installation(os.environ)
    training = None if training is None else normalize_name(training)
    topics = _topics(topic, installation.topic_prefix)
    partitions = set(partition)

    def is_wanted(tp: "TopicPartition") -> bool:
        return tp.topic in topics and (not partitions or tp.partition in partitions)

    request = TailRequest(
        offset=None if offset is None else parse_offset(offset, datetime.now(UTC)),
        limit=num,
        follow=follow,
        event_filter=EventFilter(
            training_id=None if training is None else training_id(training),
            stream=stream,
            types=types,
        ),
        is_wanted=is_wanted,
    )
    formatter = _formatter(as_json=as_json, format_=format_)
    reader = open_reader(installation)
    names = _Names(training, stream, types)
    unknown_names = partial(_unknown_names, reader, installation.topic_prefix, names)

    try:
        _check_partitions(partitions, reader)
        if follow:
            for message in unknown_names(FOLLOW_LOOK_S):
                logger.warning("%s; waiting for it", message.removesuffix("?"))
        stop = Stop()
        with stop.on_signals():
            num_printed = TailSession(
                reader,
                request,
                formatter,
                sys.stdout.buffer,
                None if cursor is None else Cursor(cursor),
                stop,
            ).run()
        if num_printed or follow:
            return
        _say_that_nothing_matched(next(unknown_names(), None), names, cursor)
    except BrokenPipeError:
        discard_output()  # the reader of our output (head, less) has exited
    finally:
        reader.close()
