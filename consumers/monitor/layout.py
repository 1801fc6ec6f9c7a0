"""What every page shares: the frame, tables, and the format of times, numbers and statuses."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import isfinite, isnan
from typing import NamedTuple
from uuid import UUID

from consumers.monitor.html import Html, Node, render, tag
from consumers.monitor.plain_text import excerpt
from consumers.tables import StatusHistory, Training

UNFINISHED = frozenset(
    {
        "pending",
        "initializing",
        "running",
        "paused",
        "rollout_collecting",
        "rollout_running",
        "training",
    }
)
REFRESH_S = 3
SILENT_AFTER_S = 60
"""A live training's heartbeat is younger than this; the trainer's takeover rule uses the same."""
ABSENT = "—"


class Document(NamedTuple):
    """A page as its entity fills it."""

    title: str
    body: Sequence[Node]
    trail: Sequence[tuple[str, str]]
    """(text, path) of the pages above it."""
    is_live: bool
    """What it shows still changes."""

    def text(self) -> str:
        """HTML; a live page reloads itself every REFRESH_S seconds."""
        crumbs: list[Node] = [tag("a", "trainings", href="/")]
        for text, path in self.trail:
            crumbs += [" / ", tag("a", excerpt(text), href=path)]
        heading = tag("h1", excerpt(self.title))
        document = tag(
            "html",
            tag(
                "head",
                tag("meta", charset="utf-8"),
                tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
                tag("meta", http_equiv="refresh", content=REFRESH_S) if self.is_live else None,
                tag("title", f"{self.title} · cua"),
                tag("link", rel="stylesheet", href="/style.css"),
            ),
            tag("body", tag("nav", crumbs), tag("main", heading, *self.body)),
            lang="en",
        )
        return "<!doctype html>" + render(document)


def page(
    title: str, *body: Node, trail: Sequence[tuple[str, str]] = (), live: bool = False
) -> Document:
    """A whole document, by the parts that differ."""
    return Document(title, body, trail, live)


def table(columns: Sequence[Node], rows: Iterable[Sequence[Node]], empty: str) -> Html:
    """Rows under headings, or the sentence `empty` if there are none."""
    body = [tag("tr", *(tag("td", cell) for cell in row)) for row in rows]
    if not body:
        return tag("p", empty, class_="faint")
    head = tag("tr", *(tag("th", column) for column in columns))
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body)), class_="scroll")


def facts(*pairs: tuple[str, Node]) -> Html:
    """Names with their values."""
    return tag(
        "dl",
        *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs),
        class_="facts",
    )


def link(text: str, kind: str, owner: UUID) -> Html:
    """A link to an entity's page."""
    return tag("a", excerpt(text), href=path_of(kind, owner))


def path_of(kind: str, owner: UUID) -> str:
    """The page of an entity: training, step, baseline, eval, rollout."""
    return f"/{kind}/{owner}"


def status(text: str) -> Html:
    """A status as a coloured word; an unknown status has no colour."""
    return tag(
        "span", text, class_=f"status {text}" if text.replace("_", "").isalpha() else "status"
    )


def environment(training: Training) -> str:
    """What a training's agent works with: android where its configuration does not say."""
    config = training.config_json
    name = config.get("environment") if isinstance(config, Mapping) else None
    return name if isinstance(name, str) else "android"


def progress(percent: float) -> Html:
    """A progress bar with its number."""
    return tag(
        "span",
        tag("progress", value=f"{percent:.1f}", max=100),
        f" {percent:.0f} %",
        class_="nowrap",
    )


LARGEST_WRITTEN_OUT = 1e9
"""Larger numbers have an exponent."""


def not_finite(value: float) -> str | None:
    """`NaN`, `Infinity` or `-Infinity`, as the JSON has them; None for a number."""
    if not isinstance(value, float) or isfinite(value):
        return None
    return "NaN" if isnan(value) else f"{'-' if value < 0 else ''}Infinity"


def number(value: float | None, digits: int = 3) -> str:
    """Rounded to significant digits, whole from 10^digits on; a dash for NULL."""
    if value is None:
        return ABSENT
    if word := not_finite(value):
        return word
    if not isinstance(value, float) or 10**digits <= abs(value) < LARGEST_WRITTEN_OUT:
        return f"{value:,.0f}" if isinstance(value, float) else f"{value:,}"
    return f"{value:.{digits}g}"


def rounded(value: float, digits: int = 3) -> str:
    """Significant digits of a number of JSON, whose integers may be larger than any float."""
    try:
        return not_finite(value) or f"{value:.{digits}g}"
    except OverflowError:
        return f"{Decimal(value):.{digits}g}"


def share(value: float | None) -> str:
    """0.873 -> 87.3 %."""
    if value is None:
        return ABSENT
    return not_finite(value * 100) or f"{value * 100:.1f} %"


def duration(seconds: float | None) -> str:
    """A length of time in two units at most; a dash for NULL and what is no length (NaN)."""
    if seconds is None or not isfinite(seconds):
        return ABSENT
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:  # noqa: PLR2004  # seconds of a minute
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def moment(time: datetime | None) -> Html | str:
    """A time in UTC."""
    if time is None:
        return ABSENT
    utc = time.astimezone(UTC)
    return tag("time", utc.strftime("%Y-%m-%d %H:%M:%S"), datetime=utc.isoformat(), class_="nowrap")


def heartbeat(last: datetime | None, now: datetime, entity_status: str) -> Html | str:
    """The heartbeat's age, marked when a live training should have sent a newer one."""
    if last is None:
        return ABSENT
    age = max(now - last, timedelta())
    text = f"{duration(age.total_seconds())} ago"
    is_overdue = entity_status in UNFINISHED and age.total_seconds() > SILENT_AFTER_S
    return tag(
        "span", text + (", overdue" if is_overdue else ""), class_="bad" if is_overdue else None
    )


def history(rows: Iterable[StatusHistory]) -> Html:
    """A status history, newest first."""
    cells: list[tuple[Node, ...]] = [
        (
            moment(row.changed_at),
            [status(row.old_status), " → "] if row.old_status else None,
            status(row.new_status),
            ABSENT if row.progress_percent is None else f"{row.progress_percent:.0f} %",
            tag("span", row.status_message or "", class_="text"),
            f"{row.epoch}/{row.sequence}",
        )
        for row in rows
    ]
    return table(
        ("time (UTC)", "from", "to", "progress", "message", "epoch/sequence"),
        cells,
        "No status yet.",
    )
