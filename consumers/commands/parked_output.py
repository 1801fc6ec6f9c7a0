"""Held records and abandoned streams as `cua-project parked` prints them."""

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import rich_click as click

from consumers.console import sanitize

if TYPE_CHECKING:
    from consumers.projection.abandoned import AbandonedStream
    from consumers.projection.redrive import HeldSummary


def held_json(summary: "HeldSummary") -> dict[str, object]:
    """A held record as one object."""
    times = {
        "event_time": summary.event_time,
        "appended_at": summary.appended_at,
        "since": summary.since,
    }
    return summary._asdict() | {
        name: None if time is None else time.isoformat() for name, time in times.items()
    }


def abandoned_json(abandoned: "AbandonedStream") -> dict[str, object]:
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


def print_array(entries: Iterable[dict[str, object]]) -> None:
    """As json.dumps writes the whole, which may be hundreds of megabytes, one after the other."""
    out = sys.stdout
    before = "["
    for entry in entries:
        out.write(before + json.dumps(entry))
        before = ", "
    out.write("[]\n" if before == "[" else "]\n")
    out.flush()


def print_held(pages: Iterable[list["HeldSummary"]]) -> bool:
    """By stream; whether there was any."""
    is_any = False
    for page in pages:
        by_stream: dict[str, list[HeldSummary]] = {}
        for summary in page:
            by_stream.setdefault(summary.stream or "(no stream)", []).append(summary)
        for stream, held in by_stream.items():
            is_any = True
            click.echo(sanitize(stream))
            for summary in held:
                name = (
                    f"{summary.type} {summary.epoch}/{summary.sequence}"
                    if summary.type
                    else "unreadable"
                )
                click.echo(sanitize(f"  {summary.held_as}  {summary.id}  {name}: {summary.reason}"))
    return is_any


def print_abandoned(streams: Iterable["AbandonedStream"]) -> None:
    """Each with since when, by whom and why."""
    for stream in streams:
        click.echo(sanitize(stream.stream))
        since = "" if stream.since is None else f" since {stream.since:%Y-%m-%d %H:%M:%S}"
        by = "" if stream.made_by is None else f" by {stream.made_by}"
        reason = "" if stream.reason is None else f": {stream.reason}"
        after = f"epoch {stream.epoch}, sequence {stream.sequence}"
        click.echo(sanitize(f"  abandoned{since}{by}, after {after}{reason}"))
