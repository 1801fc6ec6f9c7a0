"""The first page: every training with its progress, heartbeat and gain in success."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session

from consumers.monitor import layout
from consumers.monitor.html import Node, tag
from consumers.queries import list_annotations, list_trainings
from consumers.tables import Baseline, Eval, StreamState, Training

WHOLE_PATH = "/trainings"
"""Of every training; it does not reload itself."""
LISTED = 200
"""Trainings of the page that reloads itself."""


def overview_page(session: Session, now: datetime, *, is_whole: bool = False) -> str:
    """The list of trainings: the newest, or with `is_whole` all of them, once."""
    trainings = list_trainings(session, limit=None if is_whole else LISTED + 1)
    has_more = not is_whole and len(trainings) > LISTED
    trainings = trainings if is_whole else trainings[:LISTED]
    shown = [training.id for training in trainings]
    before, after = _success_before(session, shown), _success_after(session, shown)
    names = {one.training_id: one.display_name for one in list_annotations(session, shown)}
    num_parked, parked = _parked(session, shown)
    rows = [
        _row(
            training,
            now,
            before.get(training.id),
            after.get(training.id),
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
        "policy",
        "heartbeat",
        "started (UTC)",
    )
    return layout.page(
        "Trainings",
        _parked_note(num_parked),
        layout.table(
            columns,
            rows,
            "No training yet. `cua-train run` starts one, and `cua-project run` projects the log.",
        ),
        tag("p", "These are the newest. ", tag("a", "All trainings", href=WHOLE_PATH))
        if has_more
        else None,
        live=not is_whole,
    )


def _row(
    training: Training,
    now: datetime,
    before: float | None,
    after: float | None,
    parked: dict[str, datetime],
    display_name: str | None,
) -> tuple[Node, ...]:
    since = parked.get(f"training/{training.id}")
    gained = before is not None and after is not None and after > before
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
        layout.share(before),
        tag("span", layout.share(after), class_="good" if gained else None),
        training.model_name.rstrip("/").rpartition("/")[2],
        layout.heartbeat(training.last_heartbeat, now, training.status),
        layout.moment(training.start_time),
    )


def _parked_note(number: int) -> Node:
    if not number:
        return None
    streams = "1 stream is parked" if number == 1 else f"{number} streams are parked"
    return tag(
        "p",
        f"{streams} because a record could not be applied; see `cua-project parked list`.",
        class_="warning",
    )


def _parked(session: Session, trainings: Sequence[UUID]) -> tuple[int, dict[str, datetime]]:
    """How many streams are parked, and since when those of these trainings themselves."""
    is_parked = StreamState.parked_since.is_not(None)
    number = session.scalar(select(func.count()).where(is_parked).select_from(StreamState))
    of_trainings = StreamState.stream.in_([f"training/{one}" for one in trainings])
    query = select(StreamState.stream, StreamState.parked_since).where(is_parked, of_trainings)
    return number or 0, {name: since for name, since in session.execute(query) if since is not None}


def _success_before(session: Session, trainings: Sequence[UUID]) -> dict[UUID, float | None]:
    """Training -> success rate of its newest baseline."""
    query = (
        select(Baseline.training_id, Baseline.success_rate)
        .ext(distinct_on(Baseline.training_id))
        .where(
            ~Baseline.superseded,
            Baseline.success_rate.is_not(None),
            Baseline.training_id.in_(trainings),
        )
        .order_by(Baseline.training_id, Baseline.created_at.desc())
    )
    return {one: rate for one, rate in session.execute(query) if one is not None}


def _success_after(session: Session, trainings: Sequence[UUID]) -> dict[UUID, float | None]:
    """Training -> success rate of the scheduled eval with the highest step."""
    query = (
        select(Eval.training_id, Eval.success_rate)
        .ext(distinct_on(Eval.training_id))
        .where(
            ~Eval.superseded,
            Eval.success_rate.is_not(None),
            Eval.kind == "scheduled",
            Eval.training_id.in_(trainings),
        )
        .order_by(Eval.training_id, Eval.step.desc())
    )
    return {one: rate for one, rate in session.execute(query) if one is not None}
