"""The first page: trainings with their progress, heartbeat and gain; evaluations of no training."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from consumers.monitor import layout, measured
from consumers.monitor.html import Node, tag
from consumers.monitor.plain_text import name
from consumers.queries import Gain, Success, list_annotations, list_gains, list_trainings
from consumers.tables import Eval, StreamState, Training, UnappliedRecord
from schemas.evaluation_text import tasks_text, temperature_text

WHOLE_PATH = "/trainings"
"""Of every training; it does not reload itself."""
LISTED = 200
"""Trainings of the page that reloads itself."""
LISTED_BY_HAND = 20
"""Evaluations of policies of no training."""
WAITS_TOO_LONG = timedelta(seconds=30)
"""A gap that a spool fills is closed sooner."""


def overview_page(session: Session, now: datetime, *, is_whole: bool = False) -> layout.Document:
    """The list of trainings: the newest, or with `is_whole` all of them, once."""
    trainings = list_trainings(session, limit=None if is_whole else LISTED + 1)
    has_more = not is_whole and len(trainings) > LISTED
    trainings = trainings if is_whole else trainings[:LISTED]
    shown = [training.id for training in trainings]
    gains = list_gains(session, shown)
    names = {
        list_annotation.training_id: list_annotation.display_name
        for list_annotation in list_annotations(session, shown)
    }
    num_parked, parked = parked_since(session, shown)
    rows = [
        _row(
            training,
            now,
            gains.get(training.id, Gain(None, None)),
            parked,
            names.get(training.id),
        )
        for training in trainings
    ]
    columns = (
        "training",
        "status",
        "progress",
        "step",
        "success before",
        "success after",
        "measured",
        "policy",
        "heartbeat",
        "started (UTC)",
    )
    return layout.page(
        "Trainings",
        _parked_note(num_parked),
        _waiting_note(session, now),
        layout.table(
            columns,
            rows,
            "No training yet. `cua-train run` starts one, and `cua-project run` projects the log.",
        ),
        tag("p", "These are the newest. ", tag("a", "All trainings", href=WHOLE_PATH))
        if has_more
        else None,
        _by_hand(session),
        live=not is_whole,
    )


def _row(
    training: Training,
    now: datetime,
    gain: Gain,
    parked: dict[str, datetime],
    display_name: str | None,
) -> tuple[Node, ...]:
    since = parked.get(f"training/{training.id}")
    last = gain.after or gain.before
    return (
        tag(
            "span",
            layout.link(display_name or training.run_name, "training", training.id),
            tag("span", f" {training.kind} · {layout.environment(training)}", class_="faint"),
            class_="text",
        ),
        [
            layout.status(training.status),
            tag("span", " parked since ", layout.moment(since), class_="bad") if since else None,
        ],
        layout.progress(training.progress_percent),
        f"{training.current_step} / {training.total_steps}",
        layout.share(gain.before.rate if gain.before else None),
        tag(
            "span",
            layout.share(gain.after.rate if gain.after else None),
            class_=measured.colour(gain.difference),
        ),
        layout.ABSENT if last is None else tag("span", _of(last), class_="text"),
        training.model_name.rstrip("/").rpartition("/")[2],
        layout.heartbeat(training.last_heartbeat, now, training.status),
        layout.moment(training.start_time),
    )


def _of(last: Success) -> str:
    """`greedy, 18 training tasks on unseen seeds`."""
    return f"{temperature_text(last.temperature)}, {tasks_text(last.num_tasks, last.split)}"


def _parked_note(number: int) -> Node:
    if not number:
        return None
    streams = "1 stream is parked" if number == 1 else f"{number} streams are parked"
    return tag(
        "p",
        f"{streams} because a record could not be applied; see `cua-project parked list`.",
        class_="warning",
    )


def _waiting_note(session: Session, now: datetime) -> Node:
    number = session.scalar(
        select(func.count()).where(StreamState.num_waiting > 0).select_from(StreamState)
    )
    if not number:
        return None
    since = session.scalar(
        select(func.min(UnappliedRecord.appended_at)).where(UnappliedRecord.state == "waiting")
    )
    if since is None or now - since < WAITS_TOO_LONG:
        return None
    streams = "1 stream waits" if number == 1 else f"{number} streams wait"
    return tag(
        "p",
        f"{streams} for records that the log does not have, since ",
        layout.moment(since),
        "; see `cua-project status --check`.",
        class_="warning",
    )


def parked_since(session: Session, trainings: Sequence[UUID]) -> tuple[int, dict[str, datetime]]:
    """How many streams are parked, and since when those of these trainings themselves."""
    is_parked = StreamState.parked_since.is_not(None)
    number = session.scalar(select(func.count()).where(is_parked).select_from(StreamState))
    of_trainings = StreamState.stream.in_([f"training/{training}" for training in trainings])
    query = select(StreamState.stream, StreamState.parked_since).where(is_parked, of_trainings)
    return number or 0, {name: since for name, since in session.execute(query) if since is not None}


def _by_hand(session: Session) -> Node:
    """Evaluations of policies of no training, which no training's page lists."""
    query = (
        select(Eval)
        .where(Eval.training_id.is_(None))
        .order_by(Eval.created_at.desc(), Eval.id)
        .limit(LISTED_BY_HAND)
    )
    rows: list[tuple[Node, ...]] = [
        (
            layout.link(measured.name_of(item), "eval", item.id),
            layout.status(item.status),
            measured.success(item),
            temperature_text(item.temperature),
            measured.tasks(item),
            tag("span", name(item.model_path or layout.ABSENT), class_="text"),
            layout.moment(item.created_at),
        )
        for item in session.scalars(query)
    ]
    if not rows:
        return None
    columns = ("evaluation", "status", "success", "temperature", "tasks", "policy", "created (UTC)")
    heading = tag("h2", "The newest evaluations of policies of no training")
    return [heading, layout.table(columns, rows, "")]
