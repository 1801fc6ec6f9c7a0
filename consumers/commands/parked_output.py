"""Records that are not applied, as `cua-project parked` prints them."""

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import rich_click as click

from consumers.console import sanitize

if TYPE_CHECKING:
    from consumers.projection.operators import UnappliedSummary


def unapplied_json(summary: "UnappliedSummary") -> dict[str, object]:
    """A record as one object."""
    times = {
        "event_time": summary.event_time,
        "appended_at": summary.appended_at,
        "since": summary.since,
    }
    return summary._asdict() | {
        name: None if time is None else time.isoformat() for name, time in times.items()
    }


def print_array(entries: Iterable[dict[str, object]]) -> None:
    """As json.dumps writes the whole, which may be hundreds of megabytes, one after the other."""
    out = sys.stdout
    before = "["
    for entry in entries:
        out.write(before + json.dumps(entry))
        before = ", "
    out.write("[]\n" if before == "[" else "]\n")
    out.flush()


def print_unapplied(pages: Iterable[list["UnappliedSummary"]]) -> bool:
    """By stream; whether there was any."""
    is_any = False
    for page in pages:
        by_stream: dict[str, list[UnappliedSummary]] = {}
        for summary in page:
            by_stream.setdefault(summary.stream, []).append(summary)
        for stream, of_stream in by_stream.items():
            is_any = True
            click.echo(sanitize(stream))
            for summary in of_stream:
                point = f" {summary.epoch}/{summary.sequence}" if summary.epoch else ""
                name = f"{summary.type}{point}" if summary.type else "unreadable"
                click.echo(sanitize(f"  {summary.state}  {summary.id}  {name}: {summary.reason}"))
    return is_any
