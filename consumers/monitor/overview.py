"""The first page: every training with its progress, heartbeat and gain in success."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from consumers.monitor import layout
from consumers.monitor.html import Node, tag
from consumers.queries import list_annotations, list_trainings
from consumers.tables import Baseline, Eval, StreamState, Training


def overview_page(session: Session, now: datetime) -> str:
    """The list of trainings."""
    trainings = list_trainings(session)
    before, after = _success_before(session), _success_after(session)
    names = {one.training_id: one.display_name for one in list_annotations(session)}
    query = select(StreamState.stream, StreamState.parked_since).where(
        StreamState.parked_since.is_not(None)
    )
    parked = {stream: since for stream, since in session.execute(query) if since is not None}
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
        _parked_note(len(parked)),
        layout.table(
            columns,
            rows,
            "No training yet. `cua-train run` starts one, and `cua-project run` projects the log.",
        ),
        live=True,
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


def _success_before(session: Session) -> dict[UUID, float | None]:
    """Training -> success rate of its newest baseline."""
    query = select(Baseline.training_id, Baseline.success_rate).where(
        ~Baseline.superseded, Baseline.success_rate.is_not(None)
    )
    return {
        training: rate
        for training, rate in session.execute(query.order_by(Baseline.created_at))
        if training is not None
    }


def _success_after(session: Session) -> dict[UUID, float | None]:
    """Training -> success rate of the scheduled eval with the highest step."""
    query = select(Eval.training_id, Eval.success_rate).where(
        ~Eval.superseded, Eval.success_rate.is_not(None), Eval.kind == "scheduled"
    )
    return {
        training: rate
        for training, rate in session.execute(query.order_by(Eval.step))
        if training is not None
    }
